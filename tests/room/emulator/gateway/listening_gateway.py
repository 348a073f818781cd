"""A gateway as its tests see it over real HTTP, and jobs that remember what they were asked."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from typing import Any

from emulator.exceptions import ResourceInUse, ResourceNotFound, ValidationException
from tests.boto3_client import make_client

ACCOUNT = "123456789012"
NOT_FOUND = "Requested resource not found."


class MemoryJobs:
    """Jobs that never run."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, str], dict[str, Any]] = {}
        self.listed: dict[str, Any] = {}
        self.tags: dict[str, list[dict[str, str]]] = {}
        self.stopped: list[str] = []

    def create_training_job(self, region: str, request: dict[str, Any]) -> dict[str, Any]:
        name = request["TrainingJobName"]
        if name == "job-that-breaks":
            raise RuntimeError("the store is on fire")
        arn = f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}"
        if (region, name) in self.jobs:
            raise ResourceInUse(f"Training job names must be unique ({arn})")
        job = {**request, "TrainingJobArn": arn, "TrainingJobStatus": "InProgress", "CreationTime": 1700000000.5}
        self.jobs[region, name] = job
        self.tags[arn] = list(request.get("Tags", []))
        return job

    def get_training_job(self, region: str, name: str) -> dict[str, Any]:
        if (region, name) not in self.jobs:
            raise ValidationException(NOT_FOUND)
        return self.jobs[region, name]

    def list_training_jobs(self, region: str, request: dict[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        self.listed = request
        return [job for (where, _), job in self.jobs.items() if where == region], "more"

    def search_training_jobs(
        self, region: str, request: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], str | None, int]:
        return *self.list_training_jobs(region, request), 7

    def suggest_property_names(self, region: str, hint: str) -> list[str]:
        return [f"{hint}.epochs"]

    def stop_training_job(self, region: str, name: str) -> dict[str, Any]:
        self.stopped.append(name)
        return self.get_training_job(region, name)

    def describe_training_job(self, job: dict[str, Any]) -> dict[str, Any]:
        return {**job, "Internal": "never sent", "FailureReason": None}

    def summarize_training_jobs(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [self.describe_training_job(job) for job in jobs]

    def delete_training_job(self, region: str, name: str) -> None:
        if self.jobs.pop((region, name), None) is None:
            raise ResourceNotFound(NOT_FOUND)

    def update_training_job(self, region: str, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        return self.get_training_job(region, name) | changes

    get_processing_job = get_training_job
    stop_processing_job = stop_training_job

    def list_processing_jobs(self, region: str, request: dict[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        self.listed = request
        return [{"ProcessingJobName": "p", "ProcessingJobArn": "arn", "ProcessingJobStatus": "InProgress"}], None

    def describe_processing_job(self, job: dict[str, Any]) -> dict[str, Any]:
        return {"CreationTime": 1.0, **job}

    def add_tags(self, arn: str, tags: list[dict[str, str]]) -> list[dict[str, str]]:
        self.list_tags(arn).extend(tags)
        return self.tags[arn]

    def delete_tags(self, arn: str, keys: list[str]) -> None:
        self.tags[arn] = [tag for tag in self.list_tags(arn) if tag["Key"] not in keys]

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        if arn not in self.tags:
            raise ResourceNotFound(NOT_FOUND)
        return self.tags[arn]


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Gateway:
    """A gateway that listens."""

    port: int
    jobs: MemoryJobs
    invoked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, service: str, region: str = "us-east-1", **config: Any) -> Any:
        return make_client(self.url, service, region, **config)

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """One raw request; underscores in header names stand for hyphens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def send_operation(self, operation: str, body: bytes, *, region: str = "us-east-1", signed: bool = True) -> Answer:
        headers = {"X_Amz_Target": f"SageMaker.{operation}", "Content_Type": "application/x-amz-json-1.1"}
        if signed:
            headers["Authorization"] = (
                f"AWS4-HMAC-SHA256 Credential=key/20250101/{region}/sagemaker/aws4_request, "
                "SignedHeaders=host, Signature=00"
            )
        return self.send("POST", "/", body, **headers)
