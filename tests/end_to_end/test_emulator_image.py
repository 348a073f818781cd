"""Tests of the emulator's own image: jobs inside its container and beside it.

The commands are those of ``docs/how_to/run_in_a_container.md``.
"""

import json
import os
import shlex
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest

from container_runtime.back_ends import RuntimeOptions
from container_runtime.docker.border import connect
from container_runtime.docker.engine import INSTANCE_LABEL
from container_runtime.docker.images.image_build import build_images, plan_builds
from container_runtime.docker.images.stored_images import list_images
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.installation import locate_cache
from container_runtime.images.lock_files import read_requirements
from container_runtime.images.wheelhouse import IMAGE_PYTHON, fetch_wheels
from container_runtime.process.loopback_network import draw_port
from emulator.console.build import build_console
from examples.frameworks.xgboost.algorithm import stage_cancer
from sdk_compat.demo.training_job import BUCKET, build_rule, build_training_job
from tests.registry import run_registry
from tests.unit.smdebug.runs import RunMaker
from tests.waiting import has_ended, wait_until

StartContainer = Callable[..., str]

# To build the image takes minutes. By day, other tests show its parts: the wheel, jobs in containers, and requests from
# other machines.
pytestmark = [pytest.mark.docker, pytest.mark.nightly]
CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "how_to" / "run_in_a_container.md"
README = CHECKOUT / "README.md"
IMAGE = "smdebug-emulator/emulator"
BROWSER = ("curl", "--silent", "--fail", "--header", "Accept: text/html")
BEHIND = ("--env", "SMDEBUG_EMULATOR_BEHIND=loopback")


@pytest.fixture(scope="module", autouse=True)
def image() -> None:
    build_console()
    build_images(["emulator"])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartContainer]:
    """Start the image with a command of the page, and more options; return the URL of its port."""
    names: list[str] = []

    def start_container(jobs: str, *options: str, name: str = "", image: str = IMAGE) -> str:
        name = name or draw_name()
        names.append(name)
        own = {"127.0.0.1:4580:": "127.0.0.1::", "sagemaker:/state": f"{name}:/state", "/srv/sagemaker": str(tmp_path)}
        command = read_commands()[jobs].replace("--name sagemaker", f"--name {name}").removesuffix(f" {IMAGE}")
        for documented, here in own.items():
            command = command.replace(documented, here)
        run(*shlex.split(command), *options, image)
        deadline = time.monotonic() + 120
        while run("docker", "inspect", "--format", "{{.State.Health.Status}}", name) != "healthy":
            assert time.monotonic() < deadline, run("docker", "logs", name)
            time.sleep(0.2)
        return f"http://{run('docker', 'port', name, '4580/tcp')}"

    yield start_container
    for name in names:
        run("docker", "stop", "--time", "60", name)  # nothing if a test has stopped it
        code = run("docker", "inspect", "--format", "{{.State.ExitCode}}", name)
        logs = run("docker", "logs", name)
        run("docker", "rm", "--volumes", name)
        subprocess.run(["docker", "volume", "rm", name], check=False, capture_output=True)
        assert code == "0", logs


def read_commands() -> dict[str, str]:
    """The page's `docker run` commands, by where jobs run."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    inside, beside = (" ".join(line.split()) for line in text.splitlines() if line.startswith("    docker run"))
    return {"inside": inside, "beside": beside}


def draw_name() -> str:
    return f"emulator-image-{uuid.uuid4().hex[:8]}"


def run(*command: str) -> str:
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


def client(service: Any, endpoint_url: str) -> Any:
    """A client as AWS's users have it: any credentials, and the endpoint."""
    keys: dict[str, Any] = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    return boto3.client(service, endpoint_url=endpoint_url, region_name="us-east-1", **keys)


ESTIMATOR = """
from sagemaker import image_uris
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule, rule_configs
from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput

bucket = "s3://frameworks-example"
estimator = Estimator(
    image_uri=image_uris.retrieve("xgboost", region="us-east-1", version="3.0-5"),
    role="arn:aws:iam::123456789012:role/Training",
    instance_count=1,
    instance_type="ml.m5.large",
    output_path=f"{bucket}/output",
    debugger_hook_config=DebuggerHookConfig(
        s3_output_path=f"{bucket}/tensors",
        collection_configs=[CollectionConfig("metrics", parameters={"save_interval": "1"})],
    ),
    rules=[Rule.sagemaker(rule_configs.loss_not_decreasing(), rule_parameters={"collection_names": "metrics"})],
)
estimator.set_hyperparameters(num_round=1_000_000, objective="binary:logistic", eval_metric="logloss", eta=0)
channels = {each: TrainingInput(f"{bucket}/data/{each}/", content_type="text/csv") for each in ("train", "validation")}
estimator.fit(channels, wait=False, job_name="learns-nothing")
"""

