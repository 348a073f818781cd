"""Tests of trials on an S3 that answers 500 or 503, briefly or permanently."""

import socket
import time
from typing import Any

import numpy as np
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from smdebug.exceptions import SMDebugError
from smdebug.storage import s3
from smdebug.trials import create_trial
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker

RUN = "s3://runs/job"


class Refusals:
    """Answers with a status in place of S3, so many times; `left` may be changed at any time."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.left = 0
        self.made = 0

    def answer(self, request: Any, **_: Any) -> AWSResponse | None:
        if self.left <= 0:
            return None
        self.left -= 1
        self.made += 1
        return AWSResponse(request.url, self.status, HTTPHeaders(), _Body())


class _Body:
    def stream(self, **_: Any) -> list[bytes]:
        return [b"<Error><Code>SlowDown</Code><Message>later</Message></Error>"]


@pytest.fixture(params=[500, 503])
def refusals(request: pytest.FixtureRequest, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Refusals:
    made = Refusals(request.param)
    build = s3.build_s3_client

    def build_refused(**options: Any) -> Any:
        client = build(**options)
        client.meta.events.register("before-send.s3", made.answer)
        return client

    monkeypatch.setattr(s3, "build_s3_client", build_refused)
    # botocore's pauses between two attempts are not what is tested.
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    return made


def test_passing_refusals_are_not_noticed(refusals: Refusals) -> None:
    run = RunMaker(RUN)
    run.write_step(0, {"t": np.ones(5)})
    run.end()
    refusals.left = 2
    trial = create_trial(RUN)
    refusals.left = 2
    assert trial.tensor("t").value(0).sum() == 5
    assert refusals.made == 4


def test_lasting_refusals_say_what_to_check_and_lose_nothing(refusals: Refusals) -> None:
    run = RunMaker(RUN)
    run.write_step(0, {"t": np.ones(5)})
    run.end()
    trial = create_trial(RUN)
    refusals.left = 100
    with pytest.raises(SMDebugError, match=r"s3://runs/job/.*AWS_ENDPOINT_URL"):
        trial.tensor_names()
    with pytest.raises(SMDebugError, match=r"s3://runs/job"):
        create_trial(RUN)
    refusals.left = 0
    assert trial.tensor("t").value(0).sum() == 5


@pytest.mark.slow
def test_a_slow_s3_is_waited_for_and_asked_as_seldom_as_a_fast_one(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunMaker(RUN)
    for step in range(8):
        run.write_step(step, {"t": np.full(5, step)})
    run.end()
    storage.requests.clear()
    assert create_trial(RUN).tensor("t").values()[7].sum() == 35
    fast = sum(storage.requests.values())
    storage.requests.clear()
    build = s3.build_s3_client

    def build_slow(**options: Any) -> Any:
        client = build(**options)
        # Behind the network, as a distant or busy S3 is: each answer comes, and late.
        client.meta.events.register("before-send.s3", lambda **_: time.sleep(0.05))
        return client

    monkeypatch.setattr(s3, "build_s3_client", build_slow)
    values = create_trial(RUN).tensor("t").values()
    assert [value[0] for value in values.values()] == list(range(8))
    assert sum(storage.requests.values()) == fast


def test_an_s3_that_hangs_is_named_after_the_time_it_is_given(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunMaker(RUN)
    run.write_step(0, {"t": np.ones(5)})
    run.end()
    trial = create_trial(RUN)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        build = s3.build_s3_client
        monkeypatch.setattr(s3, "build_s3_client", lambda **_: build(answer_seconds=0.2, attempts=1))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(SMDebugError, match=r"s3://runs/job.*AWS_ENDPOINT_URL"):
            create_trial(RUN)
    # What was opened before goes on with the S3 that it knows.
    assert trial.tensor("t").value(0).sum() == 5


@pytest.mark.parametrize("wait", ["60", "0"])
def test_nobody_answers_for_a_while(
    storage: Storage, refusing_port: int, monkeypatch: pytest.MonkeyPatch, wait: str
) -> None:
    """As while an emulator is started again: who was told to wait goes on where it was."""
    run = RunMaker(RUN)
    run.write_step(0, {"t": np.ones(5)})
    run.end()
    nowhere = f"http://127.0.0.1:{refusing_port}"
    monkeypatch.setenv("SMDEBUG_S3_OUTAGE_WAIT", wait)
    monkeypatch.setattr(s3, "_OUTAGE_PAUSE_S", 0.01)
    there = s3.build_s3_client(attempts=1)
    asked: list[str] = []

    def send_astray(request: Any, **_: Any) -> None:
        asked.append(request.url)
        if len(asked) % 4:
            request.url = request.url.replace(storage.endpoint_url, nowhere)

    there.meta.events.register("before-send.s3", send_astray)
    objects = s3.S3Objects(RUN, there)
    if wait == "0":
        with pytest.raises(SMDebugError, match="Could not connect"):
            objects.list_keys("/")
        return
    (name,) = (key for key in objects.list_keys("/") if key.endswith(".tfevents"))
    assert objects.get(name)
    assert len(asked) == 8
