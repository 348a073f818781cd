"""Tests of torch.distributed over two Swarm nodes, with a large image.

Only the manager has the image at first.

Run with ``--swarm whole``: to copy such an image twice takes a minute or two.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from sdk_compat.demo.training_job import BUCKET, DIGITS, build_rule, stage_inputs
from smdebug.trials import create_trial
from tests.end_to_end.finished_jobs import (
    download_model,
    download_run,
    read_streams,
    wait_for_handler_line,
    wait_until_ended,
)
from tests.end_to_end.swarm_jobs import LARGE
from tests.end_to_end.test_failures import build_script_request
from tests.running_emulator import RunningEmulator
from tests.swarm_nodes import SwarmNodes
from tests.waiting import wait_until

pytestmark = pytest.mark.docker

# What each host computes is the mean of both, and nothing is learned: until the rule's handler stops it.
TRAIN = """
import json, os, pathlib, torch, torch.distributed as dist
hosts = json.loads(os.environ["SM_HOSTS"])
dist.init_process_group("gloo", rank=hosts.index(os.environ["SM_CURRENT_HOST"]), world_size=len(hosts))
rank = dist.get_rank()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
print("rank", rank, "of", dist.get_world_size(), "sees", total.item(), flush=True)
words = pathlib.Path(os.environ["SM_CHANNEL_TRAINING"], "digits.npz").stat().st_size
pathlib.Path(os.environ["SM_MODEL_DIR"], f"host-{rank}").write_text(str(words))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
loss_function, optimizer = torch.nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.0)
while True:
    optimizer.zero_grad()
    loss_function(model(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    optimizer.step()
"""
IMAGES = ["smdebug-emulator/pytorch-training:latest", "smdebug-emulator/lambda:latest"]


@pytest.fixture(scope="module")
def swarm_emulator(
    swarm_nodes_with_rules: SwarmNodes, start_emulator: Callable[..., RunningEmulator]
) -> Iterator[RunningEmulator]:
    """An emulator whose images are on the manager only, but for the agents' own; the stop handler is deployed."""
    nodes = swarm_nodes_with_rules
    nodes.load(*IMAGES, onto=[nodes.manager])
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as shared:
        patch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
        patch.setenv("SMDEBUG_EMULATOR_SHARED_FOLDER", shared)
        running = start_emulator("swarm", state_dir=Path(shared) / "state")
        stage_inputs(running.client("s3"))
        deploy = [sys.executable, "-m", "emulator", "stop-handler", "deploy", "--endpoint-url", running.endpoint_url]
        subprocess.run(deploy, check=True, timeout=400)
        yield running
        assert running.stop() == 0


def test_training_over_two_nodes_is_stopped_by_its_rule(
    swarm_emulator: RunningEmulator, swarm_nodes: SwarmNodes, job_name: str, tmp_path: Path
) -> None:
    """Joined by torch.distributed, judged while it trains, stopped by its rule's handler; nothing is left of it."""
    assert "2 nodes of a Swarm" in swarm_emulator.first_line
    assert swarm_emulator.read_runtime() == "swarm"
    request = build_script_request(swarm_emulator, job_name, TRAIN)
    request["DebugRuleConfigurations"] = [
        build_rule("LossNotDecreasing", collection_names="losses", num_steps="50", diff_percent="0.1")
    ]
    request["DebugHookConfig"]["HookParameters"] = {"include_workers": "all"}
    request["ResourceConfig"] |= {"InstanceType": LARGE, "InstanceCount": 2}
    sagemaker = swarm_emulator.client("sagemaker")
    sagemaker.create_training_job(**request)
    with closing(swarm_nodes.manager.connect()) as api:

        def list_hosts() -> list[dict[str, Any]]:
            services = api.services(filters={"label": "smdebug-emulator.host"})
            return [each for each in services if "training-job/" in str(each["Spec"]["Labels"])]

        def list_tasks() -> list[dict[str, Any]]:
            found = (api.tasks({"service": each["ID"]}) for each in list_hosts())
            return [max(tasks, key=itemgetter("CreatedAt")) for tasks in found if tasks]

        wait_until(
            lambda: [task["Status"]["State"] for task in list_tasks()] == ["running"] * 2,
            lambda: f"{list_tasks()}\n{swarm_emulator.log_text()}",
            seconds=560,
        )
        assert len({task["NodeID"] for task in list_tasks()}) == 2
        # What a job is called is on its service; what it may not show is not.
        assert all("secret" not in str(each["Spec"]["Labels"]).lower() for each in list_hosts())
    description = wait_until_ended(swarm_emulator, job_name)
    texts = read_streams(swarm_emulator, job_name)
    assert description["TrainingJobStatus"] == "Stopped", (description, texts)
    (rule,) = description["DebugRuleEvaluationStatuses"]
    assert rule["RuleEvaluationStatus"] == "IssuesFound", rule
    wait_for_handler_line(swarm_emulator.client("logs"), f"Stopped {job_name}")
    assert [f"rank {rank} of 2 sees 3.0" in texts[f"algo-{rank + 1}"] for rank in (0, 1)] == [True, True], texts
    size = str(DIGITS.stat().st_size).encode()
    assert download_model(swarm_emulator, description) == {"host-0": size, "host-1": size}
    trial = create_trial(str(download_run(swarm_emulator, BUCKET, job_name, tmp_path)))
    assert trial.workers() == ["worker_0", "worker_1"]
    (loss,) = trial.tensor_names(collection="losses")
    assert trial.tensor(loss).value(0, worker="worker_1") > 0
    with closing(swarm_nodes.manager.connect()) as api:
        wait_until(lambda: not api.services(filters={"label": "smdebug-emulator.host"}))
    with closing(swarm_nodes.nodes[1].connect()) as api:
        image = api.inspect_image(find_image(swarm_nodes, IMAGES[0]))
        assert image["RepoTags"] == [], "it was brought by its content, and not by its name"


def find_image(nodes: SwarmNodes, name: str) -> str:
    with closing(nodes.manager.connect()) as api:
        return str(api.inspect_image(name)["Id"])
