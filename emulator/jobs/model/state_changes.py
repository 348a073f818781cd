"""EventBridge envelopes of job state changes.

Pure functions.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from emulator.jobs.model.descriptions import describe_processing_job, describe_training_job, describe_tuning_job
from emulator.jobs.model.pipeline_execution import EXECUTION_STATUSES, PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.tuning_job import TuningJob

TRAINING_JOB_STATE_CHANGE = "SageMaker Training Job State Change"
PROCESSING_JOB_STATE_CHANGE = "SageMaker Processing Job State Change"
PIPELINE_STATE_CHANGE = "SageMaker Model Building Pipeline Execution Status Change"
TUNING_JOB_STATE_CHANGE = "SageMaker HyperParameter Tuning Job State Change"

# Every member of the two descriptions that is a time; an event has them in milliseconds.
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


def build_training_job_event(
    job: TrainingJob,
    evaluations: Sequence[RuleEvaluation],
    tags: Sequence[Mapping[str, str]],
    *,
    event_id: str,
    now_ms: int,
) -> dict[str, Any]:
    """Build the event of a change to ``job`` or to one of its rules' statuses."""
    detail = _with_millisecond_times(describe_training_job(job, evaluations))
    detail["Tags"] = {tag["Key"]: tag["Value"] for tag in tags}
    return _build_envelope(
        TRAINING_JOB_STATE_CHANGE, job.account_id, job.region, job.arn, detail, event_id=event_id, now_ms=now_ms
    )


def build_processing_job_event(
    job: ProcessingJob | RuleEvaluation,
    training_job: TrainingJob | None,
    tags: Sequence[Mapping[str, str]],
    *,
    event_id: str,
    now_ms: int,
) -> dict[str, Any]:
    """Build the event of a change to a processing job; ``training_job`` is the one that it judges, if it does."""
    detail = _with_millisecond_times(describe_processing_job(job, training_job))
    detail["Tags"] = {tag["Key"]: tag["Value"] for tag in tags}
    return _build_envelope(
        PROCESSING_JOB_STATE_CHANGE, job.account_id, job.region, job.arn, detail, event_id=event_id, now_ms=now_ms
    )


def build_tuning_job_event(
    job: TuningJob,
    training_jobs: Sequence[TrainingJob],
    tags: Sequence[Mapping[str, str]],
    *,
    event_id: str,
    now_ms: int,
) -> dict[str, Any]:
    """Build the event of a change to a hyperparameter tuning job."""
    detail = _with_millisecond_times(describe_tuning_job(job, training_jobs))
    detail["Tags"] = {tag["Key"]: tag["Value"] for tag in tags}
    return _build_envelope(
        TUNING_JOB_STATE_CHANGE, job.account_id, job.region, job.arn, detail, event_id=event_id, now_ms=now_ms
    )


def build_pipeline_event(
    execution: PipelineExecution, _tags: Sequence[Mapping[str, str]], *, event_id: str, now_ms: int
) -> dict[str, Any]:
    """Build the event of a change to a pipeline's execution."""
    detail: dict[str, Any] = {
        "pipelineArn": execution.pipeline_arn,
        "pipelineExecutionArn": execution.arn,
        "pipelineExecutionDisplayName": execution.request.get("PipelineExecutionDisplayName", execution.name),
        "currentPipelineExecutionStatus": EXECUTION_STATUSES[execution.status],
        "executionStartTime": _spell_time(execution.creation_ms),
    }
    if execution.end_ms is not None:
        detail["executionEndTime"] = _spell_time(execution.end_ms)
    return _build_envelope(
        PIPELINE_STATE_CHANGE,
        *(execution.account_id, execution.region, execution.arn, detail),
        event_id=event_id,
        now_ms=now_ms,
    )


def _spell_time(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms // 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _build_envelope(
    detail_type: str, account_id: str, region: str, arn: str, detail: dict[str, Any], *, event_id: str, now_ms: int
) -> dict[str, Any]:
    return {
        "version": "0",
        "id": event_id,
        "detail-type": detail_type,
        "source": "aws.sagemaker",
        "account": account_id,
        "time": _spell_time(now_ms),
        "region": region,
        "resources": [arn],
        "detail": detail,
    }


def _with_millisecond_times(description: dict[str, Any]) -> dict[str, Any]:
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
