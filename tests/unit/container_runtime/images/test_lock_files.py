"""Tests of lock files: each image has them, complete and without extras."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.images.lock_files import (
    CPU_ONLY_MARK,
    PLACEHOLDER_MARK,
    locate_lock,
    read_requirements,
    read_size,
)
from container_runtime.images.lock_making import PYTHONS
from container_runtime.images.wheelhouse import IMAGE_PYTHON, fetch_wheels
from container_runtime.runtime import WheelhouseError
from tests.small_wheel import write_wheel

DEFINITIONS = [definition for definition in ImageCatalogue() if definition.requirements]


@pytest.fixture(autouse=True)
def _processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_what_an_image_requires_is_locked_with_hashes(definition: ImageDefinition) -> None:
    for python in (definition.python,) if definition.python else PYTHONS:
        assert locate_lock(definition, python).is_file(), "run `make lock`"
        marks = (CPU_ONLY_MARK, PLACEHOLDER_MARK)
        lines = [line for line in read_requirements(definition, python) if not line.endswith(marks)]
        assert all("--hash=sha256:" in line for line in lines)
        locked = dict(line.split()[0].split("==") for line in lines)
        for required in map(Requirement, definition.requirements):
            assert required.specifier.contains(locked[canonicalize_name(required.name)]), required
        assert {"pip", "uv"} <= locked.keys()


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_an_engine_of_arm_gets_the_same_packages_by_hash(
    definition: ImageDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow for the processor alone is published for x86_64 only."""
    python = definition.python or IMAGE_PYTHON
    here = read_requirements(definition, python)
    monkeypatch.setattr("platform.machine", lambda: "arm64")  # as macOS calls it
    if definition.name.startswith("tensorflow"):
        assert not locate_lock(definition, python).is_file()
        return
    assert locate_lock(definition, python).name.endswith("aarch64.lock")
    there = read_requirements(definition, python)
    assert all("--hash=sha256:" in line for line in there)
    wanted = {canonicalize_name(Requirement(each).name) for each in definition.requirements}
    assert wanted <= {line.partition("==")[0] for line in there} & {line.partition("==")[0] for line in here}


def test_the_size_of_what_is_fetched_is_known_for_older_versions() -> None:
    sizes = {found.name: read_size(found, "3.11") for found in DEFINITIONS if found.below}
    assert 5e8 < (sizes["pytorch-training-2.3"] or 0) < 2e9
    assert read_size(DEFINITIONS[0], "3.99") is None


def test_nothing_of_a_gpu_is_fetched_for_older_pytorch() -> None:
    (definition,) = (found for found in DEFINITIONS if found.name == "pytorch-training-2.3")
    of_gpus = [line for line in read_requirements(definition, "3.11") if line.startswith(("nvidia-", "triton"))]
    assert of_gpus
    assert all(line.endswith(PLACEHOLDER_MARK) for line in of_gpus)


def test_a_lock_file_of_other_requirements_is_refused() -> None:
    changed = replace(DEFINITIONS[0], requirements=("numpy>=99",))
    with pytest.raises(WheelhouseError, match="run `make lock`"):
        read_requirements(changed, IMAGE_PYTHON)


def test_where_there_is_none_pip_chooses() -> None:
    assert read_requirements(DEFINITIONS[0], "3.99") == DEFINITIONS[0].requirements


# By day test_cpu_wheels.py fetches right wheels.
@pytest.mark.slow
@pytest.mark.parametrize("right", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_a_wheel_of_other_bytes_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, right: bool) -> None:
    wheel = write_wheel(tmp_path, "one_of_a_kind", "LIMIT = 1\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest() if right else "0" * 64
    lines = [f"one-of-a-kind==1.0 --hash=sha256:{digest}"]
    if right:
        fetched = fetch_wheels(lines, tmp_path / "cache")
        assert (fetched / "requirements.txt").read_text() == f"{lines[0]}\n"
        assert (fetched / wheel.name).read_bytes() == wheel.read_bytes()
        return
    with pytest.raises(WheelhouseError, match="DO NOT MATCH THE HASHES"):
        fetch_wheels(lines, tmp_path / "cache")
    assert list((tmp_path / "cache" / "wheels").iterdir()) == []
