"""Tests of the component of the emulator's own pages."""

from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from wsgiref.types import WSGIApplication

import pytest
from werkzeug.test import Client

from emulator.components.administration import Administration
from emulator.components.gateway import Pages
from emulator.components.ports import Faults, Folder, Ports, ReplicaComponent
from emulator.gateway.addresses import find_addresses
from emulator.settings import Settings


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    settings = Settings(state_dir=tmp_path, port=0)
    replica = ReplicaComponent(settings, None, Folder(settings))
    ports = Ports(settings, find_addresses(settings), replica)
    ports.start()
    built = Pages(ports, Faults(settings), Administration(ports, replica, lambda: None))
    built.start()
    yield built
    built.stop()
    ports.stop()


def test_first_requests_build_the_pages_once(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[WSGIApplication] = []
    build = pages._build

    def count() -> WSGIApplication:
        built.append(build())
        return built[-1]

    monkeypatch.setattr(pages, "_build", count)
    pages.open()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: Client(pages.answer).get("/_emulator/health"), range(4)))
    assert [answer.json["status"] for answer in answers if answer.json] == ["starting"] * 4
    pages.preload()
    assert len(built) == 1


def test_only_the_health_is_answered_before_the_emulator_has_started(pages: Pages) -> None:
    with ThreadPoolExecutor(1) as pool:
        front_page = pool.submit(lambda: Client(pages.answer).get("/"))
        health = Client(pages.answer).get("/_emulator/health")
        assert health.json is not None
        assert health.json["status"] == "starting"
        assert pages._built is None
        assert not front_page.done()
        pages.open()
        assert "SageMaker Debugger" in front_page.result(60).text


def test_requests_that_wait_end_with_a_start_that_fails(pages: Pages) -> None:
    with ThreadPoolExecutor(1) as pool:
        front_page = pool.submit(lambda: Client(pages.answer).get("/"))
        pages.stop()
        with pytest.raises(CancelledError):
            front_page.result(60)


def test_no_page_is_built_after_the_stop(pages: Pages) -> None:
    pages.stop()
    pages.preload()
    with pytest.raises(CancelledError):
        Client(pages.answer).get("/_emulator/health")
