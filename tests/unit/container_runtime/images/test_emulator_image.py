"""Tests of the definition of the emulator's own image."""

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

    packages = {name: path for name, path in found.items() if not isinstance(path, bytes)}
    assert packages.keys() == {*wheel["packages"], *wheel["force-include"].values()}
    assert all(path.exists() for path in packages.values())


def test_it_has_the_entry_points_of_the_container_back_ends() -> None:
    (text,) = [
        content.decode()
        for name, content in collect_emulator().items()
        if isinstance(content, bytes) and name.endswith(".dist-info/entry_points.txt")
    ]
    back_ends = PROJECT["project"]["entry-points"]["smdebug_emulator.runtimes"]
    assert all(f"{name} = {value}" in text for name, value in back_ends.items())
