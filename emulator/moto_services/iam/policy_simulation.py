"""IAM policy simulation: SimulatePrincipalPolicy and SimulateCustomPolicy.

moto has neither.

A principal's policies are evaluated as in moto's own access control: a Deny has precedence over an Allow, and actions
that no policy allows are denied. The simulation ignores conditions, permissions boundaries and resource policies.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.iam.conditions import conditions_hold, is_operator
from emulator.moto_services.replacements import replaced

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
    statements = (statement for document in documents for statement in list_statements(json.loads(document)))
    return judge_statements(statements, action, resource, lambda each: context is None or _holds(each, context))


def list_statements(document: Mapping[str, Any]) -> list[Any]:
    """List the statements of a policy, which may be a single one."""
    return _as_list(document.get("Statement", []))


def judge_statements(
    statements: Iterable[Mapping[str, Any]], action: str, resource: str, holds: Callable[[Mapping[str, Any]], bool]
) -> str:
    """Evaluate statements as ``judge`` does documents; ``holds`` tells whether the conditions of one hold."""
    decision = "implicitDeny"
    for statement in statements:
        if (
            _fits(statement, "Action", action, re.IGNORECASE)
            and _fits(statement, "Resource", resource, 0)
            and holds(statement)
        ):
            if statement.get("Effect") == "Deny":
                return "explicitDeny"
            decision = "allowed"
    return decision


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _fits(statement: Mapping[str, Any], member: str, name: str, flags: int) -> bool:
    for key, wanted in ((member, True), (f"Not{member}", False)):
        if key in statement:
            return any(_as_expression(each, flags).fullmatch(name) for each in _as_list(statement[key])) is wanted
    return True  # a trust or key policy names no resource


def _holds(statement: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    """Return whether a statement's conditions hold.

    If this is unknown, the result is the safe one: a Deny statement applies, and an Allow statement does not.
    """
    conditions = statement.get("Condition", {})
    tests = [(name, key, wanted) for name, keys in conditions.items() for key, wanted in keys.items()]
    known = [test for test in tests if not _is_unknown(test[0], test[1].lower(), context)]
    if len(known) < len(tests) and statement.get("Effect") != "Deny":
        return False
    find = {key: [value] for key, value in context.items()}.get
    return all(conditions_hold({name: {key: wanted}}, find) for name, key, wanted in known)


def _is_unknown(name: str, key: str, context: Mapping[str, str]) -> bool:
    if not is_operator(name):
        return True
    # Without the key, operators with IfExists hold. Negated ones hold, too, because an absent key equals no value; not
    # with ForAnyValue, which needs a value.
    holds_without = name.endswith("IfExists") or ("Not" in name and not name.startswith("ForAnyValue:"))
    # Requests to S3 have keys that are not known here, such as s3:x-amz-acl.
    is_absent = key in _OPTIONAL_KEYS or (holds_without and not key.startswith("s3:"))
    return not (key in context or is_absent)


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
