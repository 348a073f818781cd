import json
from typing import Any

from emulator.jobs.model.descriptions import describe_processing_job, describe_training_job
from emulator.jobs.model.rule_evaluation import new_rule_evaluation
from emulator.jobs.model.state_changes import build_event, build_job_detail
from emulator.jobs.model.training_job import new_training_job

REQUEST: dict[str, Any] = {
    "TrainingJobName": "job",
    "RoleArn": "arn:aws:iam::1:role/x",
    "HyperParameters": {"CreationTime": "mine"},
    "OutputDataConfig": {"S3OutputPath": "s3://bkt/out"},
    "DebugHookConfig": {"S3OutputPath": "s3://bkt/t"},
    "DebugRuleConfigurations": [{"RuleConfigurationName": "R", "RuleEvaluatorImage": "rules:latest"}],
    "ProfilerRuleConfigurations": [{"RuleConfigurationName": "P", "RuleEvaluatorImage": "rules:latest"}],
    "Tags": [{"Key": "team", "Value": "a"}],
}


def test_training_event_is_the_description_with_millisecond_times() -> None:
    job = new_training_job("123456789012", "eu-west-1", "id", REQUEST, 1_700_000_000_123)
    job = job.transition("Downloading", 1_700_000_001_456)
    rule, other = (
        new_rule_evaluation(job.account_id, job.region, "job", 0, REQUEST[member][0], "0123abcd", 1_700_000_000_123)
        for member in ("DebugRuleConfigurations", "ProfilerRuleConfigurations")
    )
    rule = rule.transition("IssuesFound", 1_700_000_002_789, status_details="RuleEvaluationConditionMet: …")
    described = build_job_detail(describe_training_job(job, [rule, other]), REQUEST["Tags"])
    event = build_event(job, described, event_id="e1", now_ms=1_700_000_002_999)
    assert {key: value for key, value in event.items() if key != "detail"} == {
        "version": "0",
        "id": "e1",
        "detail-type": "SageMaker Training Job State Change",
        "source": "aws.sagemaker",
        "account": "123456789012",
        "time": "2023-11-14T22:13:22Z",
        "region": "eu-west-1",
        "resources": ["arn:aws:sagemaker:eu-west-1:123456789012:training-job/job"],
    }
    detail = event["detail"]
    assert detail["CreationTime"] == 1_700_000_000_123
    assert detail["TrainingStartTime"] == 1_700_000_001_456
    assert detail["SecondaryStatusTransitions"][0]["EndTime"] == 1_700_000_001_456
    assert detail["HyperParameters"] == {"CreationTime": "mine"}
    assert detail["DebugHookConfig"] == REQUEST["DebugHookConfig"]
    assert detail["DebugRuleConfigurations"] == [{**REQUEST["DebugRuleConfigurations"][0], "VolumeSizeInGB": 0}]
    assert detail["DebugRuleEvaluationStatuses"] == [
        {
            "RuleConfigurationName": "R",
            "RuleEvaluationJobArn": "arn:aws:sagemaker:eu-west-1:123456789012:processing-job/job-r-0123abcd",
            "RuleEvaluationStatus": "IssuesFound",
            "StatusDetails": "RuleEvaluationConditionMet: …",
            "LastModifiedTime": 1_700_000_002_789,
        }
    ]
    assert detail["ProfilerRuleEvaluationStatuses"][0]["LastModifiedTime"] == 1_700_000_000_123
    assert detail["Tags"] == {"team": "a"}
    json.dumps(event)


def test_processing_event_names_the_processing_job() -> None:
    job = new_training_job("123456789012", "eu-west-1", "id", REQUEST, 1_000)
    configuration = {"RuleConfigurationName": "R", "RuleEvaluatorImage": "rules:latest"}
    rule = new_rule_evaluation("123456789012", "eu-west-1", "job", 0, configuration, "0123abcd", 1_000)
    failed = rule.start(2_000).transition("Error", 3_000, status_details="why")
    described = build_job_detail(describe_processing_job(failed, job), ())
    event = build_event(failed, described, event_id="e2", now_ms=3_000)
    assert event["detail-type"] == "SageMaker Processing Job State Change"
    assert event["resources"] == [failed.arn]
    detail = event["detail"]
    assert (detail["ProcessingJobName"], detail["ProcessingJobStatus"]) == ("job-R-0123abcd", "Failed")
    assert (detail["ProcessingStartTime"], detail["ProcessingEndTime"]) == (2_000, 3_000)
    assert detail["FailureReason"] == "why"
    assert detail["TrainingJobArn"] == job.arn
