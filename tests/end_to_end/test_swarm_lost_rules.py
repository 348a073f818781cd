"""Tests of a killed Swarm node: its lost work starts again elsewhere.

A starting job, a rule, a processing job and a function.
"""

import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from container_runtime.swarm.containers.tasks import NAME_LABEL
from sdk_compat.demo.training_job import RULES_IMAGE, build_rule
from tests.end_to_end.finished_jobs import read_log, wait_until_ended
from tests.end_to_end.swarm_jobs import LARGE, create_job, start_nodes
from tests.running_emulator import RunningEmulator
from tests.swarm_nodes import Node, SwarmNodes
from tests.waiting import wait_until

pytestmark = pytest.mark.docker

# The rule cannot judge the first steps, and so still runs when its node is killed.
TRAIN = """
import os, time
from smdebug.config.collection_manager import CollectionManager
from smdebug.writing.file_writer import FileWriter
collections = CollectionManager()
collections.export("/opt/ml/output/tensors", "worker_0_collections.json")
for step in range(20):
    with FileWriter("/opt/ml/output/tensors", "worker_0", step) as writer:
        writer.write_tensor(2.0, "loss")
    print("step", step, flush=True)
    while step == 1 and not os.path.exists("/opt/ml/go"):
        time.sleep(0.05)
"""
# An entry point's words have no line ends.
PROCESS = (
    "import os, time; [time.sleep(0.1) for _ in iter(lambda: os.path.exists('/opt/ml/processing/input/go'), True)]"
)

# Its first invocation waits for nothing that comes; the next one ends.
FUNCTION = """
import boto3, time
s3 = boto3.client("s3")
def handler(event, context):
    begun = s3.list_objects_v2(Bucket=event["bucket"], Prefix="begun/")["KeyCount"]
    s3.put_object(Bucket=event["bucket"], Key=f"begun/{begun}")
    if begun == 0:
        time.sleep(600)
    s3.put_object(Bucket=event["bucket"], Key="done")
"""


@pytest.fixture
def nodes(granted_namespaces: None) -> Iterator[SwarmNodes]:
    """A manager that takes no tasks but its agent, and two workers."""
    with start_nodes(3) as nodes:
        nodes.load("smdebug-emulator/lambda:latest", onto=[nodes.manager])
        with closing(nodes.manager.connect()) as api:
            api.tag("smdebug-emulator/sagemaker-debugger-rules", "smdebug-emulator/pytorch-training", "latest")
        yield nodes


@pytest.fixture
def emulator(
    nodes: SwarmNodes, start_emulator: Callable[..., RunningEmulator], monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningEmulator]:
    with tempfile.TemporaryDirectory() as shared:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
        monkeypatch.setenv("SMDEBUG_EMULATOR_SHARED_FOLDER", shared)
        running = start_emulator("swarm", state_dir=Path(shared) / "state")
        yield running
        assert running.stop() == 0


def find_node(nodes: SwarmNodes, name: str) -> Node:
    """Wait until the container whose name is matched runs, and return where."""

    def find() -> Node | None:
        with closing(nodes.manager.connect()) as api:
            for service in api.services(filters={"label": NAME_LABEL}):
                if re.fullmatch(name, service["Spec"]["Labels"][NAME_LABEL]):
                    for task in api.tasks({"service": service["ID"]}):
                        if task["Status"]["State"] == "running":
                            address = api.inspect_node(task["NodeID"])["Status"]["Addr"]
                            return next(each for each in nodes.nodes if each.address == address)
        return None

    wait_until(lambda: find() is not None, f"{name} to run")
    found = find()
    assert found is not None
    return found


def test_a_job_restarts_if_its_node_is_lost_during_the_start(
    emulator: RunningEmulator, nodes: SwarmNodes, job_name: str
) -> None:
    frozen, jobs = nodes.nodes[-1], [f"{job_name}-{number}" for number in range(2)]
    # One host on each node, which has the image then.
    create_job(emulator, job_name, "print('both')", instance_type=LARGE, instance_count=2)
    assert wait_until_ended(emulator, job_name)["TrainingJobStatus"] == "Completed", emulator.log_text()
    nodes.freeze(frozen)
    for each in jobs:
        create_job(emulator, each, "print('trained')", instance_type=LARGE)

    def list_starting() -> list[str]:
        with closing(nodes.manager.connect()) as api:
            addresses = {each["ID"]: each["Status"]["Addr"] for each in api.nodes()}
            tasks = [
                task
                for each in api.services(filters={"label": NAME_LABEL})
                for task in api.tasks({"service": each["ID"]})
            ]
        return [each["ID"] for each in tasks if addresses.get(each.get("NodeID")) == frozen.address]

    wait_until(list_starting, emulator.log_text)
    nodes.kill(frozen)
    for each in jobs:
        description = wait_until_ended(emulator, each)
        assert description["TrainingJobStatus"] == "Completed", (description, emulator.log_text())
    lost = f"({frozen.address}) of the Swarm stopped answering while it started smdebug-{job_name}"
    assert lost in emulator.log_text()


