"""Time from a violating step to StopTrainingJob. Goal: median under 1 s.

The time starts with the step's file on disk, and ends when the StopTrainingJob request after IssuesFound is received.

The script saves healthy steps, and waits long enough for its rule to start. Then it saves a step whose gradients are
NaN, and prints the modification time of that step's index file. The rule ExplodingTensor fires, and the stop handler
stops the job.
"""

import io
import json
import statistics
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3

from benchmarks.shared.engine import back_ends
from benchmarks.shared.logs import find_line
from sdk_compat.demo.training_job import BUCKET, RULES_IMAGE, build_request
from sdk_compat.emulator_process import EmulatorProcess

ROUNDS = 7
SCRIPT = """
import os, pathlib, time, json, torch
network, loss = torch.nn.Linear(8, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
index = pathlib.Path(json.load(open(os.environ["SMDEBUG_CONFIG_FILE_PATH"]))["LocalPath"]) / "index"
def step(value):
    optimizer.zero_grad()
    loss(network(torch.full((4, 8), value)), torch.ones(4, 1)).backward()
    optimizer.step()
for _ in range(3):
    step(1.0)
time.sleep(6)
step(float("nan"))
deadline = time.time() + 20
while time.time() < deadline:
    found = sorted(index.rglob("000000000003_*.json"))
    if found:
        print("violated", found[0].stat().st_mtime, flush=True)
        time.sleep(120)
    time.sleep(0.01)
"""


def build_nan_request(s3: Any, name: str) -> dict[str, Any]:
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        entry = tarfile.TarInfo("train.py")
        entry.size = len(SCRIPT)
        tar.addfile(entry, io.BytesIO(SCRIPT.encode()))
    s3.put_object(Bucket=BUCKET, Key="source/nan.tar.gz", Body=bundle.getvalue())
    request = build_request(name, {})
    del request["InputDataConfig"]
    request["HyperParameters"]["sagemaker_submit_directory"] = json.dumps(f"s3://{BUCKET}/source/nan.tar.gz")
    request["DebugHookConfig"]["CollectionConfigurations"] = [
        {"CollectionName": "gradients", "CollectionParameters": {"save_interval": "1"}}
    ]
    request["DebugRuleConfigurations"] = [
        {
            "RuleConfigurationName": "ExplodingTensor",
            "RuleEvaluatorImage": RULES_IMAGE,
            "RuleParameters": {"rule_to_invoke": "ExplodingTensor", "collection_names": "gradients"},
        }
    ]
    return request


def time_verdict(clients: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds from the index file to IssuesFound, and to the received StopTrainingJob."""
    name = f"nan-{uuid.uuid4().hex[:8]}"
    clients["sagemaker"].create_training_job(**build_nan_request(clients["s3"], name))
    while True:
        described = clients["sagemaker"].describe_training_job(TrainingJobName=name)
        if described["TrainingJobStatus"] not in {"InProgress", "Stopping"}:
            break
        time.sleep(0.05)
    if described["TrainingJobStatus"] != "Stopped":
        raise RuntimeError(f"{name}: {described}")
    on_disk = float(find_line(clients["logs"], name, "violated").split()[1])
    found = described["DebugRuleEvaluationStatuses"][0]["LastModifiedTime"].timestamp()
    stopping = next(t for t in described["SecondaryStatusTransitions"] if t["Status"] == "Stopping")
    return found - on_disk, stopping["StartTime"].timestamp() - on_disk


def measure() -> Iterator[str]:
    for runtime in back_ends():
        with (
            tempfile.TemporaryDirectory() as folder,
            EmulatorProcess(Path(folder) / "state", runtime=runtime) as emulator,
        ):
            clients = {
                service: boto3.client(
                    service,
                    endpoint_url=emulator.endpoint_url,
                    region_name="us-east-1",
                    aws_access_key_id="bench",
                    aws_secret_access_key="bench",
                )
                for service in ("sagemaker", "s3", "logs")
            }
            clients["s3"].create_bucket(Bucket=BUCKET)
            deploy_stop_handler(emulator.endpoint_url)
            times = [time_verdict(clients) for _ in range(ROUNDS)]
        found = statistics.median(t[0] for t in times)
        stop = statistics.median(t[1] for t in times)
        worst = max(t[1] for t in times)
        yield (
            f"{runtime:<8} step on disk → IssuesFound {found:5.2f} s → StopTrainingJob received {stop:5.2f} s"
            f" (medians of {ROUNDS}; slowest {worst:.2f} s; goal: under 1 s)"
        )


def deploy_stop_handler(endpoint_url: str) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "emulator", "stop-handler", "deploy", "--endpoint-url", endpoint_url]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
