"""Tests of Lambda functions in containers of a Docker engine."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.gateway.listener import Listener
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.moto_services.functions.backend import get_function
from tests.integration.emulator.small_emulator import ACCOUNT, CREDENTIALS, REGION, Emulator
from tests.waiting import wait_until

pytestmark = pytest.mark.docker


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    from container_runtime.docker.engine import DockerEngine

    made = DockerEngine(f"test-{uuid.uuid4().hex[:12]}", sidecars=tmp_path / "sidecars")
    yield made
    assert made.find({}) == []
    made.close()


@pytest.fixture
def start_invoker(emulator: Emulator, engine: Any, moto_application: Any, tmp_path: Path) -> Iterator[Any]:
    listener = Listener(engine.host_address, 0)
    listener.serve(moto_application)
    engine.offer(listener.port, listener.take)
    url = f"http://{engine.host_address}:{listener.port}"
    made: list[FunctionInvoker] = []

    def start() -> FunctionInvoker:
        made.append(FunctionInvoker(engine, url, tmp_path / "docker-lambda", CREDENTIALS))
        return made[-1]

    yield start
    for invoker in made:
        invoker.close()
    listener.close()


def test_function_in_a_container(
    emulator: Emulator, engine: Any, start_invoker: Callable[[], FunctionInvoker], tmp_path: Path
) -> None:
    emulator.create_function(
        """
        import os
        import boto3
        s3 = boto3.client("s3")
        def handler(event, context):
            if event == "exit":
                os._exit(4)
            s3.create_bucket(Bucket=event)
            print("made", event)
            open("/tmp/scratch", "w").close()
            try:
                open("/var/tmp/elsewhere", "w").close()
            except OSError as error:
                print(error.strerror)
            return [os.environ["LAMBDA_TASK_ROOT"], os.getpid()]
        """,
        Timeout=30,
        MemorySize=256,
    )
    invoker = start_invoker()
    function = get_function(ACCOUNT, REGION, "fn")
    first = invoker.invoke(function, b'"from-a-container"', with_log_tail=True)
    assert first.function_error is None, first.payload
    assert json.loads(first.payload)[0] == "/var/task"
    assert "made from-a-container" in first.log_tail
    assert "Read-only file system" in first.log_tail, "only /tmp can be written to"
    assert [bucket["Name"] for bucket in emulator.client("s3").list_buckets()["Buckets"]] == ["from-a-container"]
    (container,) = engine.find({})
    assert invoker.invoke(function, b'"from-a-container"').payload == first.payload
    assert engine.find({}) == [container], "the warm one was used"
    failed = invoker.invoke(function, b'"exit"')
    assert json.loads(failed.payload)["errorMessage"].endswith("exit status 4")
    invoker.invoke(function, b'"from-a-container"')
    # As after kill -9: what the first left behind is found by its label.
    start_invoker()
    assert engine.find({}) == []


def test_errors_and_timeout_in_a_container(emulator: Emulator, start_invoker: Callable[[], FunctionInvoker]) -> None:
    invoker = start_invoker()
    emulator.create_function("import nothing", "bad")
    failed = invoker.invoke(get_function(ACCOUNT, REGION, "bad"), b"{}")
    assert json.loads(failed.payload)["errorType"] == "Runtime.ImportModuleError"
    emulator.create_function("import time\ndef handler(e, c): time.sleep(60)", "slow", Timeout=1)
    slow = invoker.invoke(get_function(ACCOUNT, REGION, "slow"), b"{}")
    assert json.loads(slow.payload)["errorType"] == "Sandbox.Timedout"
    wait_until(lambda: "Task timed out after 1.00 seconds" in emulator.log_text("slow"), "it is logged")
