"""Operations that search training jobs."""

from emulator.exceptions import ValidationException
from emulator.operations.context import Context, Request, Response
from emulator.operations.members import declare_members

# What moto finds beside training jobs. It answers a search of pipeline executions with none, as it does not hold them.
_MOTOS = frozenset(
    {
        "Endpoint",
        "Experiment",
        "ExperimentTrial",
        "ExperimentTrialComponent",
        "FeatureGroup",
        "Image",
        "ImageVersion",
        "ModelPackage",
        "ModelPackageGroup",
        "Pipeline",
        "Project",
    }
)


@declare_members(
    acts_on=frozenset(
        {"Resource", "SearchExpression", "SortBy", "SortOrder", "NextToken", "MaxResults", "VisibilityConditions"}
    ),
    refuses={"CrossAccountFilterOption": "where it is CrossAccount: accounts share nothing here"},
)
def search(request: Request, context: Context) -> Response | None:
    """Return one page of training jobs; None for any other resource, which moto has.

    Raises:
        ValidationException: an unknown property, an unsuitable operator or value, another account, or a resource that
            cannot be searched here.
    """
    if (resource := request["Resource"]) not in {"TrainingJob", *_MOTOS}:
        raise ValidationException(
            f"Search of {resource} is not emulated: list them instead. What can be searched: TrainingJob, "
            f"{', '.join(sorted(_MOTOS))}."
        )
    if resource == "ExperimentTrialComponent":
        context.jobs.experiments.refresh(context.region)
    if resource != "TrainingJob":
        return None
    if request.get("CrossAccountFilterOption") == "CrossAccount":
        raise ValidationException("CrossAccountFilterOption cannot be CrossAccount: accounts share nothing here.")
    jobs, next_token, total = context.jobs.training.search(context.region, request)
    return {
        "Results": [{"TrainingJob": job} for job in jobs],
        "NextToken": next_token,
        "TotalHits": {"Value": total, "Relation": "EqualTo"},
    }


def get_search_suggestions(request: Request, context: Context) -> Response:
    """Suggest hyperparameters, tags and metrics by which to search training jobs; nothing for other resources."""
    hint = request.get("SuggestionQuery", {}).get("PropertyNameQuery", {}).get("PropertyNameHint", "")
    names = (
        context.jobs.training.suggest_property_names(context.region, hint)
        if request["Resource"] == "TrainingJob"
        else []
    )
    return {"PropertyNameSuggestions": [{"PropertyName": name} for name in names]}
