"""Tests of Invoke's refusals."""

import base64
import json

import pytest
from botocore.exceptions import ClientError

from tests.integration.emulator.small_emulator import ACCOUNT, REGION, Emulator


def test_errors_of_invoke(emulator: Emulator) -> None:
    client = emulator.client("lambda")
    with pytest.raises(client.exceptions.ResourceNotFoundException) as missing:
        client.invoke(FunctionName="nobody")
    assert missing.value.response["Error"]["Message"] == (
        f"Function not found: arn:aws:lambda:{REGION}:{ACCOUNT}:function:nobody"
    )
    emulator.create_function("def handler(e, c): pass")
    for payload in (b"{no json", b"[" * 100_000):
        with pytest.raises(client.exceptions.InvalidRequestContentException):
            client.invoke(FunctionName="fn", Payload=payload)
    with pytest.raises(ClientError, match="RequestTooLarge"):
        client.invoke(FunctionName="fn", InvocationType="Event", Payload=json.dumps("x" * 1_100_000).encode())
    for context in ("{}", base64.b64encode(b"{no json").decode()):
        with pytest.raises(
            client.exceptions.InvalidRequestContentException, match=r"Client context must be JSON, base64-encoded: "
        ):
            client.invoke(FunctionName="fn", ClientContext=context)
    for nowhere in (f"arn:aws:lambda:nowhere-1:{ACCOUNT}:function:fn", f"{ACCOUNT}:function:fn:more:parts"):
        with pytest.raises(client.exceptions.ResourceNotFoundException, match="Function not found"):
            client.invoke(FunctionName=nowhere)
    with pytest.raises(
        client.exceptions.InvalidParameterValueException,
        match=r"Value 'Later' at 'invocationType' is none of RequestResponse, Event, DryRun\.",
    ):
        client.invoke(FunctionName="fn", InvocationType="Later")
