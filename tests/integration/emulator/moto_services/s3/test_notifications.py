"""A bucket's notifications, with EventBridge alone and beside a queue."""

from typing import Any

import pytest

from emulator.moto_services.s3.notifications import describing_eventbridge
from tests.integration.emulator.small_emulator import Emulator


@pytest.mark.parametrize("with_queue", [False, True])
def test_eventbridge_is_described(emulator: Emulator, with_queue: bool) -> None:
    s3, name = emulator.client("s3"), f"notifying-{with_queue}".lower()
    s3.create_bucket(Bucket=name)
    arn = "arn:aws:sqs:us-east-1:123456789012:notified"
    emulator.client("sqs").create_queue(QueueName="notified")
    queues = [{"Id": "q", "QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}] if with_queue else []
    wanted: dict[str, Any] = {"EventBridgeConfiguration": {}} | ({"QueueConfigurations": queues} if queues else {})
    with describing_eventbridge():
        s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration=wanted)
        found = s3.get_bucket_notification_configuration(Bucket=name)
        assert {key: found[key] for key in wanted} == wanted
        s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration={})
        assert "EventBridgeConfiguration" not in s3.get_bucket_notification_configuration(Bucket=name)
