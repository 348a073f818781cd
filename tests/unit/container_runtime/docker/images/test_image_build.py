"""Tests of the removal of images of earlier builds."""

import time
from typing import Any
from unittest.mock import Mock

import pytest
import requests.exceptions

from container_runtime.docker.images.image_build import _remove_old

OLD = "smdebug-emulator/training:old"


def list_images(filters: dict[str, Any]) -> list[dict[str, Any]]:
    unnamed = {"RepoTags": ["<none>:<none>"], "Id": "sha256:1", "Created": time.time() - 7200}
    return [unnamed] if "dangling" in filters else [unnamed, {"RepoTags": [OLD], "Id": "sha256:2"}]


@pytest.mark.parametrize("error", [None, requests.exceptions.ReadTimeout("timed out")])
def test_an_engine_that_takes_minutes_to_remove_layers_does_not_fail_the_build(error: Exception | None) -> None:
    removed: list[str] = []

    def remove(name: str) -> None:
        removed.append(name)
        if error is not None:
            raise error

    _remove_old(Mock(images=list_images, remove_image=remove), [])

    assert removed == [OLD, "sha256:1"]


def test_an_image_that_somebody_built_from_ours_stays() -> None:
    """It has the label of what it was built from."""
    remove = Mock()
    images = [{"RepoTags": ["my/training:2.3"], "Id": "sha256:1"}, {"RepoTags": ["mine:1", OLD], "Id": "sha256:2"}]
    _remove_old(Mock(images=lambda filters: [] if "dangling" in filters else images, remove_image=remove), [])
    remove.assert_called_once_with(OLD)


def test_a_step_of_a_build_that_may_still_run_stays() -> None:
    remove = Mock()
    young = {"RepoTags": ["<none>:<none>"], "Id": "sha256:1", "Created": time.time() - 60}
    _remove_old(Mock(images=lambda filters: [young] if "dangling" in filters else [], remove_image=remove), [])
    remove.assert_not_called()
