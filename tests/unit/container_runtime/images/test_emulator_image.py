"""Tests of the definition of the emulator's own image."""

from __future__ import annotations

import tomllib

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.installation import ROOT, collect_emulator
from container_runtime.images.lock_files import is_locked, read_requirements
from container_runtime.images.wheelhouse import IMAGE_PYTHON

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_it_requires_what_the_extra_requires_and_is_locked() -> None:
    definition = next(each for each in ImageCatalogue() if each.with_emulator)

    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["emulator"]]
    assert sorted(definition.requirements) == sorted(wanted)
    assert is_locked(read_requirements(definition, IMAGE_PYTHON))


def test_it_has_the_packages_of_the_wheel() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]

    found = collect_emulator()

    assert found.keys() == {*wheel["packages"], *wheel["force-include"].values()}
    assert all(not isinstance(path, bytes) and path.exists() for path in found.values())
