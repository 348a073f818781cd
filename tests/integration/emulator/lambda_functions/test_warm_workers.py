"""Workers of Lambda functions that are forked from a warm interpreter."""

import io
import json
import zipfile
from typing import Any

import pytest

from container_runtime.process.warm_interpreters import WarmOptions
from tests.integration.emulator.small_emulator import Emulator
from tests.waiting import wait_until

SOURCE = """
import os, sys, boto3

def handler(event, context):
    return {
        "forked": "warm_interpreter" in open("/proc/self/cmdline").read(),
        "environment": sorted(os.environ), "argv": sys.argv, "path": sys.path, "own": getattr(boto3, "OWN", None),
        "seen": sorted(each.partition("=")[0] for each in open("/proc/self/environ").read().split(chr(0)) if each),
        "region": boto3.client("s3").meta.region_name,
    }
"""
OWN_SDK = """
import types
OWN = "its own"

def client(name):
    return types.SimpleNamespace(meta=types.SimpleNamespace(region_name=""))
"""


@pytest.fixture
def warm_options() -> WarmOptions:
    return WarmOptions()


def invoke(emulator: Emulator, name: str, **files: str) -> dict[str, Any]:
    """Create a function of files, invoke it, and return its result."""
    emulator.create_function(SOURCE, name=name)
    if files:
        bundle = io.BytesIO()
        with zipfile.ZipFile(bundle, "w") as archive:
            for path, text in {"index.py": SOURCE, **files}.items():
                archive.writestr(path, text)
        emulator.client("lambda").update_function_code(FunctionName=name, ZipFile=bundle.getvalue())
    answer = emulator.client("lambda").invoke(FunctionName=name)
    result: dict[str, Any] = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, result
    return result


@pytest.mark.slow
def test_a_worker_is_a_fork_and_sees_what_a_cold_one_sees(emulator: Emulator) -> None:
    forked = invoke(emulator, "warm")
    assert forked.pop("forked")
    emulator.containers.close()
    started = invoke(emulator, "cold")
    assert not started.pop("forked")
    # Each worker has a folder of its own.
    for each in (forked, started):
        each["path"] = [len(path) for path in each["path"]]
    assert {name: (forked[name], started[name]) for name in forked if forked[name] != started[name]} == {}


def test_a_function_with_an_sdk_of_its_own_starts_cold(emulator: Emulator) -> None:
    result = invoke(emulator, "own", **{"boto3/__init__.py": OWN_SDK})
    assert (result["forked"], result["own"]) == (False, "its own")
    reason = "/var/task has a module boto3, which is imported already"
    line = f"smdebug-emulator: started without a warm interpreter: {reason}"
    wait_until(lambda: line in emulator.log_text("own"), lambda: emulator.log_text("own"))
