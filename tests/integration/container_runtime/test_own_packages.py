"""Tests of a container's own pip packages over a shared environment."""

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.spec import ContainerSpec, Mount
from tests.small_wheel import write_wheel

# Offline: xmltodict is there and stays, another click takes the place of the shared one, of_the_job_alone is new.
INSTALL = """
import subprocess, sys
done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "-r", "requirements.txt"],
                      cwd=sys.argv[1], capture_output=True, text=True)
print(done.stdout + done.stderr)
found = "import click, of_the_job_alone, theirs; print('FOUND', click.__version__, of_the_job_alone.LIMIT, theirs.NAME)"
sys.exit(subprocess.run([sys.executable, "-c", found]).returncode)
"""


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[LocalProcesses]:
    (tmp_path / "images" / "tiny").mkdir(parents=True)
    (tmp_path / "images" / "tiny" / "image.toml").write_text('name = "tiny"\n')
    made = LocalProcesses(tmp_path / "processes", ImageCatalogue(tmp_path / "images"))
    yield made
    for container in made.find({}):
        made.remove(container.id)


@pytest.mark.nightly  # by day, the contract has a container install packages of its own, too
def test_a_container_installs_for_itself_alone(runtime: LocalProcesses, tmp_path: Path) -> None:
    before = importlib.metadata.version("click")
    source = tmp_path / "source"
    source.mkdir()
    wheels = [
        write_wheel(source, "of_the_job_alone", "LIMIT = 1.5\n"),
        write_wheel(source, "click", "__version__ = 'mine'\n"),
    ]
    (source / "requirements.txt").write_text("\n".join(["xmltodict", *(f"./{wheel.name}" for wheel in wheels)]))
    (source / "theirs.py").write_text("NAME = 'theirs'\n")
    mount = Mount(source, "/opt/ml/code")
    inside = str(Path(runtime.path_in_container(mount, "theirs.py")).parent)
    command = ("python", "-c", INSTALL, inside)
    container = runtime.start(
        ContainerSpec(
            name="installs", image="tiny", command=command, environment={"PYTHONPATH": inside}, mounts=(mount,)
        )
    )
    ended = runtime.wait(container, 120)
    lines = [line.text for line in runtime.logs(container)]
    assert ended is not None
    assert ended.code == 0, lines
    assert "FOUND mine 1.5 theirs" in lines
    assert any(line.startswith("Requirement already satisfied: xmltodict") for line in lines)
    importlib.invalidate_caches()
    assert importlib.metadata.version("click") == before
    assert importlib.util.find_spec("of_the_job_alone") is None
    runtime.remove(container)
    assert not list(tmp_path.glob("processes/*"))
