"""Tests of the selection of the back end, and of its messages."""

from pathlib import Path

import docker
import pytest

from container_runtime.back_ends import RuntimeOptions
from container_runtime.docker import back_end
from container_runtime.docker.daemon import start_engine
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError, ImageNotFoundError
from container_runtime.selection import select_runtime


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")


@pytest.fixture
def no_images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A client that is given the version asks the engine nothing.
    api = docker.APIClient(f"unix://{tmp_path}/no-engine.sock", version="1.44")
    monkeypatch.setattr(back_end, "connect", lambda: api)
    monkeypatch.setattr(back_end, "missing_images", lambda _api, _catalogue: ["lambda"])


def test_process_is_chosen_when_asked_for(tmp_path: Path) -> None:
    selection = select_runtime("process", RuntimeOptions(tmp_path))
    assert selection.runtime.name == "process"
    assert "as requested" in selection.reason


@pytest.mark.usefixtures("no_engine")
def test_auto_without_an_engine(tmp_path: Path) -> None:
    selection = select_runtime("auto", RuntimeOptions(tmp_path))
    assert (selection.runtime.name, selection.runtime.host_address) == ("process", "127.0.0.1")
    assert "No Docker engine answers" in selection.reason


@pytest.mark.usefixtures("no_engine")
def test_docker_without_an_engine_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError, match="smdebug-emulator engine start"):
        select_runtime("docker", RuntimeOptions(tmp_path))


@pytest.mark.usefixtures("no_images")
def test_auto_without_images(tmp_path: Path) -> None:
    selection = select_runtime("auto", RuntimeOptions(tmp_path))
    assert selection.runtime.name == "process"
    assert "smdebug-emulator images build" in selection.reason


@pytest.mark.usefixtures("no_images")
def test_docker_without_images_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ImageNotFoundError, match=r"lambda.*smdebug-emulator images build"):
        select_runtime("docker", RuntimeOptions(tmp_path))


@pytest.mark.docker
@pytest.mark.parametrize("choice", ["auto", "docker"])
def test_docker_is_chosen_where_it_can_be(tmp_path: Path, choice: str) -> None:
    selection = select_runtime(choice, RuntimeOptions(tmp_path))
    selection.runtime.close()
    assert selection.runtime.name == "docker"


def test_state_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ContainerRuntimeError, match="file/containers cannot be used"):
        select_runtime("process", RuntimeOptions(tmp_path / "file"))


def test_instance_is_the_same_for_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert RuntimeOptions(Path("state")).instance_id == RuntimeOptions(tmp_path / "state").instance_id
    assert RuntimeOptions(tmp_path / "other").instance_id != RuntimeOptions(tmp_path / "state").instance_id


@pytest.mark.usefixtures("no_engine")
def test_engine_of_somebody_else_is_not_started() -> None:
    said: list[str] = []
    with pytest.raises(EngineUnavailableError, match=r"DOCKER_HOST=.*no-engine"):
        start_engine(said.append)
    assert said == []
