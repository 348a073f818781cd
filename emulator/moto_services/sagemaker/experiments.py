"""Experiments, trials and trial components, as SageMaker stores and finds them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.moto_services.sagemaker.experiment_search import select_results
from emulator.moto_services.sagemaker.responses import Answer, answering, build_answer, cut_page, read_member

_TEXTS = {"display_name": "DisplayName", "description": "Description"}
_PAGE = 10
_SUMMARY = ("Arn", "DisplayName", "CreationTime", "LastModifiedTime")
_COMPONENT_SUMMARY = (*_SUMMARY, "Status", "StartTime", "EndTime", "TrialComponentSource")


class _Kind(NamedTuple):
    """A kind of resource: its name in members, in messages, in ARNs, and as moto's attribute."""

    member: str
    noun: str
    arn: str
    attribute: str

    def find(self, backend: Any, name: str) -> Any:
        """Return moto's record; None if there is none of this name, in upper or lower case."""
        records = getattr(backend, self.attribute)
        found = records.get(name)
        if found is None:
            found = next((each for key, each in records.items() if key.lower() == name.lower()), None)
        return found

    def read_name(self, record: Any) -> str:
        """Return the name that a record was created with."""
        return str(getattr(record, f"{self.attribute.removesuffix('s')}_name"))

    def get(self, response: Any) -> Any:
        """Return moto's record that a request names.

        Raises:
            ResourceNotFound: there is none of this name.
        """
        backend, name = response.sagemaker_backend, read_member(response, f"{self.member}Name")
        found = self.find(backend, name)
        if found is None:
            arn = f"arn:{backend.partition}:sagemaker:{backend.region_name}:{backend.account_id}:{self.arn}/{name}"
            raise ResourceNotFound(f"{self.noun} '{arn}' does not exist.")
        return found

    def get_name(self, response: Any) -> str | None:
        """Return the name of the record that a request names, as ``read_name`` does; None if it names none."""
        return None if read_member(response, f"{self.member}Name") is None else self.read_name(self.get(response))


_EXPERIMENT = _Kind("Experiment", "Experiment", "experiment", "experiments")
_TRIAL = _Kind("Trial", "Trial", "experiment-trial", "trials")
_COMPONENT = _Kind("TrialComponent", "Trial Component", "experiment-trial-component", "trial_components")
_SEARCHED = {"Experiment": _EXPERIMENT, "ExperimentTrial": _TRIAL, "ExperimentTrialComponent": _COMPONENT}


def keeping_experiments() -> AbstractContextManager[None]:
    """Make moto keep what a request gives, refuse names that exist, and find components by their parents."""
    from moto.sagemaker.responses import SageMakerResponse

    answers: dict[str, Answer] = {
        "list_experiments": _list_experiments,
        "list_trials": _list_trials,
        "list_trial_components": _list_components,
        "disassociate_trial_component": _disassociate,
        "associate_trial_component": _associate,
        "search": partial(_search, SageMakerResponse.search),
    }
    for kind in (_EXPERIMENT, _TRIAL, _COMPONENT):
        end = kind.attribute.removesuffix("s")
        answers[f"create_{end}"] = partial(_create, kind, vars(SageMakerResponse)[f"create_{end}"])
        answers[f"describe_{end}"] = partial(_describe, kind)
        answers[f"delete_{end}"] = partial(_delete, kind)
    for kind in (_EXPERIMENT, _TRIAL):
        answers[f"update_{kind.attribute.removesuffix('s')}"] = partial(_update, kind)
    answers["update_trial_component"] = _update_component
    return answering(answers)


def _create(kind: _Kind, create: Callable[[Any], Any], response: Any) -> Any:
    backend, name = response.sagemaker_backend, read_member(response, f"{kind.member}Name")
    if kind.find(backend, name) is not None:
        raise ValidationException(
            f"{kind.noun} names must be unique within an AWS account and region. {kind.noun} with name ({name}) "
            "already exists."
        )
    experiment = _EXPERIMENT.get_name(response) if kind is _TRIAL else None
    answer = create(response)
    record = getattr(backend, kind.attribute)[name]
    _set_texts(record, response)
    if experiment is not None:
        record.experiment_name = experiment
    return answer


def _set_texts(record: Any, response: Any) -> None:
    for attribute, member in _TEXTS.items():
        if (text := read_member(response, member)) is not None:
            setattr(record, attribute, text)


def _update(kind: _Kind, response: Any) -> Any:
    from moto.core.utils import utcnow

    record = kind.get(response)
    _set_texts(record, response)
    record.last_modified_time = utcnow()
    return build_answer({f"{kind.member}Arn": record.arn})


def _update_component(response: Any) -> Any:
    """Merge what is given into the component; moto would replace its parameters and artifacts as a whole."""
    from moto.core.utils import utcnow

    record = _COMPONENT.get(response)
    for attribute in ("status", "start_time", "end_time", "display_name"):
        member = "".join(word.capitalize() for word in attribute.split("_"))
        if (value := read_member(response, member)) is not None:
            setattr(record, attribute, value)
    for attribute, member in (
        ("parameters", "Parameters"),
        ("input_artifacts", "InputArtifacts"),
        ("output_artifacts", "OutputArtifacts"),
    ):
        removed = set(read_member(response, f"{member}ToRemove") or ())
        merged = {**getattr(record, attribute), **(read_member(response, member) or {})}
        # What the request gives and removes is removed.
        setattr(record, attribute, {name: value for name, value in merged.items() if name not in removed})
    record.last_modified_time = utcnow()
    return build_answer({"TrialComponentArn": record.arn})


