"""Access to a small emulator: its address, its functions and their output."""

import io
import textwrap
import threading
import zipfile
from collections.abc import Mapping
from typing import Any

import pytest

from container_runtime.process.local_processes import LocalProcesses
from emulator.events.outcomes import DeliveryOutcome
from emulator.events.publisher import Publisher
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.moto_services.eventbridge.rules import Target
from tests.boto3_client import make_client

ACCOUNT = "123456789012"
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


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

    def wait(self, count: int, timeout: float = 400.0) -> list[str]:
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
        self.outcomes: list[DeliveryOutcome] = []

    def note(self, outcome: DeliveryOutcome) -> None:
        self.outcomes.append(outcome)

    def start_pipeline(self, target: Target, event: Mapping[str, Any]) -> None:
        pytest.fail(f"{target.arn} was started for {event}: there are no pipelines here")

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
