"""CreateTrainingJob."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from emulator.exceptions import ResourceLimitExceeded, ValidationException

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response

MAX_RULES = 20


def create_training_job(request: Request, context: Context) -> Response:
    """Store the job and start it.

    Raises:
        ValidationException, ResourceInUse, ResourceLimitExceeded.
    """
    _check_algorithm(request)
    _check_rules(request)
    _check_channels(request)
    job = context.jobs.create(context.region, request)
    return {"TrainingJobArn": context.jobs.describe(job)["TrainingJobArn"]}


def _check_algorithm(request: Request) -> None:
    """The model requires none of these, because other kinds of training leave them out; a container needs them."""
    algorithm = request.get("AlgorithmSpecification", {})
    if bool(algorithm.get("TrainingImage")) == bool(algorithm.get("AlgorithmName")):
        raise ValidationException(
            "Exactly one of TrainingImage and AlgorithmName must be given in AlgorithmSpecification."
        )
    if "AlgorithmName" in algorithm:
        raise ValidationException(
            f"AlgorithmSpecification names the algorithm {algorithm['AlgorithmName']!r}; this emulator knows no "
            "algorithms by name. Give its TrainingImage."
        )
    missing = [name for name in ("ResourceConfig", "StoppingCondition") if name not in request]
    if missing:
        raise ValidationException(f"{' and '.join(missing)} must be given for a job with a TrainingImage.")


def _check_rules(request: Request) -> None:
    rules = [*request.get("DebugRuleConfigurations", []), *request.get("ProfilerRuleConfigurations", [])]
    if len(rules) > MAX_RULES:
        raise ResourceLimitExceeded(
            f"A training job may have at most {MAX_RULES} rules; this request has {len(rules)} in "
            "DebugRuleConfigurations and ProfilerRuleConfigurations."
        )
    names = Counter(rule["RuleConfigurationName"] for rule in rules)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ValidationException(
            f"RuleConfigurationName must be unique within a training job. Used more than once: {', '.join(twice)}."
        )


def _check_channels(request: Request) -> None:
    names = Counter(channel["ChannelName"] for channel in request.get("InputDataConfig", []))
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ValidationException(f"Channel names must be unique. Used more than once: {', '.join(twice)}.")
