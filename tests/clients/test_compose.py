"""Tests of the compose files in examples/.

The images of notebook server and TensorBoard come from a registry: here the emulator's own image is their Python.
"""

import json
import re
import subprocess
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_runtime.docker.images.image_build import build_images
from tests.waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = {"compose.yaml": "notebook", "devcontainer/.devcontainer/compose.yaml": "workspace"}
IMAGE = "smdebug-emulator/emulator"
_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def read_services(name: str) -> dict[str, Any]:
    text = _DEFAULT.sub(r"\1", (EXAMPLES / name).read_text(encoding="utf-8"))
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    return services


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def list_options(service: dict[str, Any]) -> list[str]:
    options = [f"--env={name}={value}" for name, value in service.get("environment", {}).items()]
    return [*options, *(f"--security-opt={each}" for each in service.get("security_opt", ()))]


@pytest.mark.parametrize("name", FILES)
def test_ports_are_published_on_the_loopback_interface_alone(name: str) -> None:
    published = [port for service in read_services(name).values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_dev_container_names_its_compose_file_and_services() -> None:
    folder = EXAMPLES / "devcontainer" / ".devcontainer"
    described = json.loads((folder / "devcontainer.json").read_text(encoding="utf-8"))
    services = read_services("devcontainer/.devcontainer/compose.yaml")
    assert (folder / described["dockerComposeFile"]).is_file()
    assert described["service"] in services
    assert {each.partition(":")[0] for each in described["forwardPorts"]} <= services.keys()


@pytest.mark.docker
@pytest.mark.nightly
@pytest.mark.parametrize("name", FILES)
def test_a_client_beside_the_emulator_needs_its_environment_alone(name: str) -> None:
    build_images(["emulator"])
    services, project = read_services(name), f"compose-{uuid.uuid4().hex[:8]}"
    emulator, client = services["sagemaker"], services[FILES[name]]
    assert emulator["image"] == IMAGE
    script = "import boto3; s3 = boto3.client('s3'); s3.create_bucket(Bucket='from-beside'); print(s3.list_buckets())"
    with ExitStack() as stack:
        run("docker", "network", "create", project)
        stack.callback(run, "docker", "network", "rm", project)
        where = ["--network", project]
        run(
            "docker",
            "run",
            "--detach",
            "--name",
            project,
            *where,
            "--network-alias=sagemaker",
            *list_options(emulator),
            IMAGE,
        )
        stack.callback(run, "docker", "rm", "--force", "--volumes", project)
        health = ("docker", "inspect", "--format", "{{.State.Health.Status}}", project)
        wait_until(lambda: run(*health) == "healthy", project)
        said = run("docker", "run", "--rm", *where, *list_options(client), "--entrypoint=python3", IMAGE, "-c", script)
        assert "'Name': 'from-beside'" in said
        if "SMDEBUG_EMULATOR_REMOTE" in client["environment"]:
            assert "No training jobs yet." in run("docker", "run", "--rm", *where, *list_options(client), IMAGE, "jobs")
