"""Hyperparameter tuning job records, and totals of their training jobs.

Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from emulator.jobs.model.arns import build_arn
from emulator.jobs.model.requested_job import RequestedJob
from emulator.jobs.model.training_job import TrainingJob

ObjectiveStatus = Literal["Succeeded", "Pending", "Failed"]

# What a training job's request has beside CreateTrainingJob's members when a tuning job made it.
TUNING_JOB_ARN = "TuningJobArn"
DEFINITION_NAME = "TrainingJobDefinitionName"

RANGES = ("IntegerParameterRanges", "ContinuousParameterRanges", "CategoricalParameterRanges")

_NOT_OF_TRAINING = frozenset(
    {
        "DefinitionName",
        "TuningObjective",
        "HyperParameterRanges",
        "StaticHyperParameters",
        "HyperParameterTuningResourceConfig",
    }
)
_VOLUME_GB = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningJob(RequestedJob):
    """A hyperparameter tuning job: its request and the state of its run; its training jobs are in the store."""

    @property
    def arn(self) -> str:
        """The job's ARN."""
        return build_tuning_job_arn(self.account_id, self.region, self.name)

    @property
    def configuration(self) -> Mapping[str, Any]:
        """HyperParameterTuningJobConfig."""
        found: Mapping[str, Any] = self.request["HyperParameterTuningJobConfig"]
        return found

    @property
    def definitions(self) -> Sequence[Mapping[str, Any]]:
        """What its training jobs are made by: one definition or several."""
        return self.request.get("TrainingJobDefinitions") or [self.request["TrainingJobDefinition"]]

    def find_objective(self, definition: Mapping[str, Any]) -> Mapping[str, Any]:
        """Find the objective of the training jobs of a definition."""
        found: Mapping[str, Any] = definition.get("TuningObjective") or self.configuration.get(
            "HyperParameterTuningJobObjective", {}
        )
        return found

    def list_ranges(self, definition: Mapping[str, Any]) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """Kind and range of each hyperparameter that is tuned, by name."""
        ranges = definition.get("HyperParameterRanges") or self.configuration.get("ParameterRanges") or {}
        return {each["Name"]: (kind, each) for kind in RANGES for each in ranges.get(kind) or ()}

    def find_definition(self, job: TrainingJob) -> Mapping[str, Any]:
        """Find the definition that a training job was made by."""
        name = job.request.get(DEFINITION_NAME)
        return next(each for each in self.definitions if each.get("DefinitionName") == name)

    def build_training_request(
        self, definition: Mapping[str, Any], name: str, parameters: Mapping[str, str], tags: Sequence[Mapping[str, str]]
    ) -> dict[str, Any]:
        """Build what CreateTrainingJob gets for one training job.

        What a definition has beside the model's members, such as DebugHookConfig, is part of it.
        """
        request = {key: value for key, value in definition.items() if key not in _NOT_OF_TRAINING}
        if "ResourceConfig" not in request and (resources := definition.get("HyperParameterTuningResourceConfig")):
            first = (resources.get("InstanceConfigs") or [resources])[0]
            request["ResourceConfig"] = {
                "InstanceType": first.get("InstanceType"),
                "InstanceCount": first.get("InstanceCount", 1),
                "VolumeSizeInGB": first.get("VolumeSizeInGB", _VOLUME_GB),
            }
        metric = self.find_objective(definition)["MetricName"]
        return request | {
            "TrainingJobName": name,
            "HyperParameters": {
                **definition.get("StaticHyperParameters", {}),
                **parameters,
                "_tuning_objective_metric": metric,
            },
            "Tags": list(tags),
            "AlgorithmSpecification": _define_metric(definition["AlgorithmSpecification"], metric),
            TUNING_JOB_ARN: self.arn,
            **({DEFINITION_NAME: definition["DefinitionName"]} if "DefinitionName" in definition else {}),
        }

    def read_tuned_job(self, job: TrainingJob) -> TunedJob:
        """Say what became of one of its training jobs."""
        definition = self.find_definition(job)
        objective = self.find_objective(definition)
        names = self.list_ranges(definition)
        parameters = {name: value for name, value in job.request["HyperParameters"].items() if name in names}
        metrics = {metric.name: metric.value for metric in job.final_metrics}
        value = metrics.get(objective["MetricName"]) if job.ended and job.status != "Failed" else None
        status: ObjectiveStatus = "Pending" if not job.ended else "Failed" if value is None else "Succeeded"
        return TunedJob(job, definition, objective, parameters, value, status)

    def find_best(self, tuned: Sequence[TunedJob]) -> TunedJob | None:
        """Find the training job with the best value of the first definition's objective; None without any."""
        valued = [each for each in tuned if each.value is not None]
        return max(valued, key=lambda each: each.score) if valued else None


@dataclass(frozen=True, slots=True)
class TunedJob:
    """A training job of a tuning job.

    Attributes:
        parameters: those that were tuned, as the job got them.
        value: the objective's last, once the job has ended.
    """

    job: TrainingJob
    definition: Mapping[str, Any]
    objective: Mapping[str, Any]
    parameters: Mapping[str, str]
    value: float | None
    objective_status: ObjectiveStatus

    @property
    def score(self) -> float:
        """The value, turned so that more is better."""
        assert self.value is not None
        return self.value if self.objective["Type"] == "Maximize" else -self.value


def _define_metric(algorithm: Mapping[str, Any], metric: str) -> Mapping[str, Any]:
    """Add what AWS's own XGBoost image is known to print, where the request defines no metrics."""
    if algorithm.get("MetricDefinitions") or "xgboost" not in algorithm.get("TrainingImage", "") or ":" not in metric:
        return algorithm
    pattern = metric.replace(":", "-") + r":([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)"
    return {**algorithm, "MetricDefinitions": [{"Name": metric, "Regex": pattern}]}


def count_jobs(tuned: Sequence[TunedJob]) -> dict[str, dict[str, int]]:
    """Both counters of a tuning job's description."""
    jobs = Counter(_count_as(each.job) for each in tuned)
    objectives = Counter(each.objective_status for each in tuned)
    kinds = ("Completed", "InProgress", "RetryableError", "NonRetryableError", "Stopped")
    return {
        "TrainingJobStatusCounters": {kind: jobs[kind] for kind in kinds},
        "ObjectiveStatusCounters": {kind: objectives[kind] for kind in ("Succeeded", "Pending", "Failed")},
    }


def _count_as(job: TrainingJob) -> str:
    if job.status == "Failed":
        retryable = (job.failure_reason or "").startswith(("InternalServerError", "CapacityError"))
        return "RetryableError" if retryable else "NonRetryableError"
    return job.status if job.ended else "InProgress"


def build_tuning_job_arn(account_id: str, region: str, name: str) -> str:
    """Build the ARN of a hyperparameter tuning job: AWS lowers the name in it."""
    return build_arn(account_id, region, f"hyper-parameter-tuning-job/{name.lower()}")
