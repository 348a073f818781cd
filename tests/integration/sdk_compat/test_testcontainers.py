"""Tests of the emulator in a container that tests start."""

import subprocess
import sys
from pathlib import Path

import pytest

from container_runtime.docker.images.image_build import build_images

pytestmark = [pytest.mark.docker, pytest.mark.nightly]

TEST = """
def test_in_a_container(sagemaker_emulator, s3_bucket):
    assert sagemaker_emulator.client("s3").list_buckets()["Buckets"]
    assert "answers" in sagemaker_emulator.log_text()
"""


@pytest.fixture(scope="module", autouse=True)
def image() -> None:
    build_images(["emulator"])


@pytest.fixture(autouse=True)
def _no_other_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own container, which removes others when the tests are killed, comes from a registry."""
    monkeypatch.setattr("testcontainers.core.config.testcontainers_config.ryuk_disabled", True)
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")


def list_containers() -> set[str]:
    """List the containers of the library: other tests start the same image without it."""
    command = ["docker", "ps", "--all", "--quiet", "--filter", "ancestor=smdebug-emulator/emulator"]
    command += ["--filter", "label=org.testcontainers"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_it_answers_on_this_machine_alone_and_leaves_nothing() -> None:
    from sdk_compat.testcontainers import SageMakerContainer

    before = list_containers()
    with SageMakerContainer() as sagemaker:
        assert sagemaker.get_url().startswith("http://127.0.0.1:")
        assert sagemaker.get_client("sagemaker").list_training_jobs()["TrainingJobSummaries"] == []
        (binding,) = sagemaker.get_wrapped_container().attrs["NetworkSettings"]["Ports"]["4580/tcp"]
        assert binding["HostIp"] == "127.0.0.1"
        assert len(list_containers() - before) == 1
    assert list_containers() == before


def test_what_the_emulator_refuses_is_the_error() -> None:
    from sdk_compat.testcontainers import ContainerStartError, SageMakerContainer

    before = list_containers()
    container = SageMakerContainer().with_env("SMDEBUG_EMULATOR_ADVERTISE", "lab")
    with pytest.raises(ContainerStartError, match="serves only the machine that publishes the port"):
        container.start()
    assert list_containers() == before


def test_the_plugin_starts_one(tmp_path: Path) -> None:
    before = list_containers()
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--sagemaker-runtime", "container"]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert list_containers() == before
