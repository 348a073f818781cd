"""Tests of the name of the container that base images are built in."""

from pathlib import Path

from container_runtime.docker.images.base_image import name_container


def test_two_installations_with_equal_paths_build_in_containers_of_their_own(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = name_container(cache)
    assert name_container(cache) == first, "the next build removes what a killed one left"
    cache.rename(tmp_path / "on another machine")
    assert name_container(cache) != first


def test_a_build_that_was_killed_before_it_had_an_id_gets_one(tmp_path: Path) -> None:
    (tmp_path / "build-id").touch()
    assert name_container(tmp_path) == name_container(tmp_path)
    assert (tmp_path / "build-id").read_text()
