"""Tests of base images: what they contain, and what a build leaves behind."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from container_runtime.docker.border import connect
from container_runtime.docker.images import base_image
from container_runtime.docker.images.base_image import PROGRAM, build_base_image, name_container
from container_runtime.docker.images.image_origin import ensure_origin
from container_runtime.runtime import ContainerRuntimeError

pytestmark = [pytest.mark.docker, pytest.mark.slow]

_LABELS = {"of-the-test": 'a "quoted" value'}


@pytest.fixture(scope="module")
def api() -> Iterator[docker.APIClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="module")
def origin(api: docker.APIClient) -> str:
    return ensure_origin(api, "smdebug-emulator/origin:bookworm", print)


class Base:
    """A base image of a test, and the folders that it is built from."""

    def __init__(self, api: docker.APIClient, origin: str, folder: Path) -> None:
        self.api = api
        self.origin = origin
        self.name = f"smdebug-emulator-test/base:{uuid.uuid4().hex[:8]}"
        self.cache = folder / "cache"
        self.wheels = folder / "wheels"
        self.program = folder / PROGRAM
        self.wheels.mkdir()
        (self.wheels / "requirements.txt").write_text("numpy\n")

    def build(self, program: str) -> None:
        self.program.write_text(program)
        build_base_image(self.api, self.name, _LABELS, self.origin, self.program, self.wheels, self.cache)

    def find_containers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api.containers(
            all=True, filters={"name": f"^/{name_container(self.cache)}$"}
        )
        return found

    def read(self, command: str) -> str:
        """Run a command in a container of the image, and return what it prints."""
        container = self.api.create_container(self.name, ["sh", "-c", command])["Id"]
        try:
            self.api.start(container)
            self.api.wait(container)
            return self.api.logs(container).decode()
        finally:
            self.api.remove_container(container, force=True)


@pytest.fixture
def base(api: docker.APIClient, origin: str, tmp_path: Path) -> Iterator[Base]:
    made = Base(api, origin, tmp_path)
    yield made
    if api.images(made.name):
        api.remove_image(made.name)
    assert made.find_containers() == []


def test_an_image_has_what_was_installed_and_no_wheels(base: Base) -> None:
    base.build("cp /mnt/wheels/requirements.txt /installed\n")
    assert base.read("cat /installed; ls -A /mnt; echo $PATH") == (
        "numpy\n/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
    )
    config = base.api.inspect_image(base.name)["Config"]
    assert (config["Cmd"], config.get("Entrypoint"), config["Labels"]) == (["python3"], None, _LABELS)


def test_an_installation_that_fails_is_shown_and_leaves_no_image(base: Base) -> None:
    with pytest.raises(ContainerRuntimeError, match=r"(?s)Building \S+ failed: install\.sh .*code 28\.\nno space left"):
        base.build("echo no space left >&2\nexit 28\n")
    assert base.api.images(base.name) == []


def test_an_installation_reaches_no_network(base: Base) -> None:
    base.build("ls /sys/class/net > /interfaces\n")
    assert base.read("cat /interfaces") == "lo\n"


def test_the_next_build_removes_what_a_killed_one_left(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(base_image, "_remove", lambda *_: None)
        with pytest.raises(ContainerRuntimeError):
            base.build("exit 1\n")
    (left,) = base.find_containers()
    (volume,) = left["Mounts"]
    base.build("true\n")
    assert base.api.images(base.name)
    with pytest.raises(docker.errors.NotFound):
        base.api.inspect_volume(volume["Name"])
