"""Tests of Lambda functions in containers of a Docker engine."""

import io
import json
import textwrap
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from container_runtime.docker.spares.spares import SpareOptions
from emulator.gateway.listener import Listener
from emulator.jobs.runs.attempt import build_typical_spec
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.lambda_functions.worker import IMAGE, WorkerSettings
from emulator.moto_services.functions.backend import get_function
from emulator.settings import Settings
from tests.integration.emulator.small_emulator import ACCOUNT, CREDENTIALS, REGION, Emulator
from tests.waiting import wait_until

pytestmark = pytest.mark.docker


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    from container_runtime.docker.engine import DockerEngine

    spares = SpareOptions(tmp_path / "spares", 2**30)
    made = DockerEngine(f"test-{uuid.uuid4().hex[:12]}", sidecars=tmp_path / "sidecars", spares=spares)
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
        made.append(FunctionInvoker(WorkerSettings(engine, url, tmp_path / "docker-lambda", CREDENTIALS)))
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


@pytest.mark.nightly  # test_invoker.py has layers of functions in processes
def test_a_function_imports_from_its_layers_in_a_container(
    emulator: Emulator, start_invoker: Callable[[], FunctionInvoker]
) -> None:
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("python/layered.py", "")
        archive.writestr("settings.json", "5")
    layer = emulator.client("lambda").publish_layer_version(LayerName="layer", Content={"ZipFile": bundle.getvalue()})
    source = "import layered\ndef handler(event, context): return open('/opt/settings.json').read() + layered.__file__"
    emulator.create_function(source, Layers=[layer["LayerVersionArn"]])
    answer = start_invoker().invoke(get_function(ACCOUNT, REGION, "fn"), b"{}")
    assert json.loads(answer.payload) == "5/opt/python/layered.py"


def test_a_worker_comes_from_a_spare_container_and_sees_what_a_new_one_sees(
    emulator: Emulator, engine: Any, start_invoker: Callable[[], FunctionInvoker], tmp_path: Path
) -> None:
    source = """
        import os, sys
        import boto3
        import other
        def handler(event, context):
            try:
                open("/var/task/made", "w")
            except OSError as error:
                writes = error.strerror
            open("/tmp/made", "w").close()
            return {
                "spare": "spare_program" in open("/proc/1/cmdline").read(), "writes": writes, "other": other.__file__,
                "argv": sys.argv, "path": sys.path, "user": os.getuid(), "cwd": os.getcwd(),
                "task": os.listdir("/var/task"), "environment": sorted(set(os.environ)),
                "buckets": boto3.client("s3").list_buckets()["Buckets"],
                "memory": open("/sys/fs/cgroup/memory/memory.limit_in_bytes").read(),
            }
    """
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("index.py", textwrap.dedent(source))
        archive.writestr("other.py", "")
    invoker = start_invoker()
    typical = build_typical_spec(IMAGE, Settings(state_dir=tmp_path))
    answers = []
    for name in ("new", "spare"):
        emulator.create_function("", name=name)
        emulator.client("lambda").update_function_code(FunctionName=name, ZipFile=bundle.getvalue())
        answers.append(json.loads(invoker.invoke(get_function(ACCOUNT, REGION, name), b"{}").payload))
        wait_until(lambda: engine.is_ready(typical))
    new, spare = answers
    assert (new.pop("spare"), spare.pop("spare")) == (False, True)
    assert spare == new
    assert spare["writes"] == "Read-only file system"
    assert len(engine.find({})) == 2
    # As after kill -9: both are found by their labels.
    start_invoker()
    assert engine.find({}) == []


def test_a_function_with_an_sdk_of_its_own_uses_it_in_a_spare_container(
    emulator: Emulator, engine: Any, start_invoker: Callable[[], FunctionInvoker], tmp_path: Path
) -> None:
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("index.py", "import boto3\ndef handler(event, context): return boto3.OWN")
        archive.writestr("boto3/__init__.py", "OWN = 'its own'")
    emulator.create_function("")
    emulator.client("lambda").update_function_code(FunctionName="fn", ZipFile=bundle.getvalue())
    invoker = start_invoker()
    typical = build_typical_spec(IMAGE, Settings(state_dir=tmp_path))
    assert engine.keep_ready(typical, 600.0)
    wait_until(lambda: engine.is_ready(typical))
    assert json.loads(invoker.invoke(get_function(ACCOUNT, REGION, "fn"), b"{}").payload) == "its own"
    reason = "/var/task has a module boto3, which is imported already"
    wait_until(lambda: reason in emulator.log_text("fn"), lambda: emulator.log_text("fn"))
