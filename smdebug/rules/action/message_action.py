"""Email and text message actions, through SNS."""

import json
from typing import Any

from smdebug.logger import get_logger
from smdebug.rules.action.client import build_client

TOPIC_NAME = "SMDebugRules"
# The attribute that delivers each message of the topic only to the endpoint that it is for.
FILTER_KEYS = {"sms": "phone_num", "email": "email"}
# SNS rejects longer subjects.
_MAX_SUBJECT = 100


class MessageAction:
    """Publishes to the SNS topic `SMDebugRules`, to which it subscribes the endpoint."""

    def __init__(self, rule_name: str, message_type: str, message_endpoint: str) -> None:
        """Create the topic, and subscribe the endpoint unless it is subscribed already.

        Args:
            rule_name: name of the rule, for the subject and the text.
            message_type: `sms` or `email`.
            message_endpoint: a phone number or an e-mail address, used unchanged.

        Raises:
            botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError: SNS refuses or does not answer.
            SMDebugError: boto3 is not installed.
        """
        self._topic_name = TOPIC_NAME
        self._rule_name = rule_name
        self._protocol = message_type
        self._message_endpoint = message_endpoint
        self._sns_client = build_client("sns")
        # SNS returns the existing topic if there is one.
        self._topic_arn = self._sns_client.create_topic(Name=self._topic_name)["TopicArn"]
        self._last_subscription_response: Any = self._subscribe()
        self._last_send_mesg_response: Any = None

    def _is_subscribed(self) -> bool:
        pages = self._sns_client.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=self._topic_arn)
        known = (each for page in pages for each in page["Subscriptions"])
        return (self._protocol, self._message_endpoint) in ((each["Protocol"], each["Endpoint"]) for each in known)

    def _subscribe(self) -> Any:
        if self._is_subscribed():
            return None
        wanted = {FILTER_KEYS[self._protocol]: [self._message_endpoint]}
        return self._sns_client.subscribe(
            TopicArn=self._topic_arn,
            Protocol=self._protocol,
            Endpoint=self._message_endpoint,
            Attributes={"FilterPolicy": json.dumps(wanted)},
            ReturnSubscriptionArn=False,
        )

    def invoke(self, message: str) -> None:
        """Publish a message for the endpoint; errors of SNS are raised, and `Actions` logs them."""
        subject = f"SMDebugRule:{self._rule_name} fired"
        text = f"{subject}. {message}".strip()
        self._last_send_mesg_response = self._sns_client.publish(
            TopicArn=self._topic_arn,
            Message=text,
            Subject=subject[:_MAX_SUBJECT],
            MessageAttributes={
                FILTER_KEYS[self._protocol]: {"DataType": "String", "StringValue": self._message_endpoint}
            },
        )
        get_logger().info("Rule %s sent %s to %s.", self._rule_name, self._protocol, self._message_endpoint)
