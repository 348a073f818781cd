"""Destinations of asynchronous invocations: OnSuccess, OnFailure, dead letters."""

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from emulator.lambda_functions.invocation import InvocationResult
from emulator.moto_services.eventbridge.rules import Target
from emulator.moto_services.functions.backend import Function


def describe_end(
    function: Function, payload: bytes, result: InvocationResult, attempts: int
) -> tuple[list[Target], dict[str, Any]]:
    """Build the notifications about the end of an asynchronous invocation.

    Returns:
        The targets to notify (a destination and a dead-letter queue or topic, if configured), and the event for
        destinations that are event buses.
    """
    failed = result.function_error is not None
    now = datetime.now(UTC)
    record = {
        "version": "1.0",
        "timestamp": f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z",
        "requestContext": {
            "requestId": result.request_id,
            "functionArn": f"{function.arn}:{result.version}" if result.version == "$LATEST" else function.arn,
            "condition": "RetriesExhausted" if failed else "Success",
            "approximateInvokeCount": attempts,
        },
        "requestPayload": _read(payload),
        "responseContext": {"statusCode": 200, "executedVersion": result.version}
        | ({"functionError": result.function_error} if failed else {}),
        "responsePayload": _read(result.payload),
    }
    destination = function.on_failure if failed else function.on_success
    event = {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": f"Lambda Function Invocation Result - {'Failure' if failed else 'Success'}",
        "source": "lambda",
        "account": function.account,
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "region": function.region,
        "resources": [destination, record["requestContext"]["functionArn"]],
        "detail": record,
    }
    targets = [] if destination is None else [_build_target(function, destination, json.dumps(record))]
    if failed and function.dead_letter is not None:
        error = record["responsePayload"]
        attributes = {
            "RequestID": result.request_id,
            "ErrorCode": "200",
            "ErrorMessage": str(error.get("errorMessage") if isinstance(error, dict) else error)[:1024] or "unknown",
        }
        letter = payload.decode(errors="replace")
        targets.append(_build_target(function, function.dead_letter, letter, {"MessageAttributes": attributes}))
    return targets, event


def _build_target(function: Function, arn: str, body: str, parameters: Mapping[str, Any] | None = None) -> Target:
    return Target(
        rule_arn=function.arn,
        account=function.account,
        region=function.region,
        bus="default",
        target_id=arn,
        arn=arn,
        parameters={"Input": body, **(parameters or {})},
    )


def _read(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except ValueError:
        return payload.decode(errors="replace")
