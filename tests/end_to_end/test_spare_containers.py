"""Tests of spare Docker containers: their imports, and a whole job in them."""

import subprocess
import time
from contextlib import closing
from pathlib import Path

import docker
import pytest

from container_runtime.docker.spares.spare_shape import PYTHON
from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition, local_name
from sdk_compat.demo.training_job import HEALTHY, build_request, build_rule, stage_inputs
from tests.end_to_end.finished_jobs import read_log, wait_until_ended
from tests.end_to_end.swarm_jobs import create_job
from tests.end_to_end.test_rules import TRAINING as SAVES_NUMBERS
from tests.running_emulator import RunningEmulator

pytestmark = pytest.mark.docker
TRAINING, RULE = "smdebug-emulator/pytorch-training", "smdebug-emulator/sagemaker-debugger-rules"


def list_given(engine: docker.DockerClient, since: int, job: str) -> set[str]:
    """The images of the spare containers that became containers of a job, by the events of the engine."""
    events = engine.events(since=since, until=int(time.time()) + 1, filters={"event": "rename"}, decode=True)
    given = [event["Actor"]["Attributes"] for event in events]
    return {
        each["image"].partition(":")[0]
        for each in given
        if each["oldName"].startswith("/smdebug-spare-") and job in each["name"]
    }


def create_judged_job(emulator: RunningEmulator, name: str, *, with_framework: bool) -> None:
    """Create a job that a rule finds nothing in; without a framework, it runs in the rules' image, too."""
    if with_framework:
        emulator.client("sagemaker").create_training_job(**build_request(name, {**HEALTHY, "steps": 1}))
        return
    create_job(
        emulator,
        name,
        SAVES_NUMBERS,
        Environment={"WAIT": "0"},
        DebugHookConfig={"S3OutputPath": f"s3://{name}/tensors"},
        DebugRuleConfigurations=[build_rule("VanishingGradient", threshold="1e-12")],
    )


# By day, integration/container_runtime/docker/spares/test_spares.py has spare containers of the rules' image.
@pytest.mark.nightly
@pytest.mark.parametrize("with_framework", [True, False])
def test_later_jobs_of_an_image_run_in_spare_containers(with_framework: bool, tmp_path: Path) -> None:
    wanted = {TRAINING, RULE} if with_framework else {RULE}
    with closing(docker.from_env()) as engine:
        emulator = RunningEmulator(tmp_path / "state", runtime="docker", spares=True)
        try:
            stage_inputs(emulator.client("s3"))
            # The first one starts cold, and so does one that comes before the imports for it have begun.
            for number in range(12):
                name, began = f"job-{number}", int(time.time())
                create_judged_job(emulator, name, with_framework=with_framework)
                job = wait_until_ended(emulator, name)
                assert job["TrainingJobStatus"] == "Completed", job
                verdicts = {each["RuleEvaluationStatus"] for each in job["DebugRuleEvaluationStatuses"]}
                assert verdicts == {"NoIssuesFound"}, job
                given = list_given(engine, began, name)
                if given >= wanted:
                    break
            else:
                pytest.fail(f"of the last job, spare containers became {given}:\n{read_log(emulator, name)}")
        finally:
            assert emulator.stop() == 0
        # Other emulators may have some at the same engine.
        left = engine.api.containers(all=True, filters={"name": "smdebug-spare-"})
        sources = [mount["Source"] for each in left for mount in each["Mounts"]]
        assert [each for each in sources if each.startswith(str(tmp_path))] == []


WARM = [each for each in ImageCatalogue() if each.warm_modules and not each.on_demand]


@pytest.mark.nightly
@pytest.mark.parametrize("definition", [pytest.param(each, id=each.name) for each in WARM])
def test_what_spare_containers_import_is_in_their_image(definition: ImageDefinition) -> None:
    """An image without one of the modules has no spare containers, and its environment no warm interpreter."""
    source = f"import importlib\nfor name in {definition.warm_modules!r}: importlib.import_module(name)"
    command = ["docker", "run", "--rm", "--entrypoint", PYTHON, f"{local_name(definition)}", "-c", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
