"""Tests of the reader processes of runs: requests, kills, timeouts, closing."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer
from types import SimpleNamespace

import numpy as np
import pytest

from emulator.api import run_readers
from emulator.api.run_readers import ReadError, RunReaders, build_reader_environment
from tests.unit.smdebug.rules.builtin.judging import write_run
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_run(tmp_path_factory.mktemp("run"), [{"loss": np.float32(step)} for step in range(5)]).path


@pytest.fixture
def readers() -> Iterator[RunReaders]:
    made = RunReaders(lambda _: build_reader_environment({}))
    yield made
    made.close()


def list_children() -> set[int]:
    found: set[int] = set()
    for path in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
            found.update(map(int, path.read_text().split()))
    return found


def test_it_answers_errors_and_continues_when_its_process_dies(readers: RunReaders, run: str) -> None:
    before = list_children()
    assert readers.ask("1", run, "series", {"tensors": ["loss"]})["series"][0]["mean"] == [0, 1, 2, 3, 4]
    with pytest.raises(ReadError, match="nope") as error:
        readers.ask("1", run, "series", {"tensors": ["nope"]})
    assert error.value.status == 404
    (process,) = list_children() - before
    os.kill(process, signal.SIGKILL)
    assert readers.ask("1", run, "describe", {})["ended"]
    readers.close()
    assert list_children() == before
    with pytest.raises(ReadError, match="closing"):
        readers.ask("1", run, "describe", {})


def test_simultaneous_questions_are_all_answered(readers: RunReaders, run: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: readers.ask("1", run, "describe", {})["steps"]["count"], range(6)))
    assert found == [5] * 6


def test_one_that_takes_too_long_is_killed_and_replaced(
    readers: RunReaders, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list_children()
    with monkeypatch.context() as patched:
        # The time is up at once, for the first question alone.
        patched.setattr(run_readers, "threading", SimpleNamespace(Event=Event, Timer=lambda _, end: Timer(0.001, end)))
        with pytest.raises(ReadError, match="took longer than 30 s") as error:
            readers.ask("1", run, "describe", {})
    assert error.value.status == 504
    assert list_children() == before
    assert readers.ask("1", run, "describe", {})["steps"]["count"] == 5


def test_nothing_of_the_user_s_account_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    found = build_reader_environment({"AWS_REGION": "eu-west-1"})
    assert {name for name in found if name.startswith("AWS_")} == {"AWS_REGION"}


def test_the_folder_stays_as_it_was(readers: RunReaders, run: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="No tensors have been saved yet"):
        readers.ask("1", str(tmp_path), "describe", {})
    assert not list(tmp_path.iterdir())


def test_an_idle_one_ends_without_another_question(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_readers, "_IDLE_SECONDS", 0.5)
    before, readers = list_children(), RunReaders(lambda _account: build_reader_environment({}))
    assert readers.ask("1", run, "describe", {})["ended"]
    wait_until(lambda: list_children() == before, list_children)
    readers.close()
