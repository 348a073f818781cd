"""An S3 that answers 500 or 503, for a while or for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import botocore.endpoint
import numpy as np
import pytest
from botocore.awsrequest import AWSResponse

from smdebug.core import s3
from smdebug.exceptions import SMDebugError
from smdebug.trials import create_trial
from tests.unit.smdebug.runs import RunMaker

if TYPE_CHECKING:
    from tests.unit.smdebug.object_storage import Storage

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
        return AWSResponse(request.url, self.status, {}, _Body())


class _Body:
    def stream(self, **_: Any) -> list[bytes]:
        return [b"<Error><Code>SlowDown</Code><Message>later</Message></Error>"]


@pytest.fixture(params=[500, 503])
def refusals(request: pytest.FixtureRequest, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Refusals:
    made = Refusals(request.param)
    build = s3.build_s3_client

    def build_refused() -> Any:
        client = build()
        client.meta.events.register("before-send.s3", made.answer)
        return client

    monkeypatch.setattr(s3, "build_s3_client", build_refused)
    # botocore's pauses between two attempts are not what is tested.
    monkeypatch.setattr(botocore.endpoint.time, "sleep", lambda _: None)
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
