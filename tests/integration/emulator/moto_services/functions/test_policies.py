"""Policies of a Lambda function, its versions and its aliases."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.moto_services.functions.policies import keeping_policies_apart, permits
from tests.integration.emulator.small_emulator import ACCOUNT, REGION, Emulator

NAME = "permitted"
ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{NAME}"
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/stop"


@pytest.fixture(autouse=True)
def _apart() -> Iterator[None]:
    with keeping_policies_apart():
        yield


@pytest.fixture
def functions(emulator: Emulator) -> Iterator[Any]:
    emulator.create_function("def handler(event, context): return 1", NAME)
    client = emulator.client("lambda")
    client.publish_version(FunctionName=NAME)
    client.create_alias(FunctionName=NAME, Name="live", FunctionVersion="1")
    yield client
    client.delete_function(FunctionName=NAME)


def permit(functions: Any, sid: str, **qualifier: str) -> None:
    functions.add_permission(
        FunctionName=NAME,
        StatementId=sid,
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        **qualifier,
    )


def read(functions: Any, name: str = NAME, **qualifier: str) -> list[tuple[str, str]]:
    try:
        policy = json.loads(functions.get_policy(FunctionName=name, **qualifier)["Policy"])
    except functions.exceptions.ResourceNotFoundException:
        return []
    return [(each["Sid"], each["Resource"].rpartition("function:")[2]) for each in policy["Statement"]]


def test_an_alias_has_its_own_statements(functions: Any) -> None:
    permit(functions, "A")
    permit(functions, "A", Qualifier="live")
    assert read(functions) == [("A", NAME)]
    assert read(functions, Qualifier="live") == read(functions, f"{NAME}:live") == [("A", f"{NAME}:live")]
    functions.remove_permission(FunctionName=NAME, StatementId="A", Qualifier="live")
    assert (read(functions), read(functions, Qualifier="live")) == ([("A", NAME)], [])
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        functions.remove_permission(FunctionName=NAME, StatementId="A", Qualifier="live")
    functions.remove_permission(FunctionName=NAME, StatementId="A")
    assert read(functions) == []


def test_a_statement_is_not_given_twice(functions: Any) -> None:
    permit(functions, "B")
    with pytest.raises(ClientError, match="ResourceConflictException"):
        permit(functions, "B")


def test_a_revision_that_is_not_the_last_is_refused(functions: Any) -> None:
    permit(functions, "C")
    with pytest.raises(ClientError, match="PreconditionFailedException"):
        functions.remove_permission(FunctionName=NAME, StatementId="C", RevisionId="another")
    assert read(functions) == [("C", NAME)]


@pytest.mark.parametrize(
    ("statement", "permitted"),
    [
        ({}, True),
        ({"SourceArn": RULE, "SourceAccount": ACCOUNT}, True),
        ({"SourceArn": f"arn:aws:events:{REGION}:{ACCOUNT}:rule/*", "Action": "lambda:*"}, True),
        ({"Principal": "*", "PrincipalOrgID": "o-1234567890"}, True),
        ({"SourceArn": f"{RULE}-other"}, False),
        ({"SourceAccount": "999999999999"}, False),
        ({"Principal": "s3.amazonaws.com"}, False),
        ({"Action": "lambda:GetFunction"}, False),
    ],
)
def test_a_rule_invokes_a_function_that_permits_it(functions: Any, statement: dict[str, str], permitted: bool) -> None:
    asked = {"Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com", **statement}
    assert not permits(ARN, "events.amazonaws.com", RULE)
    functions.add_permission(FunctionName=NAME, StatementId="D", **asked)
    assert permits(ARN, "events.amazonaws.com", RULE) is permitted


def test_an_alias_permits_for_itself(functions: Any) -> None:
    permit(functions, "E", Qualifier="live")
    asked = {qualifier: permits(f"{ARN}{qualifier}", "events.amazonaws.com", RULE) for qualifier in ("", ":live", ":1")}
    assert asked == {"": False, ":live": True, ":1": False}


def test_a_function_that_does_not_exist_refuses_nothing() -> None:
    assert permits(f"{ARN}-gone", "events.amazonaws.com", RULE)
    assert permits(NAME, "events.amazonaws.com", RULE)
