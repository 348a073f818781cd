"""Tests of the stream of changes, on a separate store."""

import json
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from container_runtime.runtime import ContainerRuntime
from emulator.api.account_services import RequestAccounts
from emulator.api.application import build_pages
from emulator.api.changes import MOST_STREAMS, Streams, build_changes_pages, follow
from emulator.jobs import build_services
from emulator.jobs.store.store import JobStore
from emulator.services import Services
from emulator.settings import Settings
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Services]:
    store = JobStore(tmp_path / "jobs.sqlite")
    settings = Settings(state_dir=tmp_path, account_id="123456789012")
    services = build_services(
        settings, store, cast("ContainerRuntime", None), RecordingPublisher(), "http://127.0.0.1:1"
    )
    yield services
    services.log_writer.close()
    store.close()


def send(account: Services, name: str) -> None:
    account.store.messages.add_sent("EventBridge", "us-east-1", {"id": name, "detail": {"TrainingJobName": name}}, 1)


def parse(text: str) -> tuple[str, str, Any]:
    lines = dict(line.split(": ", 1) for line in text.strip().splitlines() if not line.startswith(":"))
    return lines.get("id", ""), lines.get("event", ""), json.loads(lines.get("data", "null"))


def test_a_returning_page_gets_the_changes_it_missed(account: Services) -> None:
    send(account, "first")
    stream = follow(account, None, None, lambda: False)
    assert next(stream).startswith("retry:")
    assert parse(next(stream)) == ("1", "hello", {"sequence": 1})
    send(account, "second")
    assert parse(next(stream)) == ("2", "change", {"jobs": ["second"], "sequence": 2})
    stream.close()
    send(account, "third")
    send(account, "fourth")
    again = follow(account, None, 2, lambda: False)
    assert parse(list(islice(again, 2))[1]) == ("4", "change", {"jobs": ["fourth", "third"], "sequence": 4})


def test_a_page_that_missed_more_than_a_change_names_loads_everything(account: Services) -> None:
    for number in range(201):
        send(account, f"job-{number}")
    stream = follow(account, None, 0, lambda: False)
    assert parse(list(islice(stream, 2))[1]) == ("201", "hello", {"sequence": 201})
    within = follow(account, None, 1, lambda: False)
    assert len(parse(list(islice(within, 2))[1])[2]["jobs"]) == 200


def test_a_replaced_state_is_recognised(account: Services) -> None:
    send(account, "first")
    stream = follow(account, None, 500, lambda: False)
    assert parse(list(islice(stream, 2))[1])[1] == "hello"
    account.store.by_prefix.forget("")
    assert parse(next(stream)) == ("0", "hello", {"sequence": 0})


def test_it_wakes_when_something_is_stored_and_ends_when_it_closes(account: Services) -> None:
    closing = threading.Event()
    stream = follow(account, None, 0, closing.is_set)
    next(stream)
    timer = threading.Timer(0.05, send, (account, "late"))
    timer.start()
    assert parse(next(text for text in stream if text.startswith("id")))[2]["jobs"] == ["late"]
    timer.join()
    closing.set()
    assert list(stream) == []


def test_new_lines_of_the_watched_job_are_told_though_nothing_is_stored_beside_them(
    account: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.api.changes._POLL_SECONDS", 0.001)
    stream = follow(account, ("us-east-1", "watched"), 0, lambda: False)
    told = (parse(text)[2] for text in stream if "event: progress" in text)
    assert next(told) == {"lines": 0, "warnings": 0, "status": None}
    account.log_groups_for("us-east-1").put("/aws/sagemaker/TrainingJobs", "watched/algo-1", [(1, "a"), (2, "b")])
    assert next(told)["lines"] == 2


def test_a_silent_stream_says_that_it_is_there(account: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.api.changes._POLL_SECONDS", 0.001)
    stream = follow(account, None, 0, lambda: False)
    assert list(islice(stream, 2))[1].startswith(":")


def test_the_number_of_open_ones_is_limited_and_each_frees_its_place(account: Services) -> None:
    streams = Streams()
    accounts = cast("RequestAccounts", SimpleNamespace(find=lambda: account))
    pages = build_pages(dict, [build_changes_pages(accounts, streams, lambda _account: None)])
    client = pages.test_client()
    opened = [client.get("/_emulator/stream") for _ in range(MOST_STREAMS)]
    refused = client.get("/_emulator/stream")
    assert refused.status_code == 503
    assert "pages are already open" in refused.get_json()["error"]
    # One that is closed before it began, and one that was read to its end.
    opened[0].close()
    streams.close()
    assert b"hello" in opened[1].data
    opened[1].close()
    again = [client.get("/_emulator/stream") for _ in range(3)]
    assert [each.status_code for each in again] == [200, 200, 503]
    for each in (*opened[2:], *again):
        each.close()


def test_outcomes_are_kept_by_event(account: Services) -> None:
    account.store.messages.add_outcome("e", {"succeeded": True}, 5)
    account.store.messages.add_outcome("f", {"succeeded": False}, 6)
    assert account.store.messages.list_outcomes(["e", "g"]) == {"e": [{"succeeded": True, "timeMs": 5}]}


def test_events_of_some_jobs_are_chosen(account: Services) -> None:
    for name in ("a", "b", "a"):
        send(account, name)
    assert [each.sequence for each in account.store.messages.list_sent(names=["a"])] == [1, 3]
    assert [each.sequence for each in account.store.messages.list_sent(limit=2)] == [2, 3]