def test_a_rule_restarts_while_the_training_continues(
    emulator: RunningEmulator, nodes: SwarmNodes, job_name: str
) -> None:
    rule = build_rule("LossNotDecreasing", tensor_regex="loss", num_steps="5", use_losses_collection="False")
    create_job(
        emulator,
        job_name,
        TRAIN,
        instance_type=LARGE,
        DebugHookConfig={"S3OutputPath": f"s3://{job_name}/tensors"},
        DebugRuleConfigurations=[{**rule, "InstanceType": LARGE}],
    )
    training = find_node(nodes, rf"smdebug-{job_name}-\w+-algo-1")
    judging = find_node(nodes, rf"smdebug-{job_name}-LossNotDecreasing-.*")
    assert judging != training
    nodes.kill(judging)
    (folder,) = (emulator.state_dir / "jobs").glob(f"{job_name}-*/algo-1")
    (folder / "go").touch()
    description = wait_until_ended(emulator, job_name)
    assert description["TrainingJobStatus"] == "Completed", (description, read_log(emulator, job_name))
    assert "Restarting" not in [each["Status"] for each in description["SecondaryStatusTransitions"]]
    (status,) = description["DebugRuleEvaluationStatuses"]
    assert status["RuleEvaluationStatus"] == "IssuesFound", f"{status.get('StatusDetails')}\n{emulator.log_text()}"
    assert f"({judging.address}) of the Swarm" in emulator.log_text()


def test_a_processing_job_begins_again(emulator: RunningEmulator, nodes: SwarmNodes, job_name: str) -> None:
    s3, sagemaker = emulator.client("s3"), emulator.client("sagemaker")
    s3.create_bucket(Bucket=job_name)
    s3.put_object(Bucket=job_name, Key="input/rows", Body=b"rows")
    sagemaker.create_processing_job(
        ProcessingJobName=job_name,
        RoleArn="arn:aws:iam::123456789012:role/Processing",
        AppSpecification={"ImageUri": RULES_IMAGE, "ContainerEntrypoint": ["python", "-c", PROCESS]},
        ProcessingInputs=[
            {
                "InputName": "input",
                "S3Input": {
                    "S3Uri": f"s3://{job_name}/input/",
                    "LocalPath": "/opt/ml/processing/input",
                    "S3DataType": "S3Prefix",
                    "S3InputMode": "File",
                },
            }
        ],
        ProcessingResources={"ClusterConfig": {"InstanceCount": 1, "InstanceType": LARGE, "VolumeSizeInGB": 1}},
    )
    first = find_node(nodes, rf"smdebug-{job_name}-.*")
    # What the job finds when it begins again.
    s3.put_object(Bucket=job_name, Key="input/go", Body=b"")
    nodes.kill(first)

    def describe() -> dict[str, Any]:
        return sagemaker.describe_processing_job(ProcessingJobName=job_name)

    wait_until(lambda: describe()["ProcessingJobStatus"] not in ("InProgress", "Stopping"), emulator.log_text)
    assert describe()["ProcessingJobStatus"] == "Completed", (describe(), emulator.log_text())
    assert f"({first.address}) of the Swarm" in emulator.log_text()


def test_a_function_is_invoked_again(emulator: RunningEmulator, nodes: SwarmNodes, job_name: str) -> None:
    s3, functions = emulator.client("s3"), emulator.client("lambda")
    s3.create_bucket(Bucket=job_name)
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("function.py", FUNCTION)
    role = emulator.client("iam").create_role(RoleName=job_name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    functions.create_function(
        FunctionName=job_name,
        Runtime="python3.11",
        Role=role,
        Handler="function.handler",
        Code={"ZipFile": code.getvalue()},
        Timeout=900,
    )
    functions.invoke(FunctionName=job_name, InvocationType="Event", Payload=json.dumps({"bucket": job_name}))

    def has(key: str) -> bool:
        return s3.list_objects_v2(Bucket=job_name, Prefix=key)["KeyCount"] > 0

    wait_until(lambda: has("begun/0"), emulator.log_text)
    first = find_node(nodes, rf"smdebug-lambda-{job_name}-.*")
    nodes.kill(first)
    wait_until(lambda: has("done"), emulator.log_text)
    second = find_node(nodes, rf"smdebug-lambda-{job_name}-.*")
    assert second != first
    assert not has("begun/2")
