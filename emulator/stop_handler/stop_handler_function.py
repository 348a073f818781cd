"""Stop handler: a Lambda function that stops a job when a rule finds an issue.

EventBridge calls it with every "SageMaker Training Job State Change". This file is deployed unchanged, and runs on
AWS as well. It must import nothing but the standard library and boto3.

Environment:
    RULE_NAMES: names of rule configurations, separated by commas; only these stop a job. Empty: all that judge tensors.
        A rule of the profiler stops a job only if it is named: that a job wastes its machine need not end it.
    JOB_NAME_PREFIX: only jobs whose name begins so are stopped. Empty: all of them.
"""

import logging
import os
from typing import Any

import boto3
from botocore.exceptions import ClientError

# A separate logger: the root logger would include botocore.
logger = logging.getLogger("stop_handler")
logger.setLevel(logging.INFO)

# Created once for each worker, so that only the first invocation is slower.
sagemaker = boto3.client("sagemaker")


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Stop the job in ``event`` if it is running and a rule has fired."""
    detail = event["detail"]
    job = detail["TrainingJobName"]
    issues = find_issues(detail)
    if not issues:
        return {"TrainingJobName": job, "Stopped": False, "Reason": "no rule has found an issue"}
    if not job.startswith(os.environ.get("JOB_NAME_PREFIX", "")):
        return {"TrainingJobName": job, "Stopped": False, "Reason": "the job's name is not among those to stop"}
    status = detail["TrainingJobStatus"]
    if status != "InProgress":
        return {"TrainingJobName": job, "Stopped": False, "Reason": f"the job is {status}"}
    return stop(job, issues)


def find_issues(detail: dict[str, Any]) -> list[str]:
    """Return the rule configurations that found an issue, limited to those in RULE_NAMES."""
    wanted = {name.strip() for name in os.environ.get("RULE_NAMES", "").split(",") if name.strip()}
    judged = list(detail.get("DebugRuleEvaluationStatuses") or [])
    if wanted:
        judged += detail.get("ProfilerRuleEvaluationStatuses") or []
    return [
        rule["RuleConfigurationName"]
        for rule in judged
        if rule["RuleEvaluationStatus"] == "IssuesFound" and (not wanted or rule["RuleConfigurationName"] in wanted)
    ]


def stop(job: str, issues: list[str]) -> dict[str, Any]:
    """Stop ``job``, unless it has ended since the event was sent."""
    try:
        sagemaker.stop_training_job(TrainingJobName=job)
    except ClientError as error:
        # SageMaker answers with ValidationException for a job that has ended or is being stopped.
        if error.response["Error"]["Code"] != "ValidationException":
            raise
        logger.info("The stop of %s came too late: %s", job, error)
        return {"TrainingJobName": job, "Stopped": False, "Reason": str(error)}
    logger.info("Stopped %s: %s found issues", job, ", ".join(issues))
    return {"TrainingJobName": job, "Stopped": True, "Reason": f"issues found by {', '.join(issues)}"}
