"""Log of sent job events and SNS messages, for display."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.exceptions import StartupError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from emulator.moto_services.sns import PublishedMessage

logger = logging.getLogger(__name__)

EVENT_BRIDGE, SNS = "EventBridge", "SNS"


class SentMessage(NamedTuple):
    """One sent event or SNS message.

    Attributes:
        sequence: Number of the message, one higher for each.
        time_ms: Time at which it was stored, in epoch milliseconds.
        service: EventBridge or SNS.
        region: Region in which it was sent.
        content: The event's envelope, or the message's destination, endpoints, subject and text.
    """

    sequence: int
    time_ms: int
    service: str
    region: str
    content: Mapping[str, Any]


def record_message(add_sent: Callable[[str, str, Mapping[str, Any], int], None], message: PublishedMessage) -> None:
    """Store a message that SNS accepted, and write it to the emulator's log."""
    content = {
        "MessageId": message.message_id,
        "Destination": message.destination,
        "Endpoints": [list(endpoint) for endpoint in message.endpoints],
        "Subject": message.subject,
        "Message": message.message,
    }
    add_sent(SNS, message.region, content, time.time_ns() // 1_000_000)
    to = ", ".join(" ".join(endpoint) for endpoint in message.endpoints) or "no subscriber"
    logger.info("SNS message to %s (%s): %s", message.destination, to, message.subject or message.message)


def read_sent(path: Path, after: int = 0, limit: int = -1) -> list[SentMessage]:
    """Read the sent messages of a job store, oldest first. An emulator may be using the store.

    Args:
        path: The store's file.
        after: Only messages with a higher sequence number are read.
        limit: Maximum number of messages, the newest; all if negative.

    Raises:
        StartupError: The file is not a job store.
    """
    query = (
        "SELECT sequence, time_ms, service, region, content FROM sent_messages WHERE sequence > ? "
        "ORDER BY sequence DESC LIMIT ?"
    )
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
            rows = connection.execute(query, (after, limit)).fetchall()
    except sqlite3.Error as error:
        raise StartupError(f"{path} cannot be read as a job store ({error}): was an emulator started there?") from error
    return [
        SentMessage(sequence, time_ms, service, region, json.loads(content))
        for sequence, time_ms, service, region, content in reversed(rows)
    ]


def format_sent(message: SentMessage) -> str:
    """Format a message as a readable line of time, service and content."""
    moment = datetime.fromtimestamp(message.time_ms / 1000, tz=UTC).astimezone()
    parts = [f"{moment:%Y-%m-%d %H:%M:%S}.{message.time_ms % 1000:03d}", f"{message.service:<11}"]
    content = message.content
    if message.service == SNS:
        endpoints = ", ".join(f"{protocol} {endpoint}" for protocol, endpoint in content["Endpoints"])
        destination = str(content["Destination"]).rpartition(":")[2]
        to = f"{destination} → {endpoints}" if endpoints else destination
        return "  ".join([*parts, to, str(content["Subject"] or ""), " ".join(str(content["Message"]).split())])
    detail = content["detail"]
    if "ProcessingJobName" in detail:
        said = [f"processing job {detail['ProcessingJobName']}", detail["ProcessingJobStatus"]]
        # A rule's message goes on with what to do: here the line says what happened.
        said += str(detail.get("ExitMessage") or "").strip().splitlines()[:1]
    elif "HyperParameterTuningJobName" in detail:
        said = [f"tuning job {detail['HyperParameterTuningJobName']}", detail["HyperParameterTuningJobStatus"]]
    elif "pipelineExecutionArn" in detail:
        execution = detail["pipelineExecutionArn"].partition(":pipeline/")[2]
        said = [f"pipeline {execution}", detail["currentPipelineExecutionStatus"]]
    else:
        said = [
            f"training job {detail['TrainingJobName']}",
            f"{detail['TrainingJobStatus']}/{detail['SecondaryStatus']}",
        ]
        said += [
            f"{each['RuleConfigurationName']} {each['RuleEvaluationStatus']}"
            for each in detail.get("DebugRuleEvaluationStatuses", ())
        ]
    return "  ".join([*parts, *said])


def encode_sent(message: SentMessage) -> str:
    """Encode a message as one line of JSON."""
    moment = datetime.fromtimestamp(message.time_ms / 1000, tz=UTC)
    return json.dumps(
        {
            "Sequence": message.sequence,
            "Time": moment.isoformat(timespec="milliseconds"),
            "Service": message.service,
            "Region": message.region,
            "Content": message.content,
        }
    )
