"""Tests of a whole job over two Swarm nodes: trained, judged, stopped, removed.

Once with a folder that all nodes see, and once with none: its files are carried to the nodes and from them.

``test_swarm_training.py`` has the same with torch, ``test_swarm_losses.py`` what becomes of a job whose node goes.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from container_runtime.back_ends import RuntimeOptions, load_back_end
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError
from container_runtime.swarm.engine import SwarmEngine
from emulator.console.build import build_console
from sdk_compat.demo.training_job import build_rule
from smdebug.trials import create_trial
from tests.chromium import opened_chromium, visit
from tests.commands import run_command
from tests.end_to_end.finished_jobs import download_run, read_log, wait_for_handler_line, wait_until_ended
from tests.end_to_end.swarm_jobs import LARGE, create_job
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker

    from tests.running_emulator import RunningEmulator
    from tests.swarm_nodes import SwarmNodes

pytestmark = pytest.mark.docker

# Both hosts save a loss that stays as it is, after the second has met the first.
TRAIN = """
import json, os, socket, time
from smdebug.config.collection_manager import CollectionManager
from smdebug.writing.file_writer import FileWriter
host = json.load(open("/opt/ml/input/config/resourceconfig.json"))["current_host"]
if host == "algo-1":
    with socket.create_server(("", 7777)) as server:
        server.accept()[0].sendall(b"from algo-1")
else:
    while True:
        try:
            print(socket.create_connection(("algo-1", 7777), 5).recv(100).decode(), flush=True)
            break
        except OSError:
            time.sleep(0.1)
open("/opt/ml/model/" + host, "w").write(open("/opt/ml/input/data/training/words").read())
collections = CollectionManager()
collections.set_num_workers(2)
collections.export("/opt/ml/output/tensors", host + "_collections.json")
for step in range(12):
    with FileWriter("/opt/ml/output/tensors", host, step) as writer:
        writer.write_tensor(2.0, "loss")
    print("step", step, flush=True)
    while not os.path.exists("/opt/ml/input/config/go"):  # until it was looked at
        time.sleep(0.05)
while True:  # until it is stopped
    time.sleep(1)
"""


@pytest.fixture(scope="module", params=[pytest.param("shared", marks=pytest.mark.nightly), "carried"])
def shares_folder(request: pytest.FixtureRequest) -> bool:
    """Whether all nodes see the emulator's files. By night the whole scenario is tested where they do."""
    return bool(request.param == "shared")


@pytest.fixture(scope="module")
def swarm_emulator(
    shares_folder: bool, swarm_nodes_with_rules: SwarmNodes, start_emulator: Callable[..., RunningEmulator]
) -> Iterator[RunningEmulator]:
    """An emulator; by night with the stop handler, whose image is on the manager only."""
    nodes = swarm_nodes_with_rules
    if shares_folder:
        nodes.load("smdebug-emulator/lambda:latest", onto=[nodes.manager])
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as shared:
        patch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
        if shares_folder:
            patch.setenv("SMDEBUG_EMULATOR_SHARED_FOLDER", shared)
        else:
            nodes.hide(Path(shared))
        running = start_emulator("swarm", state_dir=Path(shared) / "state")
        if shares_folder:
            run_command("stop-handler", "deploy", "--endpoint-url", running.endpoint_url)
        yield running
        assert running.stop() == 0


