"""Tests of a job's tags in the emulator's own API and in AWS's operations."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from sdk_compat.demo.training_job import build_training_job
from tests.boto3_client import make_client
from tests.forked_emulator import ForkedEmulator

JOB = "tagged"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedEmulator]:
    with ForkedEmulator(tmp_path_factory.mktemp("tags") / "state", runtime="process", warm=None) as started:
        make_client(started.endpoint_url, "s3").create_bucket(Bucket="tags")
        request = build_training_job(
            JOB, image="nobody-built:1", hyperparameters={}, channels=(), collections={}, bucket="tags"
        )
        request["Tags"] = [{"Key": "team", "Value": "vision"}]
        make_client(started.endpoint_url, "sagemaker").create_training_job(**request)
        yield started


def ask(emulator: ForkedEmulator, path: str, body: Any = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{emulator.endpoint_url}/_emulator/jobs/us-east-1/{JOB}{path}", data, headers)
    with urlopen(request, timeout=400) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def test_tags_are_set_removed_and_those_of_aws_s_operations(emulator: ForkedEmulator) -> None:
    assert ask(emulator, "")["tags"] == {"team": "vision"}
    changed = ask(emulator, "/tags", {"tags": {"note": "der Vergleich: 0.5", "team": None, "never-set": None}})
    assert changed == {"tags": {"note": "der Vergleich: 0.5"}} == {"tags": ask(emulator, "")["tags"]}
    sagemaker = make_client(emulator.endpoint_url, "sagemaker")
    arn = sagemaker.describe_training_job(TrainingJobName=JOB)["TrainingJobArn"]
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "note", "Value": "der Vergleich: 0.5"}]


@pytest.mark.parametrize(
    "tags",
    [None, {}, [], {"": "x"}, {"aws:x": "y"}, {"k" * 129: ""}, {"k": "v" * 257}, {"k": 1}, {"k": "<b>"}],
    ids=lambda tags: str(tags)[:20],
)
def test_what_aws_does_not_accept_is_refused(emulator: ForkedEmulator, tags: Any) -> None:
    before = ask(emulator, "")["tags"]
    with pytest.raises(HTTPError) as refused:
        ask(emulator, "/tags", {"tags": tags})
    with refused.value as error:
        assert error.status == 400
        assert "Send JSON" in (said := json.load(error)["error"]) or "cannot be set" in said
    assert ask(emulator, "")["tags"] == before


def test_more_tags_than_aws_keeps_are_refused(emulator: ForkedEmulator) -> None:
    with pytest.raises(HTTPError, match="400"):
        ask(emulator, "/tags", {"tags": {f"key-{at}": "" for at in range(51)}})
