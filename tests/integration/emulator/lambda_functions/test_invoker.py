import base64
import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from container_runtime.process.local_processes import LocalProcesses
from emulator.exceptions import TooManyInvocationsError
from emulator.lambda_functions import worker_log
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.lambda_functions.worker import WorkerSettings
from emulator.moto_services.functions.backend import get_function
from tests.integration.emulator.small_emulator import ACCOUNT, CREDENTIALS, REGION, Emulator, build_zip
from tests.waiting import wait_until


@pytest.fixture
def patient_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are held back long enough to be put in order on a machine that is slow to read them."""
    monkeypatch.setattr(worker_log, "_HOLD_SECONDS", 1.5)
    monkeypatch.setattr(worker_log, "_END_SLACK_MS", 1_000)


def invoke(emulator: Emulator, payload: Any = None, name: str = "fn", **options: Any) -> tuple[Any, dict[str, Any]]:
    body = {} if payload is None else {"Payload": json.dumps(payload).encode()}
    answer = emulator.client("lambda").invoke(FunctionName=name, **body, **options)
    return json.loads(answer["Payload"].read() or b"null"), answer


@pytest.mark.slow
def test_a_handler_gets_its_event_context_environment_and_layers_and_nothing_of_the_hosts(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    layer = emulator.client("lambda").publish_layer_version(
        LayerName="l", Content={"ZipFile": build_zip("VALUE = 7", "python/from_layer.py")}
    )
    arn = emulator.create_function(
        """
        import os
        import from_layer
        def handler(event, context):
            return {"event": event, "arn": context.invoked_function_arn, "name": context.function_name,
                    "left": context.get_remaining_time_in_millis(), "custom": context.client_context.custom,
                    "layer": from_layer.VALUE, "environment": dict(os.environ)}
        """,
        Environment={"Variables": {"MINE": "yes", "AWS_REGION_HINT": "x"}},
        MemorySize=256,
        Layers=[layer["LayerVersionArn"]],
    )
    text = json.dumps({"custom": {"a": "日本"}}, ensure_ascii=False, indent=2)
    result, answer = invoke(emulator, {"x": [1, "ü"]}, ClientContext=base64.b64encode(text.encode()).decode())
    assert result["event"] == {"x": [1, "ü"]}
    assert (result["arn"], result["name"]) == (arn, "fn")
    assert 5_000 < result["left"] <= 10_000
    assert (result["custom"], result["layer"]) == ({"a": "日本"}, 7)
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    assert "FunctionError" not in answer
    environment = result["environment"]
    assert "SECRET_OF_THE_HOST" not in environment
    assert environment["AWS_ENDPOINT_URL"] == emulator.endpoint_url
    assert environment["AWS_REGION"] == REGION
    assert environment["AWS_ACCESS_KEY_ID"] == ACCOUNT, "a function signs as its account"
    assert environment["AWS_LAMBDA_FUNCTION_NAME"] == "fn"
    assert environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "256"
    assert environment["AWS_LAMBDA_LOG_GROUP_NAME"] == "/aws/lambda/fn"
    assert environment["_HANDLER"] == "index.handler"
    assert environment["MINE"] == "yes"
    assert os.path.basename(environment["LAMBDA_TASK_ROOT"]) == "task"  # noqa: PTH119


@pytest.mark.slow
def test_function_calls_back_with_boto3(emulator: Emulator) -> None:
    emulator.create_function(
        """
        import boto3
        def handler(event, context):
            boto3.client("s3").create_bucket(Bucket="made-by-function")
        """,
        Timeout=30,
        MemorySize=512,
    )
    result, answer = invoke(emulator)
    assert result is None
    assert "FunctionError" not in answer
    buckets = emulator.client("s3").list_buckets()["Buckets"]
    assert [bucket["Name"] for bucket in buckets] == ["made-by-function"]


@pytest.mark.slow
def test_worker_is_reused_until_code_or_configuration_changes(emulator: Emulator) -> None:
    source = "import os\ndef handler(event, context): return [os.getpid(), {number}, os.environ.get('A')]"
    emulator.create_function(source.format(number=1))
    first, second = invoke(emulator)[0], invoke(emulator)[0]
    assert first == second
    client = emulator.client("lambda")
    client.update_function_code(FunctionName="fn", ZipFile=build_zip(source.format(number=2)))
    third = invoke(emulator)[0]
    assert third[1] == 2
    assert third[0] != first[0]
    client.update_function_configuration(FunctionName="fn", Environment={"Variables": {"A": "b"}})
    assert invoke(emulator)[0][1:] == [2, "b"]
    wait_until(lambda: len(emulator.containers.find({})) == 1, "old workers are gone")


@pytest.mark.slow
def test_code_from_s3_versions_and_aliases(emulator: Emulator) -> None:
    s3, client = emulator.client("s3"), emulator.client("lambda")
    s3.create_bucket(Bucket="code")
    for number in (1, 2):
        source = f"import os\ndef handler(e, c): return [{number}, os.environ['AWS_LAMBDA_FUNCTION_VERSION']]"
        s3.put_object(Bucket="code", Key=f"{number}.zip", Body=build_zip(source))
    emulator.create_function("")
    client.update_function_code(FunctionName="fn", S3Bucket="code", S3Key="1.zip")
    version = client.publish_version(FunctionName="fn")["Version"]
    client.create_alias(FunctionName="fn", Name="live", FunctionVersion=version)
    client.update_function_code(FunctionName="fn", S3Bucket="code", S3Key="2.zip")
    assert invoke(emulator)[0] == [2, "$LATEST"]
    assert invoke(emulator, Qualifier=version)[0] == [1, version]
    assert invoke(emulator, Qualifier="live")[0] == [1, version]
    assert invoke(emulator, name="fn:live")[0] == [1, version]
    arn = client.get_function(FunctionName="fn")["Configuration"]["FunctionArn"]
    assert invoke(emulator, name=arn)[0] == [2, "$LATEST"]


@pytest.mark.slow
def test_a_function_without_reserved_concurrency_left_is_throttled(emulator: Emulator) -> None:
    client = emulator.client("lambda")
    emulator.create_function("def handler(e, c): return 1")
    version = client.publish_version(FunctionName="fn")["Version"]
    client.put_function_concurrency(FunctionName="fn", ReservedConcurrentExecutions=0)
    for qualifier in ("$LATEST", version):
        with pytest.raises(client.exceptions.TooManyRequestsException, match="has a reserved concurrency of 0"):
            invoke(emulator, Qualifier=qualifier)
    client.put_function_concurrency(FunctionName="fn", ReservedConcurrentExecutions=1)
    assert invoke(emulator)[0] == 1
    client.delete_function_concurrency(FunctionName="fn")
    assert invoke(emulator, Qualifier=version)[0] == 1


@pytest.mark.slow
@pytest.mark.nightly
def test_versions_share_the_reserved_concurrency(emulator: Emulator) -> None:
    client = emulator.client("lambda")
    emulator.create_function(WAITING_HANDLER, Timeout=60)
    version = client.publish_version(FunctionName="fn")["Version"]
    client.put_function_concurrency(FunctionName="fn", ReservedConcurrentExecutions=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1]).encode()
        running = emulator.invoker.invoke_async(get_function(ACCOUNT, REGION, "fn"), port)
        with server.accept()[0] as connection:
            assert connection.recv(100)
            with pytest.raises(client.exceptions.TooManyRequestsException, match="has a reserved concurrency of 1"):
                invoke(emulator, Qualifier=version)
    assert running.result(timeout=400).function_error is None


@pytest.mark.slow
def test_an_alias_is_invoked_by_its_arn_and_its_weights(emulator: Emulator) -> None:
    client = emulator.client("lambda")
    emulator.create_function("def handler(e, c): return [c.function_version, c.invoked_function_arn]")
    arn = client.get_function_configuration(FunctionName="fn")["FunctionArn"]
    for description in ("first", "second"):  # what has not changed is not a new version
        client.update_function_configuration(FunctionName="fn", Description=description)
        client.publish_version(FunctionName="fn")
    client.create_alias(FunctionName="fn", Name="live", FunctionVersion="1")
    assert invoke(emulator, Qualifier="live")[0] == ["1", f"{arn}:live"]
    assert invoke(emulator, name="fn:live")[0] == invoke(emulator, name=f"{arn}:live")[0] == ["1", f"{arn}:live"]
    assert invoke(emulator, Qualifier="1")[0] == ["1", f"{arn}:1"]
    client.update_alias(FunctionName="fn", Name="live", RoutingConfig={"AdditionalVersionWeights": {"2": 1.0}})
    assert invoke(emulator, Qualifier="live")[0] == ["2", f"{arn}:live"]
    client.update_alias(FunctionName="fn", Name="live", RoutingConfig={"AdditionalVersionWeights": {"2": 0.5}})
    chosen = {get_function(ACCOUNT, REGION, "fn", "live").version for _ in range(200)}
    assert chosen == {"1", "2"}


def test_an_environment_needs_its_key(emulator: Emulator) -> None:
    client, kms = emulator.client("lambda"), emulator.client("kms")
    key = kms.create_key()["KeyMetadata"]
    of_others = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    emulator.create_function("def handler(e, c): return 1", KMSKeyArn=of_others)
    assert invoke(emulator)[0] == 1
    updated = client.update_function_configuration(FunctionName="fn", KMSKeyArn=key["Arn"])
    assert updated["KMSKeyArn"] == key["Arn"]
    assert invoke(emulator)[0] == 1
    kms.disable_key(KeyId=key["KeyId"])
    with pytest.raises(client.exceptions.KMSDisabledException, match="the KMS key used is disabled"):
        invoke(emulator)
    kms.enable_key(KeyId=key["KeyId"])
    assert invoke(emulator)[0] == 1
    kms.disable_key(KeyId=key["KeyId"])
    client.update_function_configuration(FunctionName="fn", KMSKeyArn="")
    assert invoke(emulator)[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "handler", "error_type"),
    [
        # By day the container's test has the first.
        pytest.param("import no_such_module", "index.handler", "Runtime.ImportModuleError", marks=pytest.mark.nightly),
        ("def handler(", "index.handler", "Runtime.UserCodeSyntaxError"),
        ("x = 1", "index.handler", "Runtime.HandlerNotFound"),
        pytest.param("raise OSError('at import')", "index.handler", "OSError", marks=pytest.mark.nightly),
        pytest.param("x = 1", "nowhere.handler", "Runtime.ImportModuleError", marks=pytest.mark.nightly),
    ],
)
def test_init_error(emulator: Emulator, source: str, handler: str, error_type: str) -> None:
    emulator.create_function(source, Handler=handler)
    for _ in range(2 if source == "x = 1" else 1):  # the next invocation begins anew
        result, answer = invoke(emulator)
        assert answer["FunctionError"] == "Unhandled"
        assert result["errorType"] == error_type


@pytest.mark.slow
def test_timeout_ends_the_worker(emulator: Emulator) -> None:
    emulator.create_function("import time\ndef handler(e, c):\n    time.sleep(e['s'])\n    return 'ok'", Timeout=2)
    began = time.monotonic()
    result, answer = invoke(emulator, {"s": 600})
    assert time.monotonic() - began < 60
    assert answer["FunctionError"] == "Unhandled"
    assert result["errorType"] == "Sandbox.Timedout"
    assert result["errorMessage"].endswith("Task timed out after 2.00 seconds")
    assert invoke(emulator, {"s": 0})[0] == "ok"
    assert "Task timed out after 2.00 seconds" in emulator.log_text("fn")


@pytest.mark.slow
def test_a_handler_s_error_is_its_answer_and_a_worker_that_has_ended_is_replaced(emulator: Emulator) -> None:
    emulator.create_function(
        """
        import os
        def handler(event, context):
            if event == "raise":
                raise ValueError("no good")
            os._exit(event) if event else None
            return os.getpid()
        """
    )
    result, answer = invoke(emulator, "raise")
    assert (answer["FunctionError"], answer["StatusCode"]) == ("Unhandled", 200)
    assert (result["errorType"], result["errorMessage"]) == ("ValueError", "no good")
    assert result["stackTrace"]
    wait_until(lambda: "[ERROR] ValueError: no good\nTraceback" in emulator.log_text("fn"), "it is logged")
    result, answer = invoke(emulator, 3)
    assert answer["FunctionError"] == "Unhandled"
    assert result["errorType"] == "Runtime.ExitError"
    assert result["errorMessage"].endswith("Runtime exited with error: exit status 3")
    second = invoke(emulator)[0]
    os.kill(second, 9)  # while it is idle
    wait_until(lambda: not any(container.running for container in emulator.containers.find({})), "it is dead")
    wait_until(lambda: "FunctionError" not in invoke(emulator)[1], "a new worker answers")
    assert invoke(emulator)[0] != second


def test_zip_that_leaves_its_folder_is_refused(emulator: Emulator, tmp_path: Path) -> None:
    emulator.create_function("x = 1")
    bad = build_zip("x = 1", "../../escaped.py")
    emulator.client("lambda").update_function_code(FunctionName="fn", ZipFile=bad)
    result, answer = invoke(emulator)
    assert answer["FunctionError"] == "Unhandled"
    assert "'../../escaped.py' points outside the zip" in result["errorMessage"]
    assert not list(tmp_path.rglob("escaped.py"))
    assert "points outside the zip" in emulator.log_text("fn")


def test_other_languages_are_refused_clearly(emulator: Emulator) -> None:
    emulator.create_function("def handler(event:, context:) = 1", Runtime="ruby3.3")
    result, answer = invoke(emulator)
    assert answer["FunctionError"] == "Unhandled"
    assert "The runtime 'ruby3.3' cannot be run here" in result["errorMessage"]


@pytest.mark.slow
@pytest.mark.usefixtures("patient_log")
def test_invocation_types_and_log_tail(emulator: Emulator) -> None:
    emulator.create_function("def handler(e, c):\n    print('seen', e)\n    return e")
    _, dry = invoke(emulator, InvocationType="DryRun")
    assert dry["StatusCode"] == 204
    nothing, event = invoke(emulator, {"n": 1}, InvocationType="Event")
    assert (nothing, event["StatusCode"]) == (None, 202)
    result, answer = invoke(emulator, {"n": 2}, LogType="Tail")
    assert result == {"n": 2}
    tail = base64.b64decode(answer["LogResult"]).decode()
    assert tail.startswith("START RequestId: ")
    assert "seen {'n': 2}" in tail
    assert "REPORT RequestId: " in tail
    wait_until(lambda: "seen {'n': 1}" in emulator.log_text("fn"), "the event was handled")
    assert "seen {'n': 1}" not in tail


@pytest.mark.usefixtures("patient_log")
def test_log_stream_lines_are_in_order(emulator: Emulator) -> None:
    emulator.create_function("print('loading')\ndef handler(e, c):\n    print('a')\n    print('b')")
    invoke(emulator)
    wait_until(lambda: "REPORT" in emulator.log_text("fn"), "the log ends")
    text = emulator.log_text("fn")
    words = [line.split()[0] for line in text.splitlines()]
    # What a module prints at its import may be read a moment later than it was printed, so before or after START.
    assert sorted(words[:2]) == ["START", "loading"]
    assert words[2:] == ["a", "b", "END", "REPORT"]
    assert "Init Duration: " in text
    stream = emulator.client("logs").describe_log_streams(logGroupName="/aws/lambda/fn")["logStreams"][0]
    assert "/[$LATEST]" in stream["logStreamName"]


# A handler that says that it has begun, on a connection to this port, and ends when that is closed.
WAITING_HANDLER = """
import os, socket
def handler(port, context):
    with socket.create_connection(("127.0.0.1", port)) as test:
        test.sendall(str(os.getpid()).encode())
        test.recv(1)
    return os.getpid()
