"""IAM policy simulation: SimulatePrincipalPolicy and SimulateCustomPolicy.

moto has neither.

A principal's policies are evaluated as in moto's own access control: a Deny has precedence over an Allow, and actions
that no policy allows are denied. The simulation ignores conditions, permissions boundaries and resource policies.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced

# The supported condition operators, without Not and IfExists.
_OPERATORS = frozenset({"StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike", "Bool"})
# Keys that a request may lack. If such a key is absent, a condition on it does not hold.
_OPTIONAL_KEYS = frozenset({"s3:prefix", "s3:delimiter", "s3:max-keys"})
_ARN = re.compile(r"arn:[\w-]+:iam::\d{12}:(?P<kind>role|user|group)/(?:.*/)?(?P<name>[^/]+)")


def simulating_policies() -> AbstractContextManager[None]:
    """Add both operations to moto's IAM."""
    from moto.iam.responses import IamResponse

    return replaced(
        IamResponse,
        simulate_principal_policy=simulate_principal_policy,
        simulate_custom_policy=simulate_custom_policy,
    )


def simulate_principal_policy(response: Any) -> Any:
    """Implement SimulatePrincipalPolicy.

    Raises:
        ValidationError: the ARN is not the ARN of a role, a user or a group.
        NotFoundException: the principal does not exist.
    """
    from moto.core.responses import ActionResult
    from moto.iam.exceptions import NotFoundException, ValidationError

    arn = response._get_param("PolicySourceArn") or ""  # noqa: SLF001 -- moto's only reader of it
    found = _ARN.fullmatch(arn)
    if found is None:
        raise ValidationError(f"Invalid Entity Arn: {arn} does not clearly define entity type and name.")
    owner = _find_principal(response.backend, found["kind"], arn)
    if owner is None:
        raise NotFoundException(f"The {found['kind']} with name {found['name']} cannot be found.")
    documents = list(list_documents(response.backend, found["kind"], owner))
    return ActionResult(_simulate(response, [*documents, *_list_given(response)]))


def simulate_custom_policy(response: Any) -> Any:
    """Implement SimulateCustomPolicy."""
    from moto.core.responses import ActionResult

    return ActionResult(_simulate(response, _list_given(response)))


def judge(documents: Iterable[str], action: str, resource: str, context: Mapping[str, str] | None = None) -> str:
    """Evaluate policy documents for one action on one resource.

    Args:
        documents: the policies.
        action: the action, such as ``s3:GetObject``.
        resource: the resource's ARN.
        context: the values of condition keys, whose names are in lower case. If it is None, conditions are ignored.

    Returns:
        IAM's name of the decision: ``allowed``, ``explicitDeny`` or ``implicitDeny``.
    """
    decision = "implicitDeny"
    for document in documents:
        statements = json.loads(document).get("Statement", [])
        for statement in statements if isinstance(statements, list) else [statements]:
            if _fits(statement, "Action", action, re.IGNORECASE) and _fits(statement, "Resource", resource, 0):
                if context is not None and not _holds(statement, context):
                    continue
                if statement.get("Effect") == "Deny":
                    return "explicitDeny"
                decision = "allowed"
    return decision


def _fits(statement: dict[str, Any], member: str, name: str, flags: int) -> bool:
    for key, wanted in ((member, True), (f"Not{member}", False)):
        if key in statement:
            patterns = statement[key] if isinstance(statement[key], list) else [statement[key]]
            return any(_as_expression(pattern, flags).fullmatch(name) for pattern in patterns) is wanted
    return True  # a trust or key policy names no resource


def _holds(statement: dict[str, Any], context: Mapping[str, str]) -> bool:
    """Return whether a statement's conditions hold.

    If this is unknown, the result is the safe one: a Deny statement applies, and an Allow statement does not.
    """
    denies = statement.get("Effect") == "Deny"
    for operator, wanted in statement.get("Condition", {}).items():
        base, if_exists = operator.removesuffix("IfExists"), operator.endswith("IfExists")
        positive, like = base.replace("Not", "", 1), "Like" in base or base.startswith("Arn")
        for key, values in wanted.items():
            if positive not in _OPERATORS:
                return denies
            value = context.get(key.lower())
            if value is None:
                # An absent key equals no value, so negated operators hold. Operators with IfExists hold as well.
                if not if_exists and positive == base:
                    return denies if key.lower() not in _OPTIONAL_KEYS else False
                continue
            patterns = [str(each) for each in (values if isinstance(values, list) else [values])]
            flags = re.IGNORECASE if base.endswith("IgnoreCase") or base == "Bool" else 0
            same = any(
                _as_expression(each, flags).fullmatch(value) if like else _is_same(each, value, flags)
                for each in patterns
            )
            if same is (positive != base):
                return False
    return True


def _is_same(wanted: str, value: str, flags: int) -> bool:
    return wanted.lower() == value.lower() if flags else wanted == value


def _as_expression(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern), flags)


def _simulate(response: Any, documents: Sequence[str]) -> dict[str, Any]:
    actions = response._get_param("ActionNames", [])  # noqa: SLF001
    resources = response._get_param("ResourceArns") or ["*"]  # noqa: SLF001
    results = [
        {
            "EvalActionName": action,
            "EvalResourceName": resource,
            "EvalDecision": judge(documents, action, resource),
            "MatchedStatements": [],
            "MissingContextValues": [],
        }
        for action in actions
        for resource in resources
    ]
    return {"EvaluationResults": results, "IsTruncated": False}


def _list_given(response: Any) -> list[str]:
    from moto.iam.policy_validation import IAMPolicyDocumentValidator

    given: list[str] = response._get_param("PolicyInputList", [])  # noqa: SLF001
    for document in given:
        IAMPolicyDocumentValidator(document).validate()
    return given


def _find_principal(backend: Any, kind: str, arn: str) -> Any:
    owners = {"role": backend.roles, "user": backend.users, "group": backend.groups}[kind]
    return next((owner for owner in owners.values() if owner.arn == arn), None)


def list_documents(backend: Any, kind: str, owner: Any) -> Iterable[str]:
    """List the policy documents of a user, a role or a group.

    They include inline policies, attached policies, and the policies of a user's groups.
    """
    yield from (str(document) for document in owner.policies.values())
    for policy in owner.managed_policies.values():
        yield next(each.document for each in policy.versions if each.version_id == policy.default_version_id)
    if kind == "user":
        for group in backend.get_groups_for_user(owner.name):
            yield from list_documents(backend, "group", group)
