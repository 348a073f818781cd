"""EventBridge envelopes of job state changes.

Pure functions.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from emulator.jobs.model.pipeline_execution import EXECUTION_STATUSES, PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.tuning_job import TuningJob

_DETAIL_TYPES: Mapping[type[Any], str] = {
    TrainingJob: "SageMaker Training Job State Change",
    RuleEvaluation: "SageMaker Processing Job State Change",
    ProcessingJob: "SageMaker Processing Job State Change",
    TuningJob: "SageMaker HyperParameter Tuning Job State Change",
    PipelineExecution: "SageMaker Model Building Pipeline Execution Status Change",
}

# Every member of the descriptions that is a time; an event has them in milliseconds.
_TIMES = frozenset(
    {
        "CreationTime",
        "LastModifiedTime",
        "TrainingStartTime",
        "TrainingEndTime",
        "ProcessingStartTime",
        "ProcessingEndTime",
        "StartTime",
        "EndTime",
        "Timestamp",
        "HyperParameterTuningEndTime",
    }
)
# What came with the request is the user's text: nothing in it is a time of ours.
_RUN_STATE_LISTS = frozenset(
    {
        "SecondaryStatusTransitions",
        "FinalMetricDataList",
        "DebugRuleEvaluationStatuses",
        "ProfilerRuleEvaluationStatuses",
    }
)


def build_event(
    job: TrainingJob | RuleEvaluation | ProcessingJob | TuningJob | PipelineExecution,
    detail: dict[str, Any],
    *,
    event_id: str,
    now_ms: int,
) -> dict[str, Any]:
    """Build the event of a change to a job, to one of its rules' statuses, or to a pipeline's execution."""
    return {
        "version": "0",
        "id": event_id,
        "detail-type": _DETAIL_TYPES[type(job)],
        "source": "aws.sagemaker",
        "account": job.account_id,
        "time": _spell_time(now_ms),
        "region": job.region,
        "resources": [job.arn],
        "detail": detail,
    }


def build_job_detail(description: Mapping[str, Any], tags: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Build the detail of a job's event from its description."""
    return {**_with_millisecond_times(description), "Tags": {tag["Key"]: tag["Value"] for tag in tags}}


def build_execution_detail(execution: PipelineExecution) -> dict[str, Any]:
    """Build the detail of a pipeline execution's event."""
    detail: dict[str, Any] = {
        "pipelineArn": execution.pipeline_arn,
        "pipelineExecutionArn": execution.arn,
        "pipelineExecutionDisplayName": execution.request.get("PipelineExecutionDisplayName", execution.name),
        "currentPipelineExecutionStatus": EXECUTION_STATUSES[execution.status],
        "executionStartTime": _spell_time(execution.creation_ms),
    }
    if execution.end_ms is not None:
        detail["executionEndTime"] = _spell_time(execution.end_ms)
    return detail


def _spell_time(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms // 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _with_millisecond_times(description: Mapping[str, Any]) -> dict[str, Any]:
    """Copy it with the run state's times in epoch milliseconds, as whole numbers."""
    changed = dict(description)
    for key, value in description.items():
        if key in _TIMES:
            changed[key] = round(value * 1000)
        elif key in _RUN_STATE_LISTS:
            changed[key] = [_with_millisecond_times(entry) for entry in value]
        elif key == "BestTrainingJob":
            changed[key] = _with_millisecond_times(value)
    return changed
