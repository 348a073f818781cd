"""Validation of requests for hyperparameter tuning jobs."""

from collections.abc import Mapping
from typing import Any

from emulator.exceptions import ValidationException
from emulator.jobs.model.tuning_job import RANGES, TuningJob
from emulator.jobs.runs.tuning.hyperparameters import count_combinations
from emulator.number_text import read_number
from emulator.operations.context import Context, Request
from emulator.operations.validation import training_job
from emulator.operations.validation.surroundings import check_surroundings

# Members of a definition that have an effect: those of CreateTrainingJob, and its own.
_DEFINITIONS = ("TrainingJobDefinition", "TrainingJobDefinitions")
ACTS_ON = frozenset(
    {
        "HyperParameterTuningJobName",
        "HyperParameterTuningJobConfig.Strategy",
        "HyperParameterTuningJobConfig.StrategyConfig",
        "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective",
        "HyperParameterTuningJobConfig.ResourceLimits",
        *(f"HyperParameterTuningJobConfig.ParameterRanges.{kind}" for kind in RANGES),
        "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType",
        "HyperParameterTuningJobConfig.TuningJobCompletionCriteria",
        "HyperParameterTuningJobConfig.RandomSeed",
        "WarmStartConfig",
        "Tags",
        *(
            f"{definition}.{member}"
            for definition in _DEFINITIONS
            for member in (
                "DefinitionName",
                "TuningObjective",
                *(f"HyperParameterRanges.{kind}" for kind in RANGES),
                "StaticHyperParameters",
                "HyperParameterTuningResourceConfig.InstanceType",
                "HyperParameterTuningResourceConfig.InstanceCount",
                "HyperParameterTuningResourceConfig.VolumeSizeInGB",
                "HyperParameterTuningResourceConfig.InstanceConfigs",
                *training_job.ACTS_ON,
            )
        ),
    }
)
REFUSES = {
    "Autotune": "AWS does not publish how it chooses; give Strategy, ResourceLimits and ParameterRanges",
    "HyperParameterTuningJobConfig.ParameterRanges.AutoParameters": "give each parameter a range",
    "HyperParameterTuningJobConfig.TuningJobCompletionCriteria.ConvergenceDetected": "where it is Enabled",
    **{
        f"{definition}.{member}": reason
        for definition in _DEFINITIONS
        for member, reason in (
            ("HyperParameterRanges.AutoParameters", "give each parameter a range"),
            *training_job.REFUSES.items(),
        )
    },
}


def check_tuning_job(request: Request, context: Context) -> None:
    """Check the constraints that the model does not contain, with a training job for each definition.

    Raises:
        ValidationException, ResourceLimitExceeded.
    """
    job = _build_sample(request, context)
    _check_definitions(request)
    _check_unsupported(job)
    for definition in job.definitions:
        _check_ranges(job, definition)
        _check_objective(job, definition)
        training = job.build_training_request(definition, "sample", _sample_parameters(job, definition), ())
        checked = context.check("CreateTrainingJob", training)
        training_job.check_training_job(checked)
        check_surroundings(checked, context)
        parallel = job.configuration["ResourceLimits"]["MaxParallelTrainingJobs"]
        context.jobs.training.quotas.check(context.region, checked, parallel)
    _check_limits(job)


def _build_sample(request: Request, context: Context) -> TuningJob:
    return TuningJob(
        account_id=context.account_id,
        region=context.region,
        name=request["HyperParameterTuningJobName"],
        id="0",
        request=request,
        creation_ms=0,
        last_modified_ms=0,
    )


def _check_definitions(request: Request) -> None:
    if ("TrainingJobDefinition" in request) == ("TrainingJobDefinitions" in request):
        raise ValidationException("Exactly one of TrainingJobDefinition and TrainingJobDefinitions must be given.")
    definitions = request.get("TrainingJobDefinitions", [])
    names = [each.get("DefinitionName") for each in definitions]
    if None in names or len(set(names)) < len(names):
        raise ValidationException("Each of TrainingJobDefinitions must have a DefinitionName of its own.")


