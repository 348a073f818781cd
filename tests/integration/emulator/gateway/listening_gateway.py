"""Gateway over real HTTP, with jobs that record their requests."""

import http.client
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from emulator.exceptions import ResourceInUse, ResourceNotFound, ValidationException
from emulator.jobs.model.warnings import JobWarning, build_warning
from emulator.moto_services.s3.objects import ObjectStore
from emulator.settings import Settings
from tests.boto3_client import make_client

ACCOUNT = "123456789012"
NOT_FOUND = "Requested resource not found."


class MemoryJob(dict[str, Any]):
    """A job that is what was asked for, and trains."""

    status, secondary_status = "InProgress", "Training"

    @property
    def request(self) -> Self:
        return self

    @property
    def arn(self) -> str:
        return str(self["TrainingJobArn"])


class MemoryTrainingJobs:
    """Training jobs that never run."""

    def __init__(self, tags: dict[str, list[dict[str, str]]]) -> None:
        self.jobs: dict[tuple[str, str], MemoryJob] = {}
        self.listed: dict[str, Any] = {}
        self.stopped: list[str] = []
        self._tags = tags

    def create(
        self, region: str, request: dict[str, Any], client_note: str | None = None
    ) -> tuple[MemoryJob, list[JobWarning]]:
        self.client_note = client_note
        name = request["TrainingJobName"]
        if name == "job-that-breaks":
            raise RuntimeError("the store is on fire")
        arn = f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}"
        if (region, name) in self.jobs:
            raise ResourceInUse(f"Training job names must be unique ({arn})")
        state = {"TrainingJobArn": arn, "TrainingJobStatus": "InProgress", "CreationTime": 1700000000.5}
        job = MemoryJob({**request, **state})
        self.jobs[region, name] = job
        self._tags[arn] = list(request.get("Tags", []))
        return job, [] if client_note is None else [build_warning("ClientNotTried", said=client_note)]

    def get(self, region: str, name: str) -> dict[str, Any]:
        if (region, name) not in self.jobs:
            raise ValidationException(NOT_FOUND)
        return self.jobs[region, name]

    def list_page(self, region: str, request: dict[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        self.listed = request
        return [job for (where, _), job in self.jobs.items() if where == region], "more"

    def search(self, region: str, request: dict[str, Any]) -> tuple[list[dict[str, Any]], str | None, int]:
        return *self.list_page(region, request), 7

    def suggest_property_names(self, region: str, hint: str) -> list[str]:
        return [f"{hint}.epochs"]

    def stop(self, region: str, name: str) -> dict[str, Any]:
        self.stopped.append(name)
        return self.get(region, name)

    def describe(self, job: dict[str, Any]) -> dict[str, Any]:
        return {**job, "Internal": "never sent", "FailureReason": None}

    def summarize(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [self.describe(job) for job in jobs]

    def delete(self, region: str, name: str) -> None:
        if self.jobs.pop((region, name), None) is None:
            raise ResourceNotFound(NOT_FOUND)

    def update(
        self,
        region: str,
        name: str,
        change: Callable[[dict[str, Any]], dict[str, Any]],
        pool_seconds: int | None = None,
    ) -> MemoryJob:
        self.jobs[region, name] = MemoryJob(change(self.get(region, name)))
        return self.jobs[region, name]


class MemoryProcessingJobs:
    """One processing job in every list; those that are asked for by name are the training jobs."""

    def __init__(self, training: MemoryTrainingJobs) -> None:
        self.listed: dict[str, Any] = {}
        self.get, self.stop = training.get, training.stop

    def list_page(self, region: str, request: dict[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        self.listed = request
        return [{"ProcessingJobName": "p", "ProcessingJobArn": "arn", "ProcessingJobStatus": "InProgress"}], None

    def describe(self, job: dict[str, Any]) -> dict[str, Any]:
        return {"CreationTime": 1.0, **job}


class MemoryTags:
    """Tags by ARN."""

    def __init__(self) -> None:
        self.by_arn: dict[str, list[dict[str, str]]] = {}

    def add(self, arn: str, tags: list[dict[str, str]]) -> list[dict[str, str]]:
        self.list_all(arn).extend(tags)
        return self.by_arn[arn]

    def delete(self, arn: str, keys: list[str]) -> None:
        self.by_arn[arn] = [tag for tag in self.list_all(arn) if tag["Key"] not in keys]

    def list_all(self, arn: str) -> list[dict[str, str]]:
        if arn not in self.by_arn:
            raise ResourceNotFound(NOT_FOUND)
        return self.by_arn[arn]


class NoExperiments:
    """Trial components of jobs, of which there are none."""

    def check(self, region: str, request: dict[str, Any]) -> None:
        pass

    def add(self, job: MemoryJob) -> None:
        pass

    def refresh(self, region: str) -> None:
        pass


class FewServices:
    """What checks of requests ask: settings and S3."""

    settings = Settings()
    account_id = ACCOUNT
    object_store_for = partial(ObjectStore, ACCOUNT)


class MemoryJobs:
    """Jobs that remember what they were asked."""

    services = FewServices()

    def __init__(self) -> None:
        self.tags = MemoryTags()
        self.training = MemoryTrainingJobs(self.tags.by_arn)
        self.processing = MemoryProcessingJobs(self.training)
        self.experiments = NoExperiments()


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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=400)
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
