"""Describe responses, built from job records.

Pure functions. Times are in epoch seconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from emulator.jobs.model.pipeline_execution import EXECUTION_STATUSES, PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.profiler_config import DEFAULT_INTERVAL_MS, is_profiled, is_profiler_rule
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import SecondaryStatusTransition, TrainingJob
from emulator.jobs.model.tuning_job import TunedJob, TuningJob, count_jobs

# The two members of CreateTrainingJob that Describe does not give back.
_NOT_DESCRIBED = frozenset({"Tags", "SessionChainingConfig"})

# What AWS fills in where a request says nothing, as jobs described there show: clients read some of it unasked.
_DEFAULTS: dict[str, Any] = {
    "InputDataConfig": [],
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
}
_OUTPUT_DEFAULTS = {"KmsKeyId": "", "CompressionType": "GZIP"}
_CHANNEL_DEFAULTS = {"CompressionType": "None", "RecordWrapperType": "None"}
_RULE_DEFAULTS = {"VolumeSizeInGB": 0}

_INPUT_DEFAULTS = {"S3DataDistributionType": "FullyReplicated", "S3CompressionType": "None"}

_STEP_METADATA = {"Training": "TrainingJob", "Processing": "ProcessingJob", "Tuning": "TuningJob"}

_RULE_INSTANCE_TYPE = "ml.t3.medium"
_RULE_VOLUME_GB = 30


def describe_training_job(job: TrainingJob, evaluations: Sequence[RuleEvaluation]) -> dict[str, Any]:
    """DescribeTrainingJob's members that have a value."""
    metrics = [
        {"MetricName": metric.name, "Value": metric.value, "Timestamp": _to_seconds(metric.timestamp_ms)}
        for metric in job.final_metrics
    ]
    description = _describe_request(job.request)
    description |= {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "TrainingJobStatus": job.status,
        "SecondaryStatus": job.secondary_status,
        "CreationTime": _to_seconds(job.creation_ms),
        "LastModifiedTime": _to_seconds(job.last_modified_ms),
        "SecondaryStatusTransitions": [_describe_transition(entry) for entry in job.transitions],
        "FailureReason": job.failure_reason,
        "ModelArtifacts": job.model_artifacts and {"S3ModelArtifacts": job.model_artifacts},
        "TrainingStartTime": _to_seconds(job.training_start_ms),
        "TrainingEndTime": _to_seconds(job.training_end_ms),
        "TrainingTimeInSeconds": job.training_seconds,
        "BillableTimeInSeconds": job.billable_seconds,
        "FinalMetricDataList": metrics or None,
    }
    for member, of_profiler in (("DebugRuleEvaluationStatuses", False), ("ProfilerRuleEvaluationStatuses", True)):
        statuses = [
            _describe_evaluation(each)
            for each in evaluations
            if is_profiler_rule(job.request, each.rule_configuration_name) is of_profiler
        ]
        description[member] = statuses or None
    return _drop_absent(description)


def describe_processing_job(
    job: ProcessingJob | RuleEvaluation, training_job: TrainingJob | None = None
) -> dict[str, Any]:
    """DescribeProcessingJob's members that have a value; of a rule evaluation, with the training job it judges."""
    if isinstance(job, ProcessingJob):
        description, exit_message, failure_reason = _describe_processing(job), job.exit_message, job.failure_reason
    else:
        assert training_job is not None
        description, failed = _describe_rule(job, training_job), job.status == "Error"
        exit_message = None if failed else job.status_details
        failure_reason = job.status_details if failed else None
    description |= {
        "ProcessingJobName": job.name,
        "ProcessingJobArn": job.arn,
        "ProcessingJobStatus": job.processing_job_status,
        "CreationTime": _to_seconds(job.creation_ms),
        "LastModifiedTime": _to_seconds(job.last_modified_ms),
        "ProcessingStartTime": _to_seconds(job.start_ms),
        "ProcessingEndTime": _to_seconds(job.end_ms),
        "ExitMessage": exit_message,
        "FailureReason": failure_reason,
    }
    return _drop_absent(description)


