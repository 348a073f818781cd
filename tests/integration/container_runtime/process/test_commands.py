"""Programs of an image that are modules of ours, in place of those that pip made."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.spec import ContainerSpec

OURS = "import sys; print('ours', __name__, sys.argv[1:], '' in sys.path); sys.exit(3)"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "toolkit"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\nprint('pip\\'s')\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[LocalProcesses]:
    for name, commands in (("with-it", ""), ("without-it", '[commands]\ntoolkit = "our_toolkit"\n')):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "images" / name / "image.toml").write_text(f'name = "{name}"\n{commands}')
    made = LocalProcesses(tmp_path / "processes", ImageCatalogue(tmp_path / "images"))
    yield made
    for container in made.find({}):
        made.remove(container.id)


def run(runtime: LocalProcesses, program: Path, image: str) -> tuple[list[str], int]:
    (program.parent / "our_toolkit.py").write_text(OURS)
    environment = {"PATH": str(program.parent), "PYTHONPATH": str(program.parent)}
    spec = ContainerSpec(name="tiny", image=image, command=("toolkit", "a", "b"), environment=environment)
    container = runtime.start(spec)
    lines = [line.text for line in runtime.logs(container)]
    ended = runtime.wait(container)
    assert ended is not None
    return lines, ended.code


@pytest.mark.parametrize(
    ("image", "ended"),
    [("with-it", (["pip's"], 0)), ("without-it", (["ours __main__ ['a', 'b'] False"], 3))],
)
def test_a_command_is_the_module_that_its_image_names(
    runtime: LocalProcesses, program: Path, image: str, ended: tuple[list[str], int]
) -> None:
    assert run(runtime, program, image) == ended


def test_a_command_of_another_interpreter_is_run_as_it_is(runtime: LocalProcesses, program: Path) -> None:
    program.write_text("#!/bin/sh\necho $0 $1\n")
    assert run(runtime, program, "without-it") == ([f"{program} a"], 0)
