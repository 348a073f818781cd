"""Removal of a deployed stop handler from any endpoint, with boto3 alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.stop_handler.deployment import ClientFactory


def remove_stop_handler(client: ClientFactory, name: str) -> list[str]:
    """Remove rule, function and role of a stop handler; return which of these there were.

    The rule goes first: no event invokes a function that is gone. An interrupted removal can be repeated.

    Raises:
        ClientError, EndpointConnectionError: a request failed.
    """
    found = {
        "rule": _remove_rule(client("events"), name),
        "function": _remove_function(client("lambda"), name),
        "role": _remove_role(client("iam"), f"{name}-role"),
    }
    return [kind for kind, was_there in found.items() if was_there]


def _remove_rule(events: Any, name: str) -> bool:
    try:
        targets = events.list_targets_by_rule(Rule=name)["Targets"]
        if targets:
            events.remove_targets(Rule=name, Ids=[target["Id"] for target in targets])
    except events.exceptions.ResourceNotFoundException:
        return False
    events.delete_rule(Name=name)
    return True


def _remove_function(functions: Any, name: str) -> bool:
    try:
        functions.delete_function(FunctionName=name)
    except functions.exceptions.ResourceNotFoundException:
        return False
    return True


def _remove_role(iam: Any, name: str) -> bool:
    try:
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
            iam.delete_role_policy(RoleName=name, PolicyName=policy)
        iam.delete_role(RoleName=name)
    except iam.exceptions.NoSuchEntityException:
        return False
    return True
