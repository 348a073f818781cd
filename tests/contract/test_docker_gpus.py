"""Tests of Docker containers that hold a real GPU."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_runtime.contract.programs import python, run
from container_runtime.docker.engine import DockerEngine
from container_runtime.gpus import list_gpus
from container_runtime.runtime import Exit

pytestmark = [pytest.mark.docker, pytest.mark.gpu]
SEEN = "import glob; print(bool(glob.glob('/dev/nvidia[0-9]*')))"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DockerEngine]:
    engine = DockerEngine(f"test-{uuid.uuid4().hex[:12]}", sidecars=tmp_path / "sidecars")
    yield engine
    for container in engine.find({}):
        engine.remove(container.id)
    engine.close()


def test_a_container_holds_the_gpus_that_it_asks_for_and_no_other(engine: DockerEngine) -> None:
    assert engine.hands_gpus, "the engine has no NVIDIA runtime"
    assert run(engine, python(SEEN)) == (Exit(0), ["False"])
    container = engine.start(python(f"{SEEN}; import time; time.sleep(600)", gpus=1))
    assert next(engine.logs(container)).text == "True"
    meter = engine.open_meter(container)
    assert meter is not None
    assert meter.gpus == tuple(list_gpus()[:1])
