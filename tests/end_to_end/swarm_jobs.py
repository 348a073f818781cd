"""Shared parts of the Swarm tests: a small job, and nodes but the manager's.

The manager's own node takes no tasks.
"""

from __future__ import annotations

import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker

from sdk_compat.demo.training_job import RULES_IMAGE, build_channels
from tests.swarm_nodes import SwarmNodes
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.running_emulator import RunningEmulator

LARGE = "ml.m5.12xlarge"
"""As large as a node of the tests, or larger: each of them has one of these."""


def create_job(
    emulator: RunningEmulator,
    job: str,
    source: str,
    *,
    instance_type: str = "ml.m5.large",
    instance_count: int = 1,
    data: dict[str, bytes] | None = None,
    arguments: tuple[str, ...] = (),
    **members: Any,
) -> None:
    """Create a job that runs a script in the rules' image, which is small, and a bucket of the job's name.

    Args:
        emulator: that runs it.
        job: its name.
        source: the script.
        instance_type: of each host.
        instance_count: how many hosts.
        data: objects of the channel ``training``, by name.
        arguments: of the script.
        members: others of the request.
    """
    s3 = emulator.client("s3")
    s3.create_bucket(Bucket=job)
    s3.put_object(Bucket=job, Key="code/train.py", Body=source.encode())
    for name, content in (data or {}).items():
        s3.put_object(Bucket=job, Key=f"data/{name}", Body=content)
    channels = {"code": f"s3://{job}/code/", **({"training": f"s3://{job}/data/"} if data else {})}
    algorithm: dict[str, Any] = {
        "TrainingImage": RULES_IMAGE,
        "TrainingInputMode": "File",
        "ContainerEntrypoint": ["python", "/opt/ml/input/data/code/train.py"],
        **({"ContainerArguments": list(arguments)} if arguments else {}),
    }
    emulator.client("sagemaker").create_training_job(
        TrainingJobName=job,
        AlgorithmSpecification=algorithm,
        RoleArn="arn:aws:iam::123456789012:role/Training",
        InputDataConfig=build_channels(channels),
        OutputDataConfig={"S3OutputPath": f"s3://{job}/output"},
        ResourceConfig={"InstanceType": instance_type, "InstanceCount": instance_count, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 3000},
        **members,
    )


def set_availability(api: docker.APIClient, node_id: str, availability: str) -> None:
    """Let a node take tasks (``active``), no new ones (``pause``), or none (``drain``)."""

    def update() -> bool:
        node = api.inspect_node(node_id)
        spec: Any = {**node["Spec"], "Availability": availability}
        try:
            return bool(api.update_node(node_id, node["Version"]["Index"], spec))
        except docker.errors.APIError as error:
            if "out of sequence" not in str(error):
                raise
            return False  # the manager has changed the node meanwhile

    wait_until(update, f"node {node_id} to be set to {availability}")


def find_own_node(api: docker.APIClient) -> str:
    """Find the id of the node whose engine this is."""
    return str(api.info()["Swarm"]["NodeID"])


@contextmanager
def start_nodes(count: int) -> Iterator[SwarmNodes]:
    """Start nodes that have the rules' image, for one test; the manager takes no tasks but its agent."""
    with tempfile.TemporaryDirectory(prefix="smd-") as folder:
        nodes = SwarmNodes(Path(folder) / "swarm", count, in_memory=True)
        nodes.start()
        try:
            nodes.load("smdebug-emulator/sagemaker-debugger-rules:latest")
            with closing(nodes.manager.connect()) as api:
                set_availability(api, find_own_node(api), "pause")
            yield nodes
        finally:
            nodes.stop()
