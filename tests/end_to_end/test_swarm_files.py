"""Tests of a job whose Swarm node is cut off, without a shared disk.

The next attempt gets the files that had come, and the log names the others.

Run with ``--swarm whole``: a Swarm takes most of a minute to give a node up.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.end_to_end.finished_jobs import download_model, read_log, wait_until_ended
from tests.end_to_end.swarm_jobs import create_job, find_own_node, set_availability
from tests.running_emulator import RunningEmulator
from tests.swarm_nodes import SwarmNodes
from tests.waiting import wait_until

pytestmark = pytest.mark.docker

# The first attempt goes on for ever, the next one ends at once.
TRAIN = """
import pathlib, time
checkpoint, model = pathlib.Path("/opt/ml/checkpoints/attempts"), pathlib.Path("/opt/ml/model")
first = not checkpoint.exists()
with checkpoint.open("a") as file:
    file.write("attempt\\n")
while first:
    (model / "first").write_text(str(time.time()))
    time.sleep(0.1)
(model / "end").write_text(checkpoint.read_text())
"""


@pytest.fixture
def carrying_emulator(
    swarm_nodes_with_rules: SwarmNodes, start_emulator: Callable[..., RunningEmulator]
) -> Iterator[RunningEmulator]:
    """An emulator whose folders no node sees."""
    nodes = swarm_nodes_with_rules
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
        nodes.hide(Path(folder))
        running = start_emulator("swarm", state_dir=Path(folder) / "state")
        yield running
        assert running.stop() == 0


def test_what_a_lost_node_had_not_sent_is_reported(
    carrying_emulator: RunningEmulator, swarm_nodes: SwarmNodes, job_name: str
) -> None:
    emulator, (_, other) = carrying_emulator, swarm_nodes.nodes
    s3 = emulator.client("s3")
    with closing(swarm_nodes.manager.connect()) as api:
        set_availability(api, find_own_node(api), "pause")
        try:
            create_job(emulator, job_name, TRAIN, CheckpointConfig={"S3Uri": f"s3://{job_name}/checkpoints"})
            wait_until(lambda: "Contents" in s3.list_objects_v2(Bucket=job_name, Prefix="checkpoints/"))
            (model,) = (emulator.state_dir / "jobs").glob(f"{job_name}-*/algo-1/model")
            wait_until((model / "first").exists)
        finally:
            set_availability(api, find_own_node(api), "active")
        swarm_nodes.cut(other)
        try:
            description = wait_until_ended(emulator, job_name)
        finally:
            swarm_nodes.mend(other)
        wait_until(lambda: [each["Status"]["State"] for each in api.nodes()] == ["ready"] * 2)
    log = read_log(emulator, job_name)
    assert description["TrainingJobStatus"] == "Completed", (description, log)
    assert download_model(emulator, description) == {"end": b"attempt\n" * 2}
    told = rf"\({other.address}\) of the Swarm is down, and what it ran is lost\. Its files have come as they were at "
    assert re.search(told + r"[\d:.]+ UTC; what it wrote after that is lost\.", log), log
