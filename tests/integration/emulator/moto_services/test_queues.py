"""Attributes of SQS queues, read as they were set."""

import json
from collections.abc import Iterator

import pytest

from emulator.moto_services.queues import keeping_queue_attributes
from tests.integration.emulator.small_emulator import Emulator


@pytest.fixture(autouse=True)
def _keeping() -> Iterator[None]:
    with keeping_queue_attributes():
        yield


@pytest.mark.parametrize("key", [None, "alias/a"])
def test_redrive_policies_are_read_as_they_were_set_and_removed(emulator: Emulator, key: str | None) -> None:
    sqs = emulator.client("sqs")
    attributes = {"KmsMasterKeyId": key} if key else {}
    dead = sqs.create_queue(QueueName=f"dead-{bool(key)}", Attributes=attributes)["QueueUrl"]
    queue = sqs.create_queue(QueueName=f"queue-{bool(key)}")["QueueUrl"]

    def read(url: str, name: str) -> str | None:
        found: str | None = (
            sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name]).get("Attributes", {}).get(name)
        )
        return found

    arn = read(dead, "QueueArn")
    assert read(dead, "RedriveAllowPolicy") is None
    redrive = f'{{"deadLetterTargetArn":"{arn}",  "maxReceiveCount":"3"}}'
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": redrive})
    allow = '{"redrivePermission":"allowAll"}'
    sqs.set_queue_attributes(QueueUrl=dead, Attributes={"RedriveAllowPolicy": allow})
    assert (read(queue, "RedrivePolicy"), read(dead, "RedriveAllowPolicy")) == (redrive, allow)
    assert sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["All"])["Attributes"]["RedriveAllowPolicy"] == allow
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": ""})
    sqs.set_queue_attributes(QueueUrl=dead, Attributes={"RedriveAllowPolicy": ""})
    assert (read(queue, "RedrivePolicy"), read(dead, "RedriveAllowPolicy")) == (None, None)


def test_a_policy_stays_when_another_attribute_changes(emulator: Emulator) -> None:
    sqs = emulator.client("sqs")
    statement = {"Sid": "a", "Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    queue = sqs.create_queue(QueueName="with-policy", Attributes={"Policy": policy})["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "7"})
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert (found["Policy"], found["VisibilityTimeout"]) == (policy, "7")
