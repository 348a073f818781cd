"""Tests of image names resolved to the engine's images."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from container_runtime.docker.border import connect
from container_runtime.docker.images.local_images import LocalImages
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.runtime import VersionRefusedError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.docker
def test_strict_versions_take_an_image_that_was_loaded_under_the_requested_name(tmp_path: Path) -> None:
    name = f"framework-{uuid.uuid4().hex[:12]}"
    (tmp_path / "image.toml").write_text(f'name = "{name}"\nversion = "2.13.0"\n')
    api = connect()
    try:
        images = LocalImages(api, ImageCatalogue(tmp_path, strict=True))
        with pytest.raises(VersionRefusedError):
            images.describe_substitution(f"{name}:2.3.0")
        with pytest.raises(VersionRefusedError):
            images.resolve(f"{name}:2.3.0")
        api.tag("smdebug-emulator/lambda:latest", name, "2.3.0")
        try:
            assert images.has(f"{name}:2.3.0")
            assert not images.has(f"{name}:2.4.0")
            assert not images.has("no name")
            assert images.describe_substitution(f"{name}:2.3.0") is None
            assert images.resolve(f"{name}:2.3.0").resolved.local == f"{name}:2.3.0"
        finally:
            api.remove_image(f"{name}:2.3.0")
    finally:
        api.close()
