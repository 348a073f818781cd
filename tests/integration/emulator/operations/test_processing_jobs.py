"""Processing jobs over real HTTP: warnings of a request."""

import json
import sys
from typing import Any

from emulator.jobs.model.warnings import WARNINGS_HEADER
from tests.integration.emulator.operations.conftest import Service
from tests.waiting import wait_until


def test_warnings_are_in_the_answer_and_in_the_log(service: Service) -> None:
    client, logs = service.client(), service.client("logs")
    headers = {}
    for name, kind in (("gpu", "ml.g5.xlarge"), ("cpu", "ml.m5.large")):
        answer: dict[str, Any] = client.create_processing_job(
            ProcessingJobName=name,
            AppSpecification={"ImageUri": "tiny:1", "ContainerEntrypoint": [sys.executable, "-c", ""]},
            ProcessingResources={"ClusterConfig": {"InstanceCount": 1, "InstanceType": kind, "VolumeSizeInGB": 1}},
            RoleArn="arn:aws:iam::123456789012:role/x",
        )
        headers[name] = answer["ResponseMetadata"]["HTTPHeaders"]
    (warning,) = json.loads(headers["gpu"][WARNINGS_HEADER])
    assert (warning["code"], warning["text"]) == ("NoGpu", "ml.g5.xlarge: no GPU here. The job runs on the CPU.")
    assert WARNINGS_HEADER not in headers["cpu"]

    def describe() -> dict[str, Any]:
        found: dict[str, Any] = client.describe_processing_job(ProcessingJobName="gpu")
        return found

    wait_until(lambda: describe()["ProcessingJobStatus"] == "Completed", describe)
    lines = logs.filter_log_events(logGroupName="/aws/sagemaker/ProcessingJobs", logStreamNamePrefix="gpu/")["events"]
    assert any(warning["text"] in line["message"] for line in lines), lines
