"""Tests of Lambda functions in other Python versions than the emulator's."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from emulator.lambda_functions.python import OWN_VERSION, find_python
from tests.integration.emulator.small_emulator import Emulator
from tests.waiting import wait_until

VERSIONS = [version for version in ("3.9", "3.10", "3.12", "3.13") if version != OWN_VERSION]
SOURCE = """
import decimal, logging, sys
def handler(event, context):
    logging.getLogger().warning("asked by %s", context.aws_request_id)
    if event == "fail":
        raise ValueError("as asked")
    if event == "exit":
        sys.exit(3)
    if event == "call":
        import boto3
        return boto3.client("s3").create_bucket(Bucket="made-" + context.function_name)["Location"]
    return {"version": "%d.%d" % sys.version_info[:2], "event": event, "number": decimal.Decimal("1.5"),
            "left": context.get_remaining_time_in_millis()}
"""


def invoke(emulator: Emulator, name: str, event: Any) -> tuple[Any, str | None]:
    answer = emulator.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event))
    return json.loads(answer["Payload"].read()), answer.get("FunctionError")


def name_function(version: str) -> str:
    return f"fn-{version.replace('.', '-')}"


def use(emulator: Emulator, version: str, events: list[Any]) -> list[Any]:
    """Create a function, and return what it answers to each event."""
    name = name_function(version)
    emulator.create_function(SOURCE, name, Runtime=f"python{version}", Timeout=60)
    return [invoke(emulator, name, event) for event in events]


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, pytest.param(len(VERSIONS), marks=pytest.mark.nightly)])
def test_each_version_runs_under_its_interpreter(emulator: Emulator, most: int) -> None:
    present = [version for version in VERSIONS if find_python(version)][-most:]
    if not present:
        pytest.skip("this machine has no other Python")
    event = {"x": "ü"}
    events = {version: [event] for version in present} | {present[-1]: [event, "fail", "call", "exit", event]}
    with ThreadPoolExecutor() as pool:
        answers = pool.map(lambda version: use(emulator, version, events[version]), present)
        found = dict(zip(present, answers, strict=True))
    for version, (first, *_) in found.items():
        assert 0 < first[0].pop("left", 0) <= 60_000, (version, first)
        assert first == ({"version": version, "event": event, "number": 1.5}, None)
    _, failed, called, ended, again = found[present[-1]]
    assert (failed[0]["errorType"], failed[0]["errorMessage"]) == ("ValueError", "as asked")
    assert failed[0]["stackTrace"]
    # The SDK as it is here needs Python 3.10.
    assert called[0] == f"/made-{name_function(present[-1])}" or present == ["3.9"]
    assert (ended[0]["errorType"], ended[1]) == ("Runtime.ExitError", "Unhandled")
    assert again[0]["event"] == event
    for name in map(name_function, found):
        wait_until(lambda name=name: "asked by" in emulator.log_text(name))  # type: ignore[misc]


def test_a_version_that_is_not_there_is_reported(emulator: Emulator) -> None:
    emulator.create_function(
        "import sys\ndef handler(event, context): return sys.version_info[1]", Runtime="python3.99"
    )
    assert invoke(emulator, "fn", {}) == (sys.version_info.minor, None)
    said = f"The function asks for python3.99 and runs under Python {OWN_VERSION}: no python3.99 that runs is on PATH"
    wait_until(lambda: said in emulator.log_text("fn"), lambda: emulator.log_text("fn"))


def test_what_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (
        ("broken", "exit 127"),
        ("older", "echo 3.11 /older"),
        ("good", 'echo 3.99 "/good of $PYENV_VERSION"'),
        ("second", "echo 3.99 /second"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "python3.99").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name / "python3.99").chmod(0o755)
    names = [str(tmp_path / name) for name in ("broken", "older", "nowhere", "good", "second")]
    monkeypatch.setenv("PATH", os.pathsep.join(names))
    assert find_python("3.99") == "/good of 3.99"
    assert find_python("3.99", [tmp_path / "second"]) == "/second"
    assert find_python("3.98") is None
