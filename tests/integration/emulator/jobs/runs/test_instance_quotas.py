"""Quotas of instances, with jobs that wait until they are stopped."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from emulator.exceptions import ResourceLimitExceeded
from emulator.jobs.model.tuning_job import TuningJob
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness, open_job_harness
from tests.waiting import wait_until

QUOTAS = {
    "ml.m5.large for training job usage": 2,
    "ml.m5.large for spot training job usage": 1,
    "ml.m5.large for training warm pool usage": 1,
    "ml.m5.large for processing job usage": 1,
}
WAIT = "time.sleep(600)"


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobHarness]:
    folder = tmp_path_factory.mktemp("quotas")
    path = folder / "quotas.json"
    path.write_text(json.dumps(QUOTAS))
    with open_job_harness(folder, quotas=path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def nothing_left(harness: JobHarness) -> Iterator[None]:
    yield
    harness.jobs.reset("")


def build(harness: JobHarness, name: str, count: int = 1, kind: str = "ml.m5.large", **members: Any) -> dict[str, Any]:
    resources = {"InstanceType": kind, "InstanceCount": count, "VolumeSizeInGB": 1}
    return harness.request(name, WAIT, ResourceConfig=resources | members.pop("resources", {}), **members)


def create(harness: JobHarness, *arguments: Any, region: str = REGION, **members: Any) -> None:
    harness.jobs.training.create(region, build(harness, *arguments, **members))


@pytest.mark.slow
def test_a_job_beyond_its_quota_is_refused_in_the_words_of_aws(harness: JobHarness) -> None:
    create(harness, "one")
    with pytest.raises(ResourceLimitExceeded) as caught:
        create(harness, "two", 2)
    assert str(caught.value) == (
        "The account-level service limit 'ml.m5.large for training job usage' is 2 Instances, with current utilization "
        "of 1 Instances and a request delta of 2 Instances. Please use AWS Service Quotas to request an increase for "
        "this quota. If AWS Service Quotas is not available, contact AWS support to request an increase for this quota."
    )
    create(harness, "two")
    with pytest.raises(ResourceLimitExceeded):
        create(harness, "three")
    create(harness, "of-another-type", 3, "ml.c5.large")
    create(harness, "in-another-region", region="eu-west-1")
    harness.jobs.training.stop(REGION, "one")
    harness.wait("one")
    create(harness, "three")


def test_spot_instances_and_warm_pools_have_quotas_of_their_own(harness: JobHarness) -> None:
    condition = {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 600}
    create(harness, "spot", EnableManagedSpotTraining=True, StoppingCondition=condition)
    with pytest.raises(ResourceLimitExceeded, match=r"'ml\.m5\.large for spot training job usage' is 1 Instances"):
        create(harness, "spot-too", EnableManagedSpotTraining=True, StoppingCondition=condition)
    warm = {"KeepAlivePeriodInSeconds": 60}
    create(harness, "warm", resources=warm)
    with pytest.raises(ResourceLimitExceeded, match=r"'ml\.m5\.large for training warm pool usage' is 1 Instances"):
        create(harness, "warm-too", resources=warm)


def test_processing_jobs_have_a_quota_of_their_own(harness: JobHarness) -> None:
    training = build(harness, "")
    request: dict[str, Any] = {
        "AppSpecification": {
            "ImageUri": "tiny:1",
            "ContainerEntrypoint": training["AlgorithmSpecification"]["ContainerEntrypoint"],
        },
        "ProcessingResources": {"ClusterConfig": training["ResourceConfig"]},
        "RoleArn": training["RoleArn"],
    }
    create(harness, "trains", 2)
    harness.jobs.processing.create(REGION, {"ProcessingJobName": "processes", **request})
    with pytest.raises(ResourceLimitExceeded, match=r"'ml\.m5\.large for processing job usage' is 1 Instances"):
        harness.jobs.processing.create(REGION, {"ProcessingJobName": "processes-too", **request})


def test_of_jobs_at_once_no_more_are_taken_than_the_quota_allows(harness: JobHarness) -> None:
    barrier = threading.Barrier(8)

    def try_one(number: int) -> bool:
        barrier.wait()
        try:
            create(harness, f"at-once-{number}")
        except ResourceLimitExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(try_one, range(8))) == 2


def test_a_tuning_job_waits_for_the_instances_of_others(harness: JobHarness) -> None:
    training = harness.request("", "print('loss=1;', flush=True)")
    members = ("AlgorithmSpecification", "RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition")
    definition = {member: training[member] for member in members}
    definition["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=(.*?);"}]
    request: dict[str, Any] = {
        "HyperParameterTuningJobName": "tune",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 2},
            "ParameterRanges": {"IntegerParameterRanges": [{"Name": "y", "MinValue": "1", "MaxValue": "9"}]},
        },
        "TrainingJobDefinition": definition,
    }
    create(harness, "others", 2)
    harness.jobs.tuning.create(REGION, request)

    def find() -> TuningJob:
        return harness.jobs.tuning.get(REGION, "tune")

    assert not find().ended
    harness.jobs.training.stop(REGION, "others")
    wait_until(lambda: find().ended, find)
    assert find().status == "Completed"