def _delete(kind: _Kind, response: Any) -> Any:
    """Delete what nothing is linked to: moto would delete an experiment and leave its trials without one."""
    backend, record = response.sagemaker_backend, kind.get(response)
    name = kind.read_name(record)
    if kind is _EXPERIMENT:
        linked = any(trial.experiment_name == name for trial in backend.trials.values())
    elif kind is _TRIAL:
        linked = any(each in backend.trial_components for each in record.trial_components)
    else:
        linked = bool(_list_parents(backend, record))
    if linked:
        others = "trial components" if kind is _TRIAL else "trials"
        raise ValidationException(
            f"{kind.member} '{record.arn}' is linked to 1 or more {others} and cannot be deleted."
        )
    del getattr(backend, kind.attribute)[name]
    return build_answer({f"{kind.member}Arn": record.arn})


def _describe(kind: _Kind, response: Any) -> Any:
    return build_answer(_describe_record(kind, kind.get(response)))


def _describe_record(kind: _Kind, record: Any) -> dict[str, Any]:
    """Describe a record, without the members that only moto has."""
    described: dict[str, Any] = record.response_object
    name = described[f"{kind.member}Name"]
    found = {
        key: value
        for key, value in described.items()
        if value is not None
        and key not in ("Tags", "TrialComponents", "Arn")
        and not (kind is _COMPONENT and key == "TrialName")
    }
    return {"DisplayName": name, **found, f"{kind.member}Arn": record.arn}


def _list_experiments(response: Any) -> Any:
    return _list(_EXPERIMENT, response, response.sagemaker_backend.experiments.values(), _SUMMARY)


def _list_trials(response: Any) -> Any:
    experiment, component = _EXPERIMENT.get_name(response), _COMPONENT.get_name(response)
    trials = [
        trial
        for trial in response.sagemaker_backend.trials.values()
        if experiment in (None, trial.experiment_name) and (component is None or component in trial.trial_components)
    ]
    return _list(_TRIAL, response, trials, _SUMMARY)


def _list_components(response: Any) -> Any:
    backend, source = response.sagemaker_backend, read_member(response, "SourceArn")
    experiment, trial = _EXPERIMENT.get_name(response), _TRIAL.get_name(response)
    components = [
        component
        for component in backend.trial_components.values()
        if source in (None, *(each["SourceArn"] for each in component.sources))
        and (
            (experiment is None and trial is None)
            or any(
                experiment in (None, parent["ExperimentName"]) and trial in (None, parent["TrialName"])
                for parent in _list_parents(backend, component)
            )
        )
    ]
    return _list(_COMPONENT, response, components, _COMPONENT_SUMMARY)


def _list(kind: _Kind, response: Any, records: Iterable[Any], members: tuple[str, ...]) -> Any:
    """Return one page of summaries, the newest first by default."""
    after, before = read_member(response, "CreatedAfter"), read_member(response, "CreatedBefore")
    listed = [
        record
        for record in records
        if (after is None or record.creation_time.timestamp() >= _to_seconds(after))
        and (before is None or record.creation_time.timestamp() <= _to_seconds(before))
    ]
    by_name = read_member(response, "SortBy") == "Name"
    listed.sort(
        key=lambda record: kind.read_name(record) if by_name else record.creation_time,
        reverse=read_member(response, "SortOrder") != "Ascending",
    )
    summarised = f"{kind.member}Summaries"
    page = cut_page(response, summarised, listed, _PAGE)
    wanted = {f"{kind.member}Name", *members} | {f"{kind.member}Arn", "TrialComponentSource"}
    summaries = [
        {key: value for key, value in _describe_record(kind, record).items() if key in wanted}
        for record in page[summarised]
    ]
    return build_answer(page | {summarised: summaries})


def _to_seconds(time: Any) -> float:
    return float(time.timestamp() if hasattr(time, "timestamp") else time)


def _associate(response: Any) -> Any:
    trial, component = _TRIAL.get(response), _COMPONENT.get(response)
    if component.trial_component_name not in trial.trial_components:
        trial.trial_components.append(component.trial_component_name)
    component.trial_name = trial.trial_name
    return build_answer({"TrialComponentArn": component.arn, "TrialArn": trial.arn})


def _disassociate(response: Any) -> Any:
    trial, component = _TRIAL.get(response), _COMPONENT.get(response)
    name = component.trial_component_name
    trial.trial_components = [each for each in trial.trial_components if each != name]
    if component.trial_name == trial.trial_name:
        others = _list_parents(response.sagemaker_backend, component)
        component.trial_name = others[0]["TrialName"] if others else None
    return build_answer({"TrialComponentArn": component.arn, "TrialArn": trial.arn})


def _list_parents(backend: Any, component: Any) -> list[dict[str, str]]:
    return [
        {"TrialName": trial.trial_name, "ExperimentName": trial.experiment_name}
        for trial in backend.trials.values()
        if component.trial_component_name in trial.trial_components
    ]


def _search(search: Callable[[Any], Any], response: Any) -> Any:
    resource, backend = read_member(response, "Resource"), response.sagemaker_backend
    kind = _SEARCHED.get(resource)
    if kind is None:
        return search(response)
    described = []
    for record in getattr(backend, kind.attribute).values():
        found = _describe_record(kind, record) | {"Tags": list(record.tags or ())}
        if kind is _COMPONENT:
            found["Parents"] = _list_parents(backend, record)
        if kind is _TRIAL:
            found["TrialComponentSummaries"] = [{"TrialComponentName": each} for each in record.trial_components]
        described.append(found)
    results = select_results(
        described,
        read_member(response, "SearchExpression") or {},
        read_member(response, "SortBy") or "CreationTime",
        descending=read_member(response, "SortOrder") != "Ascending",
    )
    total = {"Value": len(results), "Relation": "EqualTo"}
    page = cut_page(response, "Results", [{kind.member: each} for each in results], _PAGE)
    return build_answer({"TotalHits": total, **page})
