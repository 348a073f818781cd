"""Tests of the AWS SDK for JavaScript v3: one script under ``run``.

It uses S3, SageMaker, EventBridge and CloudWatch Logs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shared.environments import build_node_modules
from tests.running_emulator import RunningEmulator

pytestmark = pytest.mark.nightly

FOLDER = Path(__file__).with_name("javascript")
IMAGE = "pytorch-training:2.13.0-cpu-py311"
ARN = "arn:aws:{}:us-east-1:123456789012:{}"
TRAIN = """
import torch
print("SAID by a job of a JavaScript client")
network, loss = torch.nn.Linear(3, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
for step in range(30):
    optimizer.zero_grad()
    loss(network(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def found(start_emulator: Callable[..., RunningEmulator], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script found; one run of it, with an emulator in which nobody else's function stops jobs."""
    served = start_emulator("process")
    node, modules = build_node_modules(FOLDER / "requirements.txt", FOLDER)
    folder = tmp_path_factory.mktemp("javascript")
    (folder / "node_modules").symlink_to(modules)
    (folder / "client.mjs").write_text((FOLDER / "client.mjs").read_text())
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "NODE_"))}
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    command = [sys.executable, "-m", "emulator", "run", "--state-dir", str(served.state_dir), "--"]
    command += [str(node), "client.mjs", served.endpoint_url.rpartition(":")[2], IMAGE, TRAIN]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=560, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + served.log_text()
    (line,) = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    result: dict[str, Any] = json.loads(line)
    return result


def test_buckets_are_in_paths_and_in_names_of_hosts(found: dict[str, Any]) -> None:
    assert found["hosts"] == {
        "path": "http://127.0.0.1",
        "host": "http://of-javascript.localhost",
        "aws": "https://of-ireland.s3.eu-west-1.amazonaws.com",
    }
    assert found["read"] == "data/ü.csv"
    assert found["pages"] == [["data/a b.csv", "data/b.csv"], ["data/ü.csv"]]
    assert (found["deleted"], found["missing"]) == (["data/b.csv"], "NoSuchKey")
    assert found["location"] == "eu-west-1"


def test_jobs_are_waited_for_judged_and_listed(found: dict[str, Any]) -> None:
    arn = ARN.format("sagemaker", "training-job/js-judged")
    assert found["jobs"] == [arn, "Completed", "Stopped", True]
    assert found["rules"] == [["Falls", "IssuesFound"]]
    assert found["listed"] == [["js-judged"], ["js-stopped"]]
    assert found["unknown"] == "ValidationException"
    there = "arn:aws-cn:sagemaker:cn-north-1:123456789012:training-job/js-elsewhere"
    assert found["elsewhere"] == [["js-elsewhere"], there], "another region has jobs of its own"


def test_events_and_logs_tell_of_the_jobs(found: dict[str, Any]) -> None:
    assert found["events"] == [ARN.format("events", "rule/javascript"), True, "InvalidEventPatternException"]
    assert [stream.partition("-")[0] for stream in found["streams"]] == ["js"]
    assert found["said"] == ["SAID by a job of a JavaScript client"]
    assert found["told"] == ["js-judged", "js-stopped"]


def test_nothing_leaves_the_machine(found: dict[str, Any]) -> None:
    assert found["refused"].startswith("smdebug-emulator run keeps this program off AWS: ask the emulator instead, at ")
    assert found["connected"] == ["127.0.0.1"]