def _describe_processing(job: ProcessingJob) -> dict[str, Any]:
    """Describe what was asked for, with AWS's defaults for what was not."""
    request = {key: value for key, value in job.request.items() if key not in _NOT_DESCRIBED}
    described = {"StoppingCondition": {"MaxRuntimeInSeconds": job.max_runtime_seconds}} | request
    if inputs := request.get("ProcessingInputs"):
        described["ProcessingInputs"] = [
            {"AppManaged": False, **each}
            | ({"S3Input": _INPUT_DEFAULTS | each["S3Input"]} if "S3Input" in each else {})
            for each in inputs
        ]
    if output := request.get("ProcessingOutputConfig"):
        described["ProcessingOutputConfig"] = output | {
            "Outputs": [{"AppManaged": False, **each} for each in output["Outputs"]]
        }
    return described


def _describe_rule(evaluation: RuleEvaluation, training_job: TrainingJob) -> dict[str, Any]:
    configuration = evaluation.configuration
    return {
        "ProcessingResources": {
            "ClusterConfig": {
                "InstanceCount": 1,
                "InstanceType": configuration.get("InstanceType") or _RULE_INSTANCE_TYPE,
                "VolumeSizeInGB": configuration.get("VolumeSizeInGB") or _RULE_VOLUME_GB,
            }
        },
        "AppSpecification": {"ImageUri": configuration["RuleEvaluatorImage"]},
        "Environment": dict(configuration.get("RuleParameters") or {}),
        "TrainingJobArn": training_job.arn,
        "RoleArn": training_job.request.get("RoleArn") or None,
    }


def describe_tuning_job(job: TuningJob, training_jobs: Sequence[TrainingJob]) -> dict[str, Any]:
    """DescribeHyperParameterTuningJob's members that have a value, with those of its summary."""
    tuned = [job.read_tuned_job(each) for each in training_jobs]
    best = job.find_best(tuned)
    end_ms = job.end_ms or job.last_modified_ms
    description: dict[str, Any] = {key: value for key, value in job.request.items() if key not in _NOT_DESCRIBED}
    description |= {
        "HyperParameterTuningJobName": job.name,
        "HyperParameterTuningJobArn": job.arn,
        "HyperParameterTuningJobStatus": job.status,
        "Strategy": job.configuration["Strategy"],
        "ResourceLimits": job.configuration["ResourceLimits"],
        "CreationTime": _to_seconds(job.creation_ms),
        "LastModifiedTime": _to_seconds(job.last_modified_ms),
        "ConsumedResources": {"RuntimeInSeconds": (end_ms - job.creation_ms) // 1000},
        **count_jobs(tuned),
        "HyperParameterTuningEndTime": _to_seconds(job.end_ms),
        "FailureReason": job.failure_reason,
        "BestTrainingJob": best and describe_tuned_job(job, best),
    }
    return _drop_absent(description)


def describe_overall_best(jobs: Sequence[tuple[TuningJob, Sequence[TrainingJob]]]) -> dict[str, Any] | None:
    """Describe the best training job of a warm start and its parents, the warm start first; None without any value."""
    bests = [(job, job.find_best([job.read_tuned_job(each) for each in training_jobs])) for job, training_jobs in jobs]
    valued = [(job, best) for job, best in bests if best is not None]
    if not valued:
        return None
    job, best = max(valued, key=lambda each: each[1].score)
    return {**describe_tuned_job(job, best), "TuningJobName": job.name}


def describe_tuned_job(tuning_job: TuningJob, tuned: TunedJob) -> dict[str, Any]:
    """HyperParameterTrainingJobSummary of one of a tuning job's training jobs."""
    job = tuned.job
    metric = None
    if tuned.value is not None:
        metric = {"MetricName": tuned.objective["MetricName"], "Value": tuned.value}
        if tuning_job.definitions[0].get("TuningObjective") is not None:
            metric["Type"] = tuned.objective["Type"]
    description = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "CreationTime": _to_seconds(job.creation_ms),
        "TrainingJobStatus": job.status,
        "TunedHyperParameters": dict(tuned.parameters),
        "ObjectiveStatus": tuned.objective_status,
        "TrainingJobDefinitionName": tuned.definition.get("DefinitionName"),
        "TrainingStartTime": _to_seconds(job.training_start_ms),
        "TrainingEndTime": _to_seconds(job.training_end_ms),
        "FailureReason": job.failure_reason,
        "FinalHyperParameterTuningJobObjectiveMetric": metric,
    }
    return _drop_absent(description)


