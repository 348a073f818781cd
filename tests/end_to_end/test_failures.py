"""Tests of failing jobs: a helpful FailureReason, and all saved data is kept."""

import io
import json
import tarfile
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sdk_compat.demo.training_job import BUCKET, HEALTHY, build_request
from tests.end_to_end.finished_jobs import WaitForJob, read_log
from tests.running_emulator import RunningEmulator


def build_script_request(emulator: RunningEmulator, name: str, script: str) -> dict[str, Any]:
    """The digits request with another training script and no rules."""
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        entry = tarfile.TarInfo("train.py")
        entry.size = len(script.encode())
        tar.addfile(entry, io.BytesIO(script.encode()))
    key = f"source/{name}/sourcedir.tar.gz"
    emulator.client("s3").put_object(Bucket=BUCKET, Key=key, Body=bundle.getvalue())
    request = build_request(name, {})
    request["HyperParameters"]["sagemaker_submit_directory"] = f'"s3://{BUCKET}/{key}"'
    del request["DebugRuleConfigurations"]
    return request


# integration/emulator/jobs/runs/test_training.py has scripts that fail and tensors that are there before the end.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_failing_script_says_why_and_keeps_its_tensors(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob
) -> None:
    script = """
import torch
network, loss = torch.nn.Linear(3, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(30):
    optimizer.zero_grad()
    loss(network(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    optimizer.step()
print("before the end")
raise RuntimeError("the labels are upside down")
"""
    staged.client("sagemaker").create_training_job(**build_script_request(staged, job_name, script))
    description = wait_for_job(job_name)
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("AlgorithmError: ")
    assert "the labels are upside down" in description["FailureReason"]
    assert "exit code: 1" in description["FailureReason"]
    assert "before the end" in read_log(staged, job_name)
    listed = staged.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"tensors/{job_name}/debug-output/index/")
    assert listed["KeyCount"] == 2, "steps 0 and 25 were saved"


@pytest.mark.any_back_end
@pytest.mark.parametrize("uri", [f"s3://{BUCKET}/nowhere/", "s3://no-such-bucket-anywhere/x"])
def test_missing_data_is_refused_when_the_job_is_created(staged: RunningEmulator, job_name: str, uri: str) -> None:
    request = build_request(job_name, HEALTHY)
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] = uri
    with pytest.raises(ClientError) as refused:
        staged.client("sagemaker").create_training_job(**request)
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert f'No S3 objects found under S3 URL "{uri}"' in refused.value.response["Error"]["Message"]


def test_missing_image_is_a_client_error(staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob) -> None:
    request = build_request(job_name, HEALTHY)
    request["AlgorithmSpecification"]["TrainingImage"] = "nobody-built-this:1.0"
    staged.client("sagemaker").create_training_job(**request)
    description = wait_for_job(job_name)
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("ClientError: ")
    assert "nobody-built-this:1.0" in description["FailureReason"]


@pytest.mark.any_back_end
def test_missing_source_bundle_is_one_sentence(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob
) -> None:
    request = build_request(job_name, HEALTHY)
    uri = f"s3://{BUCKET}/source/nowhere/sourcedir.tar.gz"
    request["HyperParameters"]["sagemaker_submit_directory"] = json.dumps(uri)
    staged.client("sagemaker").create_training_job(**request)
    description = wait_for_job(job_name)
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"] == (
        f"ClientError: The hyperparameter sagemaker_submit_directory is {uri}, but there is no such object: upload the "
        "source bundle (a tar.gz of the script's folder), or let the SDK's fit() do it."
    )


# So does integration/emulator/jobs/runs/test_training_records.py.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_name_taken_unknown_job_and_late_stop(staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob) -> None:
    sagemaker = staged.client("sagemaker")
    request = build_script_request(staged, job_name, "print('done')")
    sagemaker.create_training_job(**request)
    with pytest.raises(ClientError) as taken:
        sagemaker.create_training_job(**request)
    assert taken.value.response["Error"]["Code"] == "ResourceInUse"
    assert f":training-job/{job_name})" in taken.value.response["Error"]["Message"]
    with pytest.raises(ClientError) as unknown:
        sagemaker.describe_training_job(TrainingJobName="nobody-sent-this")
    assert unknown.value.response["Error"] == {
        "Code": "ValidationException",
        "Message": "Requested resource not found.",
    }
    assert wait_for_job(job_name)["TrainingJobStatus"] == "Completed"
    with pytest.raises(ClientError) as late:
        sagemaker.stop_training_job(TrainingJobName=job_name)
    message = late.value.response["Error"]["Message"]
    assert message == "The request was rejected because the training job is in status Completed."


# So does integration/emulator/jobs/runs/test_training.py.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_script_that_runs_for_too_long_is_stopped(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob
) -> None:
    request = build_script_request(staged, job_name, "import time\nprint('on', flush=True)\ntime.sleep(600)")
    request["StoppingCondition"]["MaxRuntimeInSeconds"] = 1
    staged.client("sagemaker").create_training_job(**request)
    description = wait_for_job(job_name)
    assert (description["TrainingJobStatus"], description["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")


# That both back ends say so of a container is in the contract suite.
@pytest.mark.nightly
@pytest.mark.any_back_end
@pytest.mark.parametrize("megabytes", [4096])
def test_script_killed_by_memory_says_so(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob, megabytes: int
) -> None:
    """ml.t3.medium has 4 GiB; the script wants a good deal more."""
    script = f"""
kept = []
for _ in range(100):
    kept.append(b"x" * ({megabytes} << 16))
    print(len(kept), flush=True)
"""
    request = build_script_request(staged, job_name, script)
    request["ResourceConfig"]["InstanceType"] = "ml.t3.medium"
    staged.client("sagemaker").create_training_job(**request)
    description = wait_for_job(job_name)
    assert description["TrainingJobStatus"] == "Failed"
    assert "memory" in description["FailureReason"]
    assert description["FailureReason"].startswith("AlgorithmError: ")


@pytest.mark.any_back_end
def test_all_problems_of_a_request_come_in_one_message(staged: RunningEmulator) -> None:
    request = build_request("bad name!", HEALTHY)
    request["StoppingCondition"]["MaxRuntimeInSeconds"] = 1
    request["AlgorithmSpecification"]["TrainingInputMode"] = "Shovel"
    request["ResourceConfig"]["InstanceCount"] = 1
    with pytest.raises(ClientError) as refused:
        staged.client("sagemaker").create_training_job(**request)
    error = refused.value.response["Error"]
    assert error["Code"] == "ValidationException"
    assert error["Message"].startswith("2 validation errors detected: ")
    assert "'trainingJobName'" in error["Message"]
    assert "Member must satisfy enum value set: [" in error["Message"]
