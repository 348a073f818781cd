"""Modules that an image does not have, in an interpreter that has them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.spec import ContainerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What it prints: whether it finds the module, what its child finds, and what it knows of itself.
TOOLKIT = """
import subprocess, sys
try:
    from wave import Error
    print("found")
except ModuleNotFoundError:
    print("absent")
sys.stdout.flush()
subprocess.run([sys.executable, "-c", "import wave; print('the child has', wave.__name__)"], check=True)
print(__name__, sys.argv, sys.path[0])
sys.exit(3)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "toolkit"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\n{TOOLKIT}")
    path.chmod(0o755)
    return path


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[LocalProcesses]:
    for name, absent in (("with-it", "[]"), ("without-it", '["wave"]')):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "images" / name / "image.toml").write_text(f'name = "{name}"\nabsent = {absent}\n')
    made = LocalProcesses(tmp_path / "processes", ImageCatalogue(tmp_path / "images"))
    yield made
    for container in made.find({}):
        made.remove(container.id)


@pytest.mark.parametrize(("image", "said"), [("with-it", "found"), ("without-it", "absent")])
def test_a_command_does_not_find_what_its_image_does_not_have(
    runtime: LocalProcesses, program: Path, image: str, said: str
) -> None:
    spec = ContainerSpec(
        name="tiny", image=image, command=("toolkit", "a", "b"), environment={"PATH": str(program.parent)}
    )
    container = runtime.start(spec)
    assert [line.text for line in runtime.logs(container)] == [
        said,
        "the child has wave",
        f"__main__ {[str(program), 'a', 'b']} {program.parent}",
    ]
    ended = runtime.wait(container)
    assert ended is not None
    assert ended.code == 3


def test_a_command_of_another_interpreter_is_run_as_it_is(runtime: LocalProcesses, program: Path) -> None:
    program.write_text("#!/bin/sh\necho $0 $1\n")
    spec = ContainerSpec(
        name="tiny", image="without-it", command=("toolkit", "a"), environment={"PATH": str(program.parent)}
    )
    assert [line.text for line in runtime.logs(runtime.start(spec))] == [f"{program} a"]
