"""Tests of the spec of a typical container, of which spare ones are made."""

from pathlib import Path

import pytest

from container_runtime.docker.images.local_images import LocalImage
from container_runtime.docker.spares.spare_shape import find_obstacle
from container_runtime.images.catalogue import ImageCatalogue, local_name
from container_runtime.runtime import ResolvedImage
from emulator.jobs.runs.attempt import build_typical_spec
from emulator.settings import Settings


@pytest.mark.parametrize(
    "name", ["pytorch-training", "sagemaker-debugger-rules", "lambda", "registry.example:5000/lambda:latest"]
)
def test_a_spare_container_can_become_a_typical_one(name: str, tmp_path: Path) -> None:
    found = ImageCatalogue().find(name)
    assert found is not None
    definition = found[0]
    config = {"Env": ["PATH=/opt/venv/bin:/usr/bin"], "Labels": {}, "Entrypoint": list(definition.entrypoint)}
    image = LocalImage(ResolvedImage(name, local_name(definition)), {"Id": "sha256:1", "Config": config})
    spec = build_typical_spec(name, Settings(state_dir=tmp_path))
    assert find_obstacle(spec, image, definition) is None