def test_job_over_two_nodes_is_judged_and_stopped(
    swarm_emulator: RunningEmulator, shares_folder: bool, swarm_nodes: SwarmNodes, job_name: str, tmp_path: Path
) -> None:
    """By day the rule's own action stops the job, by night the handler, and the console is looked at, too."""
    assert "2 nodes of a Swarm" in swarm_emulator.first_line
    assert swarm_emulator.read_runtime() == "swarm"
    s3, sagemaker = swarm_emulator.client("s3"), swarm_emulator.client("sagemaker")
    action = {"name": "stoptraining", "training_job_prefix": job_name}
    stops = {} if shares_folder else {"action_json": json.dumps(action)}
    create_job(
        swarm_emulator,
        job_name,
        TRAIN,
        instance_type=LARGE,
        instance_count=2,
        data={"words": b"by way of S3"},
        DebugHookConfig={"S3OutputPath": f"s3://{job_name}/tensors"},
        DebugRuleConfigurations=[
            build_rule("LossNotDecreasing", tensor_regex="loss", num_steps="5", use_losses_collection="False", **stops)
        ],
    )
    wait_until(
        lambda: "step 0" in read_log(swarm_emulator, job_name),
        lambda: (
            f"{sagemaker.describe_training_job(TrainingJobName=job_name)}\n{read_log(swarm_emulator, job_name)}\n"
            f"{swarm_emulator.log_text()}"
        ),
    )
    check_places(swarm_emulator, job_name)
    if shares_folder:
        check_console(swarm_emulator, swarm_nodes, job_name, tmp_path)
    with closing(swarm_nodes.manager.connect()) as api:
        services = api.services(filters={"label": "smdebug-emulator.host"})
        # One that the Swarm took from its node before it began stays beside the one that took its place.
        tasks = [
            [task for task in api.tasks({"service": each["ID"]}) if task["Status"]["State"] == "running"]
            for each in services
            if "training-job/" in str(each["Spec"]["Labels"])
        ]
        assert all("secret" not in str(each["Spec"]["Labels"]).lower() for each in services)
    assert len({task["NodeID"] for (task,) in tasks}) == len(tasks) == 2
    for folder in (swarm_emulator.state_dir / "jobs").glob(f"{job_name}-*/algo-*"):
        (folder / "input" / "config" / "go").touch()
    description = wait_until_ended(swarm_emulator, job_name)
    assert description["TrainingJobStatus"] == "Stopped", description.get("FailureReason")
    (rule,) = description["DebugRuleEvaluationStatuses"]
    assert rule["RuleEvaluationStatus"] == "IssuesFound", rule
    if shares_folder:
        wait_for_handler_line(swarm_emulator.client("logs"), f"Stopped {job_name}")
    log = read_log(swarm_emulator, job_name)
    assert "from algo-1" in log
    model = description["ModelArtifacts"]["S3ModelArtifacts"].removeprefix(f"s3://{job_name}/")
    with tarfile.open(fileobj=io.BytesIO(s3.get_object(Bucket=job_name, Key=model)["Body"].read())) as archive:
        words = {name: archive.extractfile(name) for name in archive.getnames()}
        assert {name: file and file.read() for name, file in words.items()} == {
            "algo-1": b"by way of S3",
            "algo-2": b"by way of S3",
        }
    trial = create_trial(str(download_run(swarm_emulator, job_name, job_name, tmp_path)))
    assert trial.workers() == ["algo-1", "algo-2"]
    assert trial.tensor("loss").value(5, worker="algo-2") == 2.0
    with closing(swarm_nodes.manager.connect()) as api:
        wait_until(lambda: not api.services(filters={"label": "smdebug-emulator.host"}))
    for node in swarm_nodes.nodes:
        with closing(node.connect()) as api:
            # The handler's worker is kept warm, and has its own.
            wait_until(partial(has_no_loose_volume, api))


def has_no_loose_volume(api: docker.APIClient) -> bool:
    return not api.volumes(filters={"dangling": True})["Volumes"]


def check_places(emulator: RunningEmulator, job: str) -> None:
    """What runs where is shown of the emulator and of the job."""
    shown = {}
    for command in (["status"], ["describe", job]):
        shown[command[0]] = run_command(*command, "--state-dir", str(emulator.state_dir)).stdout
    for text in shown.values():
        hosts = re.findall(
            rf"\((198[\d.]+)\): ready, \d+ processors\n(?:    .*\n)*?    smdebug-{job}-\w+-(algo-\d)", text
        )
        assert len({address for address, _ in hosts}) == 2, text
        assert {host for _, host in hosts} == {"algo-1", "algo-2"}, text


def check_console(emulator: RunningEmulator, nodes: SwarmNodes, job: str, folder: Path) -> None:
    """The console shows what runs where, in a browser."""
    build_console()
    with opened_chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(60_000)
        visit(page, f"{emulator.endpoint_url}/console")
        for node in nodes.nodes:
            row = page.locator(f"[data-node='{node.address}']")
            expect(row).to_contain_text(re.compile(rf"ready.*\d+ processors.*smdebug-{job}-\w+-algo-\d"))
        page.screenshot(path=folder / "nodes.png", full_page=True)


def test_an_engine_that_commands_no_swarm_is_refused(
    swarm_nodes: SwarmNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{swarm_nodes.nodes[1].socket}")
    with pytest.raises(EngineUnavailableError, match=r"is a worker.*DOCKER_HOST.*docker swarm init"):
        SwarmEngine("refused", tmp_path)
    monkeypatch.delenv("DOCKER_HOST")
    with pytest.raises(EngineUnavailableError, match=r"is in no Swarm"):
        SwarmEngine("refused", tmp_path)
    elsewhere = RuntimeOptions(tmp_path.parent / "state", shared_folder=tmp_path)
    with pytest.raises(ContainerRuntimeError, match=r"--shared-folder.* no --shared-folder"):
        load_back_end("swarm").open(elsewhere)
