"""Tests of invalid container specifications, refused at creation."""

from pathlib import Path
from typing import Any

import pytest

from container_runtime.spec import ContainerSpec, Mount


@pytest.mark.parametrize("name", ["", "a", ".hidden", "a/b", "../x", "a b", "é" * 3, "x" * 129])
def test_name_that_is_not_a_safe_path_component(name: str) -> None:
    with pytest.raises(ValueError, match="Container name"):
        ContainerSpec(name=name, image="i")


@pytest.mark.parametrize("limit", ["memory_bytes", "shm_bytes", "max_processes"])
def test_limit_that_is_not_positive(limit: str) -> None:
    limits: dict[str, Any] = {limit: 0}
    with pytest.raises(ValueError, match=f"{limit} is 0"):
        ContainerSpec(name="name", image="i", **limits)


@pytest.mark.parametrize(("source", "target"), [("relative", "/opt/ml"), ("/folder", "opt/ml")])
def test_mount_of_a_relative_path(source: str, target: str) -> None:
    with pytest.raises(ValueError, match="two absolute paths"):
        Mount(Path(source), target)
