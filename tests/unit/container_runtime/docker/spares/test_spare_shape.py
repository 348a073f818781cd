"""Tests of what a spare container can become."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_runtime.docker.images.local_images import LocalImage
from container_runtime.docker.spares.spare import replace_folder
from container_runtime.docker.spares.spare_shape import PYTHON, find_obstacle, find_program, find_shape, has_spares
from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition, local_name
from container_runtime.runtime import ResolvedImage
from container_runtime.spec import ContainerSpec, Mount


@pytest.fixture(scope="module")
def definition() -> ImageDefinition:
    return next(each for each in ImageCatalogue() if each.name == "pytorch-training")


@pytest.fixture(scope="module")
def image(definition: ImageDefinition) -> LocalImage:
    config = {"Env": ["PATH=/opt/venv/bin:/usr/bin", "LANG=C.UTF-8"], "Labels": {}}
    return LocalImage(ResolvedImage("asked", local_name(definition)), {"Id": "sha256:1", "Config": config})


def build_spec(**changes: Any) -> ContainerSpec:
    return ContainerSpec(**{"name": "job", "image": "asked", "command": ("train",), "hostname": "algo-1", **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"environment": {"SM_HPS": "{}", "LANG": "C.UTF-8"}},
        {"mounts": (Mount(Path("/jobs/one"), "/opt/ml"),), "scratch": Path("/jobs/scratch")},
        {"entrypoint": ("python", "-m", "module"), "command": ()},
        {"servers": {1: print}},
        {"mounts": (Mount(Path("/functions/one"), "/var/task", read_only=True, exclusive=True),)},
        {"environment": {"PYTHONPATH": "/lib:/opt/ml/code"}, "mounts": (Mount(Path("/jobs/one"), "/opt/ml"),)},
        {"memory_bytes": 1, "cpus": 1, "max_processes": 9, "labels": {"job": "one"}},
    ],
)
def test_what_a_spare_container_can_become(
    image: LocalImage, definition: ImageDefinition, changes: dict[str, Any]
) -> None:
    assert find_obstacle(build_spec(**changes), image, definition) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"network": "hosts"}, "several hosts"),
        ({"isolated": True}, "no network"),
        ({"mounts": (Mount(Path("/channel"), "/opt/ml/input/data/train", read_only=True),)}, "read-only"),
        ({"command": ("serve",)}, "its program"),
        ({"entrypoint": ("bash", "-c"), "command": ("train",)}, "its program"),
        ({"entrypoint": ("python", "script.py"), "command": ()}, "its program"),
        ({"environment": {"OMP_NUM_THREADS": "2"}}, "OMP_NUM_THREADS"),
        ({"environment": {"LANG": "de_DE.UTF-8"}}, "LANG"),
        ({"environment": {"PYTHONHASHSEED": "0"}}, "PYTHONHASHSEED"),
        ({"environment": {"HOME": "/elsewhere"}}, "HOME"),
        ({"mounts": (Mount(Path("/layers"), "/opt", read_only=True, exclusive=True),)}, "hides the image's"),
    ],
)
def test_what_no_spare_container_can_become(
    image: LocalImage, definition: ImageDefinition, changes: dict[str, Any], why: str
) -> None:
    assert why in (find_obstacle(build_spec(**changes), image, definition) or "")


def test_a_spare_container_gets_no_gpus(image: LocalImage, definition: ImageDefinition) -> None:
    spec = build_spec(gpus=1)
    assert find_obstacle(spec, image, definition, hands_gpus=True) == "it has GPUs"
    assert find_obstacle(spec, image, definition) is None, "the engine has none for it"


def test_a_program_that_pip_installed_is_run_by_its_path(definition: ImageDefinition) -> None:
    assert find_program(("train", "--more"), definition) == [PYTHON, "/opt/venv/bin/train", "--more"]
    assert find_program(("python", "-P", "-m", "module"), definition) == [PYTHON, "-P", "-m", "module"]
    assert find_program((), definition) is None


def test_shapes_differ_by_what_the_engine_cannot_change(image: LocalImage) -> None:
    shape = find_shape(build_spec(), image, "sha256:1")
    assert find_shape(build_spec(memory_bytes=9, cpus=1, labels={"a": "b"}), image, "sha256:1") == shape
    assert find_shape(build_spec(shm_bytes=9), image, "sha256:1") != shape
    assert find_shape(build_spec(read_only_root=True), image, "sha256:1") != shape
    folder = Mount(Path("/jobs/one"), "/opt/ml")
    mounted = find_shape(build_spec(mounts=(folder,)), image, "sha256:1")
    assert find_shape(build_spec(mounts=(replace(folder, source=Path("/two")),)), image, "sha256:1") == mounted
    assert find_shape(build_spec(mounts=(replace(folder, read_only=True),)), image, "sha256:1") != mounted
    assert find_shape(build_spec(), image, "sha256:2") != shape


def test_images_of_users_have_no_spare_containers(image: LocalImage, definition: ImageDefinition) -> None:
    assert has_spares(image, definition)
    config = {"Labels": {"smdebug-emulator.image": definition.name}}
    derived = LocalImage(ResolvedImage("asked", "mine:latest"), {"Id": "sha256:3", "Config": config})
    assert not has_spares(derived, definition)
    assert not has_spares(image, None)


def test_a_folder_takes_the_place_of_another_with_its_content(tmp_path: Path) -> None:
    folder, staged = tmp_path / "folder", tmp_path / "staged"
    (folder / "input").mkdir(parents=True)
    (folder / "input" / "file").write_text("text")
    folder.chmod(0o751)
    staged.mkdir()
    identity = staged.stat().st_ino
    replace_folder(folder, staged)
    assert (folder.stat().st_ino, folder.stat().st_mode & 0o777) == (identity, 0o751)
    assert (folder / "input" / "file").read_text() == "text"
    assert not staged.exists()
    another = tmp_path / "another"
    another.mkdir()
    replace_folder(tmp_path / "missing", another)
    assert (tmp_path / "missing").is_dir()
