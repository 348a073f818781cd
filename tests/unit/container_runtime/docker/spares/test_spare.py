"""Tests of one spare container, of which an engine tells what the test says."""

from pathlib import Path

import pytest

from container_runtime.docker.spares.spare import Spare, SpareLostError
from container_runtime.docker.spares.spare_shape import Shape
from container_runtime.images.catalogue import ImageCatalogue


def test_a_container_that_ends_before_its_program_is_not_waited_for(tmp_path: Path) -> None:
    definition = next(each for each in ImageCatalogue() if each.warm_modules)
    shape = Shape(
        image=definition.name,
        identity="sha256:1",
        targets=(),
        read_only=(),
        has_scratch=False,
        hostname=None,
        read_only_root=False,
        shm_bytes=None,
    )
    spare = Spare(tmp_path, shape, definition)
    with pytest.raises(SpareLostError, match="ended before its program began"):
        spare.start(lambda _spec: "its-id", lambda _container_id: None)
    assert spare.container_id == "its-id", "who made it removes its container"
