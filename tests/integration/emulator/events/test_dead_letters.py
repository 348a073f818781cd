"""Tests of final delivery failures, and of stream and state machine targets."""

import json
from typing import Any

from tests.integration.emulator.events.test_publisher import Deliveries, build_event, create_queue, put_rule, receive
from tests.integration.emulator.small_emulator import ACCOUNT, REGION, Emulator
from tests.waiting import wait_until


def receive_messages(emulator: Emulator, name: str, count: int = 1) -> list[dict[str, Any]]:
    sqs = emulator.client("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    found: list[dict[str, Any]] = []

    def poll() -> bool:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        found.extend(answer.get("Messages", []))
        return len(found) >= count

    wait_until(poll, f"{count} messages in {name}")
    return found


def test_event_that_reaches_no_target_is_in_the_dead_letter_queue(emulator: Emulator) -> None:
    queue = create_queue(emulator, "letters")
    gone = f"arn:aws:sqs:{REGION}:{ACCOUNT}:gone"
    unknown = f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/x"
    put_rule(
        emulator,
        {"Arn": gone, "DeadLetterConfig": {"Arn": queue}, "RetryPolicy": {"MaximumRetryAttempts": 0}},
        {"Arn": f"{gone}-too", "DeadLetterConfig": {"Arn": queue}, "RetryPolicy": {"MaximumRetryAttempts": 2}},
        {"Arn": unknown, "DeadLetterConfig": {"Arn": queue}},
    )
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    delivered.wait(1)
    letters = {
        letter["MessageAttributes"]["TARGET_ARN"]["StringValue"]: letter
        for letter in receive_messages(emulator, "letters", 3)
    }
    assert letters.keys() == {gone, f"{gone}-too", unknown}
    assert all(json.loads(letter["Body"])["id"] == build_event()["id"] for letter in letters.values())

    def read(arn: str, name: str) -> str:
        return str(letters[arn]["MessageAttributes"][name]["StringValue"])

    assert [read(arn, "ERROR_CODE") for arn in (gone, unknown)] == ["NO_RESOURCE", "INVALID_PARAMETER"]
    assert [read(arn, "RETRY_ATTEMPTS") for arn in (gone, f"{gone}-too", unknown)] == ["0", "2", "0"]
    assert read(gone, "RULE_ARN") == f"arn:aws:events:{REGION}:{ACCOUNT}:rule/rule"
    assert "does not exist" in read(gone, "ERROR_MESSAGE")


def test_ends_of_asynchronous_invocations_are_reported(emulator: Emulator) -> None:
    arn = emulator.create_function(
        """
        def handler(event, context):
            if event.get("fail"):
                raise ValueError("no luck")
            return {"answer": 42}
        """,
        DeadLetterConfig={"TargetArn": create_queue(emulator, "letters")},
    )
    put_rule(emulator, {"Arn": create_queue(emulator, "failures")}, pattern={"source": ["lambda"]})
    functions = emulator.client("lambda")
    assert functions.get_function_configuration(FunctionName=arn)["DeadLetterConfig"]["TargetArn"].endswith("letters")
    functions.put_function_event_invoke_config(
        FunctionName="fn",
        MaximumRetryAttempts=1,
        DestinationConfig={
            "OnSuccess": {"Destination": create_queue(emulator, "successes")},
            "OnFailure": {"Destination": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"},
        },
    )
    for payload in (b'{"fail": true}', b"{}"):
        functions.invoke(FunctionName="fn", InvocationType="Event", Payload=payload)
    (success,) = receive(emulator, name="successes")
    assert (success["requestContext"]["condition"], success["responsePayload"]) == ("Success", {"answer": 42})
    (failure,) = receive(emulator, name="failures")
    assert failure["detail-type"] == "Lambda Function Invocation Result - Failure"
    context = failure["detail"]["requestContext"]
    assert (context["condition"], context["approximateInvokeCount"]) == ("RetriesExhausted", 2)
    assert failure["detail"]["requestPayload"] == {"fail": True}
    assert failure["detail"]["responsePayload"]["errorMessage"] == "no luck"
    (letter,) = receive_messages(emulator, "letters")
    assert json.loads(letter["Body"]) == {"fail": True}
    assert letter["MessageAttributes"]["ErrorMessage"]["StringValue"] == "no luck"


def test_streams_and_state_machines_are_targets(emulator: Emulator) -> None:
    kinesis, machines = emulator.client("kinesis"), emulator.client("stepfunctions")
    kinesis.create_stream(StreamName="events", ShardCount=1)
    definition = {"StartAt": "Only", "States": {"Only": {"Type": "Pass", "End": True}}}
    machine = machines.create_state_machine(
        name="machine", definition=json.dumps(definition), roleArn=f"arn:aws:iam::{ACCOUNT}:role/r"
    )["stateMachineArn"]
    put_rule(
        emulator,
        {
            "Arn": f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/events",
            "KinesisParameters": {"PartitionKeyPath": "$.detail.TrainingJobName"},
        },
        {"Arn": machine, "InputPath": "$.detail", "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/r"},
    )
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    delivered.wait(1)
    shard = kinesis.describe_stream(StreamName="events")["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = kinesis.get_shard_iterator(StreamName="events", ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    (record,) = kinesis.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
    assert (record["PartitionKey"], json.loads(record["Data"])["id"]) == ("job", build_event()["id"])
    (execution,) = machines.list_executions(stateMachineArn=machine)["executions"]
    described = machines.describe_execution(executionArn=execution["executionArn"])
    assert json.loads(described["input"]) == build_event()["detail"]
