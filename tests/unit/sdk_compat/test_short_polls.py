import importlib
import time
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from sdk_compat.environment import prepare_environment
from sdk_compat.startup.short_polls import (
    POLL_VARIABLE,
    PollingTime,
    PollSecondsError,
    parse_poll_seconds,
    shorten_polls,
)

URL = "http://127.0.0.1:4580"


def describe(status: str) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "TrainingJobName": "job",
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/job",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://bucket/model.tar.gz"},
        "TrainingJobStatus": status,
        "SecondaryStatus": "Training" if status == "InProgress" else status,
        "SecondaryStatusTransitions": [{"Status": "Training", "StartTime": now, "StatusMessage": "Training"}],
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
        "CreationTime": now,
        "LastModifiedTime": now,
    }


@pytest.fixture(scope="module")
def sdk_session() -> Any:
    """The SDK's module of sessions, whose import takes seconds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SAGEMAKER_SUPPRESS_V2_WARNING", "1")
        return importlib.import_module("sagemaker.session")


@pytest.mark.nightly  # an import of the SDK; the next test sleeps and asks the time as it does
@pytest.mark.timeout(25, func_only=True)
@pytest.mark.parametrize("logs", [True, False], ids=["logs", "no logs"])
def test_the_sdk_sees_the_end_of_a_job_at_its_next_look(
    logs: bool, sdk_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(POLL_VARIABLE, "0.01")
    monkeypatch.setattr(sdk_session, "time", time)
    shorten_polls(sdk_session)
    boto_session = boto3.Session("key", "secret", region_name="us-east-1")
    sagemaker_client, logs_client = boto_session.client("sagemaker"), boto_session.client("logs")
    # The SDK makes this client itself.
    monkeypatch.setattr(boto_session, "client", lambda _name, **_options: logs_client)
    monkeypatch.setattr(sdk_session, "_flush_log_streams", lambda *_arguments: None)
    session = sdk_session.Session(
        boto_session, sagemaker_client, sagemaker_runtime_client=object(), default_bucket="bucket", sagemaker_config={}
    )
    with Stubber(sagemaker_client) as answers:
        for status in ("InProgress", "InProgress", "Completed"):
            answers.add_response("describe_training_job", describe(status), {"TrainingJobName": "job"})
        if logs:
            session.logs_for_job("job", wait=True)
        else:
            session.wait_for_job("job")
        answers.assert_no_pending_responses()


def measure_look(clock: Any, timeout: float | None) -> float:
    """Sleep as the SDK does, with its names; return how long it believes that it slept."""
    last_describe_job_call = clock.time()
    clock.sleep(10)
    return float(clock.time() - last_describe_job_call) if timeout is None else float(clock.time())


def test_timeouts_keep_the_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POLL_VARIABLE, "0.001")
    clock = PollingTime()
    assert measure_look(clock, None) >= 30
    assert abs(measure_look(clock, 600) - time.time()) < 20
    assert abs(clock.time() - time.time()) < 20  # asked by a function that describes no job


def test_without_the_variable_the_sdk_sleeps_as_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    clock = PollingTime()
    for value in (None, "off", "2"):
        monkeypatch.setenv(POLL_VARIABLE, value) if value else monkeypatch.delenv(POLL_VARIABLE, raising=False)
        looked = measure_look(clock, None)
        assert (looked < 20) == (value != "2")
    assert slept == [10, 10, 0.1]


def wait_for(clock: PollingTime, looks: int) -> None:
    for _ in range(looks):
        clock.sleep(5)


def test_sleeps_grow_with_the_wait_and_begin_again_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setenv(POLL_VARIABLE, "1")
    clock = PollingTime()
    wait_for(clock, 100)
    assert slept[:5] == [0.1] * 5
    assert slept == sorted(slept)
    assert sum(slept[:20]) > 4  # a long job is not asked ten times a second
    assert slept[40:] == [1.0] * 60
    for _ in range(3):  # calls whose frames may come to lie where the one before was
        wait_for(clock, 1)
    assert slept[100:] == [0.1] * 3


def test_a_module_whose_time_is_something_else_is_left_alone() -> None:
    module = types.SimpleNamespace(time=time.time)
    shorten_polls(module)
    assert module.time is time.time
    shorten_polls(types.SimpleNamespace())


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "1s", "no"])
def test_what_is_not_a_number_of_seconds(text: str, tmp_path: Path) -> None:
    with pytest.raises(PollSecondsError, match="give a number of seconds above 0, or off"):
        parse_poll_seconds(text)
    if text:
        with pytest.raises(PollSecondsError, match=f"{POLL_VARIABLE} is '{text}'"):
            prepare_environment(URL, {POLL_VARIABLE: text}, folder=tmp_path)


def test_env_sets_the_variable_and_keeps_the_users_own(tmp_path: Path) -> None:
    assert prepare_environment(URL, {}, folder=tmp_path)[POLL_VARIABLE] == "1"
    assert prepare_environment(URL, {POLL_VARIABLE: "off"}, folder=tmp_path)[POLL_VARIABLE] == "off"