"""


def test_concurrent_invocations_get_a_worker_each(emulator: Emulator) -> None:
    """None of them ends before all have begun."""
    emulator.create_function(WAITING_HANDLER, Timeout=60)
    with ThreadPoolExecutor(2) as pool, socket.create_server(("127.0.0.1", 0)) as server:
        futures = [pool.submit(invoke, emulator, server.getsockname()[1]) for _ in range(2)]
        begun = []
        with ExitStack() as stack:
            for _ in range(2):
                connection = stack.enter_context(server.accept()[0])
                begun.append(int(connection.recv(100)))
        pids = [future.result()[0] for future in futures]
    assert sorted(begun) == sorted(pids)


def test_failed_warming_does_not_end_the_lane(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator.create_function("def handler(event, context): return 'served'")
    function = get_function(ACCOUNT, REGION, "fn")

    def fail(_: object) -> None:
        raise ValueError("no room for a worker")

    monkeypatch.setattr(emulator.invoker._pool, "warm", fail)
    emulator.invoker.warm(function)
    answer = emulator.invoker.invoke_async(function, b"{}").result(timeout=400)
    assert json.loads(answer.payload) == "served"


@pytest.mark.slow
def test_async_failure_is_tried_three_times(emulator: Emulator) -> None:
    emulator.create_function("def handler(e, c):\n    print('attempt')\n    raise RuntimeError('always')")
    future = emulator.invoker.invoke_async(get_function(ACCOUNT, REGION, "fn"), b"{}")
    assert future.result(60).function_error == "Unhandled"
    wait_until(lambda: emulator.log_text("fn").count("END RequestId") == 3, "three attempts")
    emulator.client("lambda").put_function_event_invoke_config(FunctionName="fn", MaximumRetryAttempts=0)
    emulator.invoker.invoke_async(get_function(ACCOUNT, REGION, "fn"), b"{}").result(60)
    wait_until(lambda: emulator.log_text("fn").count("END RequestId") == 4, "one attempt more")


def test_async_invocations_of_a_function_keep_their_order(emulator: Emulator) -> None:
    emulator.create_function("seen = []\ndef handler(e, c):\n    seen.append(e)\n    return seen")
    function = get_function(ACCOUNT, REGION, "fn")
    futures = [emulator.invoker.invoke_async(function, str(number).encode()) for number in range(30)]
    assert json.loads(futures[-1].result(60).payload) == list(range(30))


def test_functions_that_are_not_invoked_again_keep_no_thread(emulator: Emulator) -> None:
    for number in range(2):
        emulator.create_function("def handler(e, c): pass", f"fn{number}")
        emulator.invoker.invoke_async(get_function(ACCOUNT, REGION, f"fn{number}"), b"{}").result(60)
    wait_until(lambda: sum(each.name.startswith("lambda-lane") for each in threading.enumerate()) == 1)


@pytest.fixture
def other_invoker(emulator: Emulator, tmp_path: Path) -> Any:
    made = []

    def make(**options: Any) -> FunctionInvoker:
        containers = LocalProcesses(tmp_path / "other-containers")
        workers = WorkerSettings(containers, emulator.endpoint_url, tmp_path / "other", CREDENTIALS)
        made.append(FunctionInvoker(workers, **options))
        return made[-1]

    yield make
    for invoker in made:
        invoker.close()


def test_idle_worker_ends(emulator: Emulator, other_invoker: Any, tmp_path: Path) -> None:
    emulator.create_function("def handler(e, c): pass")
    invoker = other_invoker(idle_seconds=0.1)
    assert invoker.invoke(get_function(ACCOUNT, REGION, "fn"), b"{}").payload == b"null"
    containers = LocalProcesses(tmp_path / "other-containers")
    wait_until(lambda: containers.find({}) == [], "the idle worker has gone")
    wait_until(lambda: list((tmp_path / "other").iterdir()) == [], "its folder has gone")


def test_throttled_when_all_workers_are_busy(emulator: Emulator, other_invoker: Any) -> None:
    emulator.create_function(WAITING_HANDLER, Timeout=60)
    invoker = other_invoker(max_workers=1)
    function = get_function(ACCOUNT, REGION, "fn")
    with socket.create_server(("127.0.0.1", 0)) as server:
        busy = invoker.invoke_async(function, str(server.getsockname()[1]).encode())
        with server.accept()[0] as connection:
            assert connection.recv(100)
            with pytest.raises(TooManyInvocationsError, match="All 1 Lambda workers are busy"):
                invoker.invoke(function, b"0")
    assert busy.result(60).function_error is None


def test_workers_of_a_killed_emulator_are_removed(emulator: Emulator, other_invoker: Any, tmp_path: Path) -> None:
    emulator.create_function("import os\ndef handler(e, c): return os.getpid()")
    killed = other_invoker()
    pid = int(killed.invoke(get_function(ACCOUNT, REGION, "fn"), b"{}").payload)
    containers = LocalProcesses(tmp_path / "other-containers")
    assert len(containers.find({})) == 1
    other_invoker()
    assert containers.find({}) == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_close_cuts_off_what_runs_and_leaves_nothing(emulator: Emulator, other_invoker: Any, tmp_path: Path) -> None:
    emulator.create_function("import time\ndef handler(e, c): time.sleep(600)", Timeout=600)
    before = set(threading.enumerate())
    invoker = other_invoker()
    function = get_function(ACCOUNT, REGION, "fn")
    running, waiting = (invoker.invoke_async(function, b"{}") for _ in range(2))
    wait_until(lambda: invoker._pool._busy and next(iter(invoker._pool._busy))._began_at, "the function runs")
    began = time.monotonic()
    invoker.close()
    assert time.monotonic() - began < 60
    assert waiting.cancelled()
    assert running.exception(60) is not None
    assert LocalProcesses(tmp_path / "other-containers").find({}) == []
    assert not (tmp_path / "other").exists()
    wait_until(lambda: not [t for t in threading.enumerate() if t not in before and "lambda" in t.name], "no thread")
