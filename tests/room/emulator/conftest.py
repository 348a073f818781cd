"""A small emulator: moto and Invoke behind a listener on a free port, and Lambda workers as local processes."""

from __future__ import annotations

import io
import json
import textwrap
import threading
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from moto.moto_api._internal.models import moto_api_backend

from container_runtime.process.local_processes import LocalProcesses
from emulator.events.publisher import Publisher
from emulator.gateway.authentication import read_region
from emulator.gateway.listener import LOOPBACK, Listener
from emulator.lambda_functions.invoke_api import INVOKE_PATH, InvokeApplication
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.moto_services.wsgi import MotoApplication
from tests.boto3_client import make_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ACCOUNT = "123456789012"
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@pytest.fixture(scope="session")
def moto_application() -> Any:
    return MotoApplication()


class StopCalls:
    """Stands in for the jobs: notes which training jobs were asked to stop, and when."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.names: list[str] = []
        self.error: tuple[str, str] | None = None

    def add(self, name: str) -> None:
        with self._changed:
            self.names.append(name)
            self._changed.notify_all()

    def wait(self, count: int, timeout: float = 60.0) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.names) >= count, timeout), "no StopTrainingJob came"
            return list(self.names)


class Emulator:
    """What a test talks to."""

    def __init__(self, endpoint_url: str, stops: StopCalls) -> None:
        self.endpoint_url = endpoint_url
        self.stops = stops
        self.invoker: FunctionInvoker
        self.publisher: Publisher
        self.containers: LocalProcesses

    def client(self, service_name: str) -> Any:
        return make_client(self.endpoint_url, service_name, REGION)

    def create_function(self, source: str, name: str = "fn", **configuration: Any) -> str:
        iam = self.client("iam")
        try:
            role = iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        except iam.exceptions.EntityAlreadyExistsException:
            role = iam.get_role(RoleName="r")["Role"]["Arn"]
        defaults = {"Handler": "index.handler", "Runtime": "python3.11", "Role": role, "Timeout": 10}
        created = self.client("lambda").create_function(
            FunctionName=name, Code={"ZipFile": build_zip(source)}, **{**defaults, **configuration}
        )
        return str(created["FunctionArn"])

    def log_text(self, name: str) -> str:
        logs = self.client("logs")
        try:
            streams = logs.describe_log_streams(logGroupName=f"/aws/lambda/{name}")["logStreams"]
        except logs.exceptions.ResourceNotFoundException:
            return ""
        return "\n".join(
            event["message"]
            for stream in streams
            for event in logs.get_log_events(
                logGroupName=f"/aws/lambda/{name}", logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
        )


def build_zip(source: str, path: str = "index.py") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(path, textwrap.dedent(source))
    return content.getvalue()


@pytest.fixture
def emulator(tmp_path: Path, moto_application: Any) -> Iterator[Emulator]:
    moto_api_backend.reset()
    stops = StopCalls()
    routes: dict[str, Any] = {}

    def application(environ: Any, start_response: Any) -> Any:
        if INVOKE_PATH.fullmatch(environ["PATH_INFO"]):
            return routes["invoke"](environ, start_response)
        if environ.get("HTTP_X_AMZ_TARGET") == "SageMaker.StopTrainingJob":
            body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            stops.add(body["TrainingJobName"])
            if stops.error is not None:
                code, message = stops.error
                start_response("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1")])
                return [json.dumps({"__type": code, "message": message}).encode()]
            start_response("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
            return [b"{}"]
        return moto_application(environ, start_response)

    listener = Listener(LOOPBACK, 0)
    listener.serve(application)
    emulator = Emulator(f"http://{LOOPBACK}:{listener.port}", stops)
    emulator.containers = LocalProcesses(tmp_path / "containers")
    emulator.invoker = FunctionInvoker(
        emulator.containers, emulator.endpoint_url, tmp_path / "lambda", CREDENTIALS, idle_seconds=60.0
    )
    emulator.publisher = Publisher(emulator.invoker, retry_seconds=0.02)
    routes["invoke"] = InvokeApplication(emulator.invoker, ACCOUNT, read_region)
    yield emulator
    emulator.publisher.close()
    emulator.invoker.close()
    assert emulator.containers.find({}) == []
    assert not (tmp_path / "lambda").exists()
    listener.close()
