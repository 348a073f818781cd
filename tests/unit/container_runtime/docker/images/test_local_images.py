"""Tests of cached images whose names mean others later, with a played engine."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import docker.errors
import pytest
import requests.exceptions

from container_runtime.docker.images import local_images
from container_runtime.docker.images.local_images import LocalImages
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.runtime import ImageNotFoundError


class Engine:
    """The images of an engine by name, and what it was asked for."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.asked: list[str] = []
        self.away = False
        self.pulls: list[str] = []
        # An image that is pulled for as long as the test likes.
        self.slow_begun, self.slow_ends = threading.Event(), threading.Event()

    def pull(self, repository: str, tag: str, *, stream: bool = False, decode: bool = False) -> Any:
        self.pulls.append(repository)
        if repository == "slow":
            self.slow_begun.set()
            assert self.slow_ends.wait(60)
            self.ids["slow"] = "slow"
            return iter(())
        error = f"{repository}:{tag}: no space left on device"
        lines = [{"status": "Pulling from library"}, {"error": error}]
        # Without these arguments the client returns what the engine sends as text.
        return iter(lines) if stream and decode else "\n".join(map(json.dumps, lines))

    def inspect_image(self, name: str) -> dict[str, Any]:
        self.asked.append(name)
        if self.away:
            raise requests.exceptions.ConnectionError("refused")
        if name not in self.ids:
            raise docker.errors.ImageNotFound(f"No such image: {name}")
        return {"Id": self.ids[name], "Config": {"Entrypoint": [f"/{self.ids[name]}.sh"]}}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(local_images, "RECHECK_SECONDS", 0.0)
    return Engine()


@pytest.fixture
def images(engine: Engine, tmp_path: Path) -> LocalImages:
    (tmp_path / "image.toml").write_text('name = "framework"\nversion = "2.13.0"\n')
    api = cast("docker.APIClient", SimpleNamespace(inspect_image=engine.inspect_image, pull=engine.pull))
    return LocalImages(api, ImageCatalogue(tmp_path))


def test_a_rebuilt_image_runs_with_its_own_entry_point(engine: Engine, images: LocalImages) -> None:
    engine.ids["my-train"] = "a"
    first = images.resolve("my-train")
    assert images.resolve("my-train") is first, "the programs found in it stay known"
    engine.ids["my-train"] = "b"
    assert (images.resolve("my-train").id, images.resolve("my-train").entrypoint) == ("b", ("/b.sh",))


def test_an_image_loaded_later_under_the_requested_name_takes_the_place_of_the_substitute(
    engine: Engine, images: LocalImages
) -> None:
    engine.ids["smdebug-emulator/framework:latest"] = "ours"
    assert images.resolve("framework:2.3").id == "ours"
    assert images.describe_substitution("framework:2.3") is not None
    engine.ids["framework:2.3"] = "theirs"
    assert images.describe_substitution("framework:2.3") is None
    assert images.resolve("framework:2.3").resolved.local == "framework:2.3"
    del engine.ids["framework:2.3"]
    assert images.resolve("framework:2.3").id == "ours"


def test_an_outage_leaves_it_to_the_start_to_say_so(engine: Engine, images: LocalImages) -> None:
    engine.ids["my-train"] = "a"
    first = images.resolve("my-train")
    engine.away = True
    assert images.resolve("my-train") is first


def test_a_pull_that_fails_midway_is_reported_with_the_reason(images: LocalImages) -> None:
    with pytest.raises(ImageNotFoundError, match=r"cannot be pulled \(Cannot pull other:1: other:1: no space left on"):
        images.resolve("other:1")


def test_an_image_is_found_while_another_is_pulled(engine: Engine, images: LocalImages) -> None:
    engine.ids["my-train"] = "a"
    with ThreadPoolExecutor(3) as pool:
        try:
            slow = [pool.submit(images.resolve, "slow") for _ in range(2)]
            assert engine.slow_begun.wait(60)
            assert pool.submit(images.resolve, "my-train").result(20).id == "a"
        finally:
            engine.slow_ends.set()
        assert slow[0].result(60) is slow[1].result(60)
    assert engine.pulls == ["slow"]


def test_one_start_asks_once(engine: Engine, images: LocalImages, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.ids["my-train"] = "a"
    images.resolve("my-train")
    monkeypatch.setattr(local_images, "RECHECK_SECONDS", 3600.0)
    engine.asked.clear()
    for _ in range(3):
        images.resolve("my-train")
    assert engine.asked == []
