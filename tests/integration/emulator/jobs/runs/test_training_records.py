"""Tests of stored training jobs: names, deletion, updates and lists."""

from typing import Any

import pytest

from emulator.exceptions import ResourceInUse, ResourceNotFound, ValidationException
from emulator.jobs.model.training_job import TrainingJob
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness


def test_name_taken_unknown_job_bad_name_and_no_data(harness: JobHarness) -> None:
    job, _ = harness.jobs.training.create(REGION, harness.request())
    with pytest.raises(ResourceInUse, match=rf"already exists \({job.arn}\)"):
        harness.jobs.training.create(REGION, harness.request())
    for call in (
        harness.jobs.training.get,
        harness.jobs.training.stop,
        harness.jobs.processing.get,
        harness.jobs.processing.stop,
    ):
        with pytest.raises(ValidationException, match=r"^Requested resource not found\.$"):
            call(REGION, "nobody")
    with pytest.raises(ValidationException, match="trainingJobName"):
        harness.jobs.training.create(REGION, harness.request("../x"))
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{harness.bucket}/nowhere"}}
    with pytest.raises(ValidationException, match="No S3 objects found under S3 URL"):
        harness.jobs.training.create(
            REGION, harness.request("empty", InputDataConfig=[{"ChannelName": "train", "DataSource": source}])
        )
    with pytest.raises(ValidationException, match="not found"):
        harness.jobs.training.get(REGION, "empty")
    with pytest.raises(ResourceNotFound, match="arn:x"):
        harness.jobs.tags.add("arn:x", [])


@pytest.mark.slow
def test_a_deleted_job_is_gone_and_its_name_is_free(harness: JobHarness) -> None:
    rules = [harness.rule("R", "pass")]
    tags = [{"Key": "a", "Value": "1"}]
    request = harness.request(
        script="print('first')", DebugHookConfig=harness.hook(), DebugRuleConfigurations=rules, Tags=tags
    )
    for _ in range(2):
        done = harness.run(request)
        assert done["TrainingJobStatus"] == "Completed"
        rule = done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationJobArn"]
        harness.jobs.training.delete(REGION, "job")
        for call in (harness.jobs.training.get, harness.jobs.training.stop):
            with pytest.raises(ValidationException, match="not found"):
                call(REGION, "job")
        for arn in (done["TrainingJobArn"], rule):
            with pytest.raises(ResourceNotFound):
                harness.jobs.tags.list_all(arn)
    with pytest.raises(ResourceNotFound):
        harness.jobs.training.delete(REGION, "job")
    assert harness.jobs.processing.list_page(REGION, {})[0] == []


def test_a_job_whose_warm_pool_is_available_is_not_deleted(harness: JobHarness) -> None:
    request = harness.request(script="")
    request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 600
    assert harness.run(request)["WarmPoolStatus"]["Status"] == "Available"
    with pytest.raises(ResourceInUse, match="retains an Available warm pool"):
        harness.jobs.training.delete(REGION, "job")
    harness.jobs.training.update(REGION, "job", lambda job: job.request, pool_seconds=0)
    harness.jobs.training.delete(REGION, "job")


@pytest.mark.slow
def test_what_has_not_ended_is_not_deleted(harness: JobHarness) -> None:
    rules = [harness.rule("R", "wait")]
    script = "time.sleep(600)"
    harness.jobs.training.create(
        REGION, harness.request(script=script, DebugHookConfig=harness.hook(), DebugRuleConfigurations=rules)
    )
    harness.wait_for_stage("Training")
    with pytest.raises(ResourceInUse, match=r"^The request was rejected because the training job is in status InProg"):
        harness.jobs.training.delete(REGION, "job")
    harness.jobs.training.stop(REGION, "job")
    harness.wait()
    harness.jobs.training.delete(REGION, "job")


@pytest.mark.slow
def test_a_rule_that_still_judges_keeps_its_job(harness: JobHarness) -> None:
    rules = [harness.rule("R", "wait")]
    harness.jobs.training.create(REGION, harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=rules))
    harness.wait_for_stage("Completed")
    with pytest.raises(ResourceInUse, match="rule R is in status InProgress"):
        harness.jobs.training.delete(REGION, "job")
    name = harness.jobs.processing.list_page(REGION, {})[0][0].name
    harness.jobs.processing.stop(REGION, name)
    harness.wait()
    harness.jobs.training.delete(REGION, "job")


def test_an_update_is_described_until_the_job_ends(harness: JobHarness) -> None:

    def changes(job: TrainingJob) -> dict[str, Any]:
        resources = {**job.request["ResourceConfig"], "KeepAlivePeriodInSeconds": 60}
        return {**job.request, "ResourceConfig": resources, "RemoteDebugConfig": {"EnableRemoteDebug": True}}

    with pytest.raises(ResourceNotFound):
        harness.jobs.training.update(REGION, "job", changes)
    harness.jobs.training.create(REGION, harness.request(script="time.sleep(600)"))
    harness.wait_for_stage("Training")
    harness.jobs.training.update(REGION, "job", changes)
    harness.jobs.training.stop(REGION, "job")
    done = harness.wait()
    assert done["RemoteDebugConfig"] == {"EnableRemoteDebug": True}
    assert done["ResourceConfig"]["InstanceType"] == "ml.m5.large"
    assert done["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 60
    with pytest.raises(ValidationException, match="in status Stopped"):
        harness.jobs.training.update(REGION, "job", changes)


@pytest.mark.slow
def test_listing_goes_through_pages(harness: JobHarness) -> None:
    for name in ("a1", "a2", "b1"):
        harness.run(harness.request(name, script=""))
    first = {"NameContains": "a", "MaxResults": 1, "SortBy": "Name"}
    jobs, token = harness.jobs.training.list_page(REGION, first)
    assert [job.name for job in jobs] == ["a1"]
    jobs, token = harness.jobs.training.list_page(REGION, first | {"NextToken": token})
    assert ([job.name for job in jobs], token) == (["a2"], None)