# What scripts import of PyTorch's environment; trimming may have taken out nothing that they need.
IMPORT_ALL = (
    "exec /opt/environments/smdebug-emulator/venvs/pytorch-training-*/bin/python -c "
    "'import boto3, matplotlib.pyplot, pandas, sagemaker_training, scipy.stats, sklearn.linear_model, torchvision'"
)
DEMO = """
import time
import boto3
from sdk_compat.demo.training_job import SICK, build_request, has_ended, stage_inputs

stage_inputs(boto3.client("s3"))
sagemaker = boto3.client("sagemaker")
sagemaker.create_training_job(**build_request("sick", SICK))
while not has_ended(found := sagemaker.describe_training_job(TrainingJobName="sick")):
    time.sleep(0.1)
print(found["TrainingJobStatus"], *(each["RuleEvaluationStatus"] for each in found["DebugRuleEvaluationStatuses"]))
"""


def run_client(endpoint_url: str, *command: str) -> None:
    """Run a client on the host, which knows the endpoint and nothing else."""
    keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SMDEBUG_"))}
    environment = {**kept, **keys, "AWS_ENDPOINT_URL": endpoint_url}
    done = subprocess.run(
        [sys.executable, *command], check=False, capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr


def deploy_stop_handler(endpoint_url: str) -> None:
    run_client(endpoint_url, "-m", "emulator", "stop-handler", "deploy", "--remote", endpoint_url)


def train(endpoint_url: str) -> None:
    """Train by the SDK what learns nothing, until a rule and the stop handler end it."""
    stage_cancer(client("s3", endpoint_url))
    deploy_stop_handler(endpoint_url)
    run_client(endpoint_url, "-c", ESTIMATOR)
    assert_stopped_by_its_rule(endpoint_url)


def assert_stopped_by_its_rule(endpoint_url: str) -> None:
    sagemaker = client("sagemaker", endpoint_url)

    def find_ended() -> dict[str, Any] | None:
        found: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName="learns-nothing")
        return found if has_ended(found) else None

    ended = wait_until(find_ended, "the end of the job and its rule", seconds=300)
    assert ended is not None
    assert ended["TrainingJobStatus"] == "Stopped", ended
    assert ended["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "IssuesFound", ended
    assert "<html" in run(*BROWSER, f"{endpoint_url}/console")


def count_left(state_dir: Path) -> int:
    """Containers and networks that the emulator of a state folder has on the engine."""
    filters = {"label": f"{INSTANCE_LABEL}={RuntimeOptions(state_dir).instance_id}"}
    api = connect()
    try:
        return len(api.containers(all=True, filters=filters)) + len(api.networks(filters=filters))
    finally:
        api.close()


def test_it_is_small() -> None:
    assert int(run("docker", "inspect", "--format", "{{.Size}}", IMAGE)) < 250_000_000


def test_what_was_trimmed_is_kept_for_the_next_build() -> None:
    (build,) = (each for each in plan_builds(ImageCatalogue()) if each.definition.name == "emulator")
    kept = {stored.reference for stored in list_images() if not stored.is_outdated}
    assert len(build.bases) == 2
    assert build.bases <= kept


def test_jobs_run_inside_the_container(start: StartContainer, tmp_path: Path) -> None:
    """A job whose image the emulator's own interpreter runs, and a rule that judges what was saved for it before."""
    saved = RunMaker(tmp_path / "run")
    saved.write_steps("loss", dict.fromkeys(range(50), np.float32(1)))
    url = start("inside")
    s3 = client("s3", url)
    s3.create_bucket(Bucket=BUCKET)
    for path in (tmp_path / "run").rglob("*.*"):
        name = path.relative_to(tmp_path / "run")
        s3.upload_file(str(path), BUCKET, f"tensors/learns-nothing/debug-output/{name}")
    deploy_stop_handler(url)
    request = build_training_job(
        "learns-nothing",
        image="sagemaker-debugger-rules:latest",
        hyperparameters={},
        channels=(),
        collections={},
        rules=[build_rule("LossNotDecreasing")],
    )
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["python", "-c", "import time; time.sleep(600)"]
    client("sagemaker", url).create_training_job(**request)

    assert_stopped_by_its_rule(url)


@pytest.mark.nightly
def test_an_environment_is_built_inside_the_container(start: StartContainer) -> None:
    xgboost = next(each for each in ImageCatalogue() if each.name == "sagemaker-xgboost")
    wheels = fetch_wheels(read_requirements(xgboost, IMAGE_PYTHON), locate_cache())
    mount = f"{wheels}:/state/cache/smdebug-emulator/wheels/{wheels.name}:ro"

    train(start("inside", "--volume", mount))


@pytest.mark.nightly
def test_jobs_run_beside_the_container(start: StartContainer, tmp_path: Path) -> None:
    name = draw_name()
    url = start("beside", name=name)

    train(url)

    assert count_left(tmp_path)  # its sidecars
    run("docker", "stop", "--time", "60", name)
    assert count_left(tmp_path) == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--network", "host", *BEHIND), "would open this emulator to the network"),
        (
            (*BEHIND, "--user", "0:0", "--volume", "/var/run/docker.sock:/var/run/docker.sock"),
            "-e SMDEBUG_EMULATOR_STATE_DIR=",
        ),
        ((*BEHIND, "--env", "SMDEBUG_EMULATOR_RUNTIME=docker"), "docker run -v /var/run/docker.sock:"),
        ((*BEHIND, "--env", "SMDEBUG_EMULATOR_ADVERTISE=lab"), "serves only the machine that publishes the port"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(options: tuple[str, ...], text: str) -> None:
    assert text in read_refusal(*options)


def read_refusal(*options: str) -> str:
    """The one line in which a container refuses to start."""
    done = subprocess.run(
        ["docker", "run", "--rm", *options, IMAGE], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stdout
    assert len(done.stderr.strip().splitlines()) == 1
    return done.stderr


def test_a_volume_of_another_user_or_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert "/state/emulator cannot be written (Permission denied" in read_refusal(*BEHIND, "-v", f"{tmp_path}:/state")
    state = tmp_path / "emulator"
    state.mkdir()
    with closing(sqlite3.connect(state / "jobs.sqlite")) as store:
        store.executescript("PRAGMA user_version = 99; CREATE TABLE jobs_of_that_version (name)")
    for path in (tmp_path, state, state / "jobs.sqlite"):
        path.chmod(0o777)
    assert "give an empty folder with --state-dir" in read_refusal(*BEHIND, "-v", f"{tmp_path}:/state")
    with closing(sqlite3.connect(state / "jobs.sqlite")) as store:
        assert store.execute("PRAGMA user_version").fetchall() == [(99,)]
        assert store.execute("SELECT name FROM sqlite_master").fetchall() == [("jobs_of_that_version",)]


def test_a_port_published_everywhere_asks_for_signatures() -> None:
    name = draw_name()
    run("docker", "run", "--detach", "--name", name, IMAGE)
    try:
        deadline = time.monotonic() + 120
        while "Signatures are required" not in (said := run("docker", "logs", name)):
            assert time.monotonic() < deadline, said
            time.sleep(0.2)
        assert "SMDEBUG_EMULATOR_BEHIND=loopback" in said
    finally:
        run("docker", "rm", "--force", "--volumes", name)


def test_names_of_others_are_refused(start: StartContainer) -> None:
    url = start("inside", "--env", "SMDEBUG_EMULATOR_ACCEPTED_HOSTS=sagemaker")
    port = url.rpartition(":")[2]
    codes = {
        host: run(
            "curl",
            "--silent",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            "--header",
            f"Host: {host}",
            f"{url}/_emulator/health",
        )
        for host in (f"localhost:{port}", "sagemaker:4580", "host.docker.internal", "evil.example")
    }
    assert codes == {
        f"localhost:{port}": "200",
        "sagemaker:4580": "200",
        "host.docker.internal": "200",
        "evil.example": "403",
    }
    assert json.loads(run("curl", "--silent", f"{url}/_emulator/health"))


def test_an_image_for_another_platform_is_refused_in_one_line() -> None:
    command = [sys.executable, "-m", "emulator", "images", "build", "emulator", "--runtime", "docker"]
    done = subprocess.run([*command, "--platform", "linux/s390x"], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Images for linux/s390x are built on an engine of that platform, and this one is linux/" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.nightly
def test_the_readmes_docker_run_takes_the_image_from_a_registry(tmp_path: Path) -> None:
    (line,) = (line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("docker run "))
    name = draw_name()
    with run_registry("127.0.0.1", draw_port(), tmp_path) as registry:
        pushed = f"{registry}/{IMAGE}"
        run("docker", "tag", IMAGE, pushed)
        run("docker", "push", "--quiet", pushed)
        run("docker", "rmi", pushed)
        command = line.replace(IMAGE, pushed).replace("127.0.0.1:4580:", "127.0.0.1::")
        try:
            run(*shlex.split(command.replace("docker run", f"docker run --detach --name {name}")))
            wait_until(lambda: run("docker", "inspect", "--format", "{{.State.Health.Status}}", name) == "healthy")
            url = f"http://{run('docker', 'port', name, '4580/tcp')}"
            assert client("sagemaker", url).list_training_jobs()["TrainingJobSummaries"] == []
        finally:
            run("docker", "rm", "--force", "--volumes", name)
            run("docker", "rmi", pushed)


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_with_pytorchs_environment_a_verdict_needs_no_package_index(start: StartContainer) -> None:
    """The first job of an empty machine with an engine; what pip would fetch is not to be had."""
    build_images(["emulator:pytorch"])
    assert int(run("docker", "inspect", "--format", "{{.Size}}", f"{IMAGE}:pytorch")) < 1_300_000_000
    run("docker", "run", "--rm", "--entrypoint", "sh", f"{IMAGE}:pytorch", "-c", IMPORT_ALL)
    url = start("inside", "--env", "PIP_NO_INDEX=1", image=f"{IMAGE}:pytorch")

    run(sys.executable, "-m", "emulator", "stop-handler", "deploy", "--remote", url)
    done = subprocess.run(
        [sys.executable, "-m", "emulator", "run", "--remote", url, "--", sys.executable, "-c", DEMO],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Stopped IssuesFound"), done.stdout
