"""Tests of the SageMaker SDK (version 3): ModelTrainer and sagemaker-core.

The SDK has an environment of its own.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shared.environments import build_environment
from tests.running_emulator import RunningEmulator

pytestmark = pytest.mark.any_back_end

TRAIN = """
import json, os, pathlib, sys
rows = pathlib.Path(os.environ["SM_CHANNEL_TRAINING"], "rows.csv").read_text()
print("found", json.dumps([rows, json.loads(os.environ["SM_HPS"])], sort_keys=True))
pathlib.Path(os.environ["SM_MODEL_DIR"], "model.txt").write_text("trained")
"""
CAPTURED = """
import time, torch
network, loss = torch.nn.Linear(3, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for step in range(10**6):
    optimizer.zero_grad()
    loss(network(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    optimizer.step()
    time.sleep(0.05)
"""
SCRIPT = """
import io, json, sys, tarfile, time
from pathlib import Path

hosts = set()

def note(event, args):
    if event == "socket.connect" and not isinstance(args[1], str):
        hosts.add(args[1][0])

sys.addaudithook(note)
import boto3
from sagemaker.core import shapes
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.resources import TrainingJob
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, InputData, SourceCode

train, captured = sys.argv[1:]
for name, text in (("source/train.py", train), ("data/rows.csv", "1,2"), ("captured/train.py", captured)):
    path = Path(name)
    path.parent.mkdir()
    path.write_text(text)
role, image = "arn:aws:iam::123456789012:role/Training", "pytorch-training:2.13.0-cpu-py311"
compute = Compute(instance_type="ml.m5.large", instance_count=1)
hyperparameters = {"epochs": 1, "rate": 0.5, "name": "a b", "on": True, "sizes": [1, 2]}
trainer = ModelTrainer(
    training_image=image,
    role=role,
    source_code=SourceCode(source_dir="source", entry_script="train.py"),
    compute=compute,
    hyperparameters=hyperparameters,
    base_job_name="trainer",
)
trainer.train(input_data_config=[InputData(channel_name="training", data_source="data")], wait=True, logs=True)
job = TrainingJob.get(trainer._latest_training_job.training_job_name)
found = {"trainer": [job.training_job_status, job.model_artifacts.s3_model_artifacts]}
bucket = job.model_artifacts.s3_model_artifacts.split("/")[2]

s3 = boto3.client("s3")
bundle = io.BytesIO()
with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
    tar.add("captured/train.py", "train.py")
s3.put_object(Bucket=bucket, Key="captured/sourcedir.tar.gz", Body=bundle.getvalue())
core = TrainingJob.create(
    training_job_name="core",
    role_arn=role,
    algorithm_specification=shapes.AlgorithmSpecification(training_image=image, training_input_mode="File"),
    hyper_parameters={
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": f"s3://{bucket}/captured/sourcedir.tar.gz",
    },
    output_data_config=shapes.OutputDataConfig(s3_output_path=f"s3://{bucket}/core"),
    resource_config=shapes.ResourceConfig(instance_type="ml.m5.large", instance_count=1, volume_size_in_gb=1),
    stopping_condition=shapes.StoppingCondition(max_runtime_in_seconds=900),
    debug_hook_config=shapes.DebugHookConfig(
        s3_output_path=f"s3://{bucket}/tensors",
        collection_configurations=[
            shapes.CollectionConfiguration(collection_name="losses", collection_parameters={"save_interval": "1"})
        ],
    ),
    debug_rule_configurations=[
        shapes.DebugRuleConfiguration(
            rule_configuration_name="Falls",
            rule_evaluator_image="sagemaker-debugger-rules:latest",
            rule_parameters={"rule_to_invoke": "LossNotDecreasing", "num_steps": "100000"},
        )
    ],
)
prefix = "tensors/core/debug-output/events/"
while not s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["KeyCount"]:
    time.sleep(0.1)
core.refresh()
found["core"] = [core.training_job_arn, core.training_job_status]
core.stop()
core.wait(poll=1)
core.refresh()
found["core"] += [core.training_job_status, core.debug_hook_config.s3_output_path]
rules = {each.rule_configuration_name for each in core.debug_rule_evaluation_statuses}
found["rules"] = sorted(rules)
found["listed"] = [each.training_job_name for each in TrainingJob.get_all(name_contains="core")]
found["regions"] = []
for region in ("ap-south-1", "cn-north-1"):
    there = boto3.Session(region_name=region)
    elsewhere = TrainingJob.create(
        training_job_name="trained-elsewhere", role_arn=role, session=there, region=region,
        algorithm_specification=shapes.AlgorithmSpecification(
            training_image="nobody-built:1", training_input_mode="File"
        ),
        output_data_config=shapes.OutputDataConfig(s3_output_path=f"s3://{Session(there).default_bucket()}/elsewhere"),
        resource_config=shapes.ResourceConfig(instance_type="ml.m5.large", instance_count=1, volume_size_in_gb=1),
        stopping_condition=shapes.StoppingCondition(max_runtime_in_seconds=900),
    )
    listed = [each.training_job_name for each in TrainingJob.get_all(
        name_contains="trained-elsewhere", session=there, region=region
    )]
    found["regions"].append([elsewhere.training_job_arn, elsewhere.output_data_config.s3_output_path, listed])
found["hosts"] = sorted(hosts)
print("\\nFOUND", json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(
    served: RunningEmulator, client_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What a script of the SDK found; one run of it, because the SDK is slow to import."""
    python = build_environment("sagemaker-v3", Path(__file__).with_name("requirements-sagemaker-v3.txt"))
    command = [str(python), "-W", "ignore", "-c", SCRIPT, TRAIN, CAPTURED]
    environment = {name: value for name, value in client_environment.items() if not name.startswith("PYTHON")}
    folder = tmp_path_factory.mktemp("sdk")
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=560, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + served.log_text()
    lines = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    result: dict[str, Any] = json.loads(lines[-1])
    return result | {"output": done.stdout + done.stderr}


def test_model_trainer_trains_on_what_it_uploads(found: dict[str, Any]) -> None:
    status, model = found["trainer"]
    assert (status, model.endswith("/output/model.tar.gz")) == ("Completed", True)
    assert model.startswith("s3://sagemaker-us-east-1-123456789012/trainer/")


def test_training_job_is_created_refreshed_stopped_and_listed(found: dict[str, Any]) -> None:
    arn, running, ended, tensors = found["core"]
    assert arn == "arn:aws:sagemaker:us-east-1:123456789012:training-job/core"
    assert (running, ended) == ("InProgress", "Stopped")
    assert tensors == "s3://sagemaker-us-east-1-123456789012/tensors"
    assert found["rules"] == ["Falls"]
    assert found["listed"] == ["core"]


def test_sessions_of_other_regions_have_their_buckets_arns_and_lists(found: dict[str, Any]) -> None:
    assert found["regions"] == [
        [
            f"arn:{partition}:sagemaker:{region}:123456789012:training-job/trained-elsewhere",
            f"s3://sagemaker-{region}-123456789012/elsewhere",
            ["trained-elsewhere"],
        ]
        for region, partition in (("ap-south-1", "aws"), ("cn-north-1", "aws-cn"))
    ]


def test_nothing_leaves_the_machine(found: dict[str, Any]) -> None:
    assert found["hosts"] == ["127.0.0.1"]