def describe_pipeline_execution(execution: PipelineExecution) -> dict[str, Any]:
    """DescribePipelineExecution's members that have a value, with those of its summary."""
    request = execution.request
    echoed = (
        "PipelineExecutionDescription",
        "ParallelismConfiguration",
        "SelectiveExecutionConfig",
        "PipelineVersionId",
    )
    described: dict[str, Any] = {key: request[key] for key in echoed if key in request}
    described |= {
        "PipelineArn": execution.pipeline_arn,
        "PipelineExecutionArn": execution.arn,
        "PipelineExecutionDisplayName": request.get("PipelineExecutionDisplayName", f"execution-{execution.name}"),
        "PipelineExecutionStatus": EXECUTION_STATUSES[execution.status],
        "StartTime": _to_seconds(execution.creation_ms),
        "CreationTime": _to_seconds(execution.creation_ms),
        "LastModifiedTime": _to_seconds(execution.last_modified_ms),
        "FailureReason": execution.failure_reason,
        "PipelineExecutionFailureReason": execution.failure_reason,
    }
    return _drop_absent(described)


def describe_steps(execution: PipelineExecution) -> list[dict[str, Any]]:
    """PipelineExecutionSteps of an execution, in the order they were started."""
    described = []
    for name, step in execution.steps.items():
        member = _STEP_METADATA.get(step["type"], step["type"])
        metadata = step.get("metadata") or ({"Arn": step["arn"]} if "arn" in step else None)
        described.append(
            {
                "StepName": name,
                "StepStatus": step["status"],
                "StartTime": _to_seconds(step["start_ms"]),
                "AttemptCount": execution.count_attempts(name),
                "FailureReason": step.get("failure_reason"),
                "EndTime": _to_seconds(step.get("end_ms")),
                "Metadata": {member: metadata} if metadata else {},
                "SelectiveExecutionResult": {"SourcePipelineExecutionArn": step["source"]}
                if "source" in step
                else None,
            }
        )
    return described


def _to_seconds(epoch_ms: int | None) -> float | None:
    """Epoch seconds, as the wire has them; None for what has not happened."""
    return None if epoch_ms is None else epoch_ms / 1000


def _drop_absent(members: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the members without a value."""
    return {member: value for member, value in members.items() if value is not None}


def _describe_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Describe what was asked for, with AWS's defaults for what was not."""
    described = _DEFAULTS | {key: value for key, value in request.items() if key not in _NOT_DESCRIBED}
    described["OutputDataConfig"] = _OUTPUT_DEFAULTS | described["OutputDataConfig"]
    described["InputDataConfig"] = [_CHANNEL_DEFAULTS | channel for channel in described["InputDataConfig"]]
    for rules in ("DebugRuleConfigurations", "ProfilerRuleConfigurations"):
        if rules in described:
            described[rules] = [_RULE_DEFAULTS | rule for rule in described[rules]]
    profiled = is_profiled(request)
    if profiled:
        described["ProfilerConfig"] = {
            "ProfilingIntervalInMilliseconds": DEFAULT_INTERVAL_MS,
            **request["ProfilerConfig"],
        }
    described["ProfilingStatus"] = "Enabled" if profiled else "Disabled"
    return described


def _describe_transition(entry: SecondaryStatusTransition) -> dict[str, Any]:
    described = {
        "Status": entry.status,
        "StartTime": _to_seconds(entry.start_ms),
        "StatusMessage": entry.message,
        "EndTime": _to_seconds(entry.end_ms),
    }
    return _drop_absent(described)


def _describe_evaluation(evaluation: RuleEvaluation) -> dict[str, Any]:
    described = {
        "RuleConfigurationName": evaluation.rule_configuration_name,
        "RuleEvaluationJobArn": evaluation.arn,
        "RuleEvaluationStatus": evaluation.status,
        "LastModifiedTime": _to_seconds(evaluation.last_modified_ms),
        "StatusDetails": evaluation.status_details,
    }
    return _drop_absent(described)
