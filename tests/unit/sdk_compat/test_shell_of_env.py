"""Tests of a program in a shell that has the variables of ``env``."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from sdk_compat.environment import prepare_environment

pytestmark = pytest.mark.slow

# One program, because importing the SDK takes longer than all that is looked at. What is counted begins before that.
SOURCE = """
import json, socket
import short_polls
import jsonschema
from botocore.loaders import JSONFileLoader
load, read, checks = JSONFileLoader._load_file, [], []
def load_file(self, path, open_method):
    found = load(self, path, open_method)
    read.extend([] if found is None else [path])
    return found
JSONFileLoader._load_file = load_file
jsonschema.Draft202012Validator.check_schema = checks.append
import boto3, sagemaker.session, sagemaker.utils
config = sagemaker.config.load_sagemaker_config()
path = "SageMaker.PythonSDK.Modules.TelemetryOptOut"
opted_out = [sagemaker.utils.get_sagemaker_config_value(None, path, config) for _ in range(3)]
checked = len(checks)
from sagemaker import image_uris
regions = "us-east-1", "cn-north-1", "us-east-1"
uris = [image_uris.retrieve("xgboost", region, "1.7-1") for region in regions]
for region in regions:
    boto3.Session().client("sagemaker", region)
names = ["endpoints", "sagemaker/2017-07-24/service-2"]
print(json.dumps({
    "opted out": opted_out,
    "checked": checked,
    "read": [sum(f"/{name}.json" in path for path in read) for name in names],
    "uris": uris,
    "partition": sagemaker.utils.aws_partition("cn-north-1"),
    "time": type(sagemaker.session.time).__name__,
    "own module": short_polls.the_users_own,
    "resolver": socket.getaddrinfo.__module__,
}))
"""


# test_kept_data_files.py and test_short_polls.py have the parts; what this adds takes an import of the SDK.
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program finds with an empty home, for an emulator that nobody asks."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "short_polls.py").write_text("the_users_own = True")
    variables = prepare_environment("http://127.0.0.1:4580", {}, folder=folder / "clients")
    variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], str(folder)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SOURCE],
        env={**variables, "HOME": str(folder), "PATH": os.environ["PATH"], "SAGEMAKER_SUPPRESS_V2_WARNING": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_the_sdk_checks_its_schema_once(found: dict[str, Any]) -> None:
    assert (found["opted out"], found["checked"]) == ([True] * 3, 1)


def test_data_files_are_read_once(found: dict[str, Any]) -> None:
    assert found["read"] == [1, 1]
    uris = found["uris"]
    assert [".dkr.ecr.us-east-1.amazonaws.com/" in uri for uri in uris] == [True, False, True]
    assert ".dkr.ecr.cn-north-1.amazonaws.com.cn/" in uris[1]
    assert found["partition"] == "aws-cn"


def test_the_sdks_waits_are_shortened(found: dict[str, Any]) -> None:
    assert (found["time"], found["own module"], found["resolver"]) == ("PollingTime", True, "socket")