def _check_unsupported(job: TuningJob) -> None:
    criteria = job.configuration.get("TuningJobCompletionCriteria", {})
    if criteria.get("ConvergenceDetected", {}).get("CompleteOnConvergence") == "Enabled":
        raise ValidationException(
            "CompleteOnConvergence is not emulated. Use BestObjectiveNotImproving or TargetObjectiveMetricValue."
        )
    if "Autotune" in job.request:
        raise ValidationException("Autotune is not emulated: give Strategy, ResourceLimits and ParameterRanges.")
    own = [each.get("HyperParameterRanges", {}) for each in job.definitions]
    if any(each.get("AutoParameters") for each in (job.configuration.get("ParameterRanges", {}), *own)):
        raise ValidationException("AutoParameters are not emulated: give each parameter a range.")


def _check_ranges(job: TuningJob, definition: Mapping[str, Any]) -> None:
    ranges = job.list_ranges(definition)
    if not ranges:
        raise ValidationException("At least one hyperparameter must have a range: there would be nothing to tune.")
    for name, (kind, each) in ranges.items():
        if kind == "CategoricalParameterRanges":
            continue
        if job.configuration["Strategy"] == "Grid":
            raise ValidationException(
                f"The strategy Grid takes CategoricalParameterRanges only, and {name!r} is one of {kind}."
            )
        _check_numbers(name, kind, each)
    both = sorted(ranges.keys() & definition.get("StaticHyperParameters", {}).keys())
    if both:
        raise ValidationException(f"{', '.join(both)} cannot be both in StaticHyperParameters and in a range.")


def _check_numbers(name: str, kind: str, each: Mapping[str, Any]) -> None:
    texts = each["MinValue"], each["MaxValue"]
    low, high = map(read_number, texts)
    whole = kind == "IntegerParameterRanges"
    if low is None or high is None or (whole and not all(text.lstrip("+-").isdecimal() for text in texts)):
        raise ValidationException(
            f"MinValue {each['MinValue']!r} and MaxValue {each['MaxValue']!r} of {name!r} must be numbers of {kind}."
        )
    if not low <= high:
        raise ValidationException(f"MinValue of {name!r} must not be more than MaxValue.")
    scaling = each.get("ScalingType")
    if scaling == "Logarithmic" and low <= 0:
        raise ValidationException(f"{name!r} has ScalingType Logarithmic: MinValue must be more than 0.")
    if scaling == "ReverseLogarithmic" and (whole or low < 0 or high >= 1):
        raise ValidationException(
            f"{name!r} has ScalingType ReverseLogarithmic: it must be continuous, from 0 to less than 1."
        )


def _check_objective(job: TuningJob, definition: Mapping[str, Any]) -> None:
    objective = job.find_objective(definition)
    if not objective:
        raise ValidationException(
            "HyperParameterTuningJobObjective must be given, or a TuningObjective in each of TrainingJobDefinitions."
        )
    training = job.build_training_request(definition, "sample", {}, ())
    metrics = [each["Name"] for each in training["AlgorithmSpecification"].get("MetricDefinitions", ())]
    if objective["MetricName"] not in metrics:
        raise ValidationException(
            "A metric is required for this hyperparameter tuning job objective. Provide a metric in the metric "
            f"definitions: {objective['MetricName']!r} is not one of them."
        )


def _sample_parameters(job: TuningJob, definition: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: each["Values"][0] if kind == "CategoricalParameterRanges" else each["MinValue"]
        for name, (kind, each) in job.list_ranges(definition).items()
    }


def _check_limits(job: TuningJob) -> None:
    configuration = job.configuration
    limits = configuration["ResourceLimits"]
    most = limits.get("MaxNumberOfTrainingJobs")
    if configuration["Strategy"] == "Grid":
        combinations = sum(count_combinations(job, definition) for definition in job.definitions)
        if most is not None and most != combinations:
            raise ValidationException(
                f"MaxNumberOfTrainingJobs is {most}, and the grid has {combinations} combinations: give that number, "
                "or leave it out."
            )
    elif most is None and "MaxRuntimeInSeconds" not in limits and not configuration.get("TuningJobCompletionCriteria"):
        raise ValidationException(
            "ResourceLimits must have MaxNumberOfTrainingJobs or MaxRuntimeInSeconds, or the job "
            "TuningJobCompletionCriteria."
        )
    elif most is not None and limits["MaxParallelTrainingJobs"] > most:
        raise ValidationException("MaxParallelTrainingJobs must be less than or equal to MaxNumberOfTrainingJobs.")
