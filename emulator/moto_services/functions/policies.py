"""Resource policies of Lambda functions, one for each version and alias."""

import json
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import unquote

from emulator.exceptions import AwsError
from emulator.moto_services.functions.backend import read_qualifier
from emulator.moto_services.iam.conditions import UnknowableKeyError, conditions_hold
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import reading

_INVOKING = ("lambda:InvokeFunction", "lambda:*", "*")


def keeping_policies_apart() -> AbstractContextManager[None]:
    """Let AddPermission, GetPolicy and RemovePermission see only statements of the qualifier that they name."""
    from moto.awslambda.responses import LambdaResponse

    return replaced(LambdaResponse, get_policy=_get, add_permission=_add, remove_permission=_remove)


def permits(function_arn: str, service: str, source_arn: str) -> bool:
    """Return whether the policy of a function lets a service invoke it. A function that does not exist permits all.

    Args:
        function_arn: with the version or alias, if the service invokes one.
        service: the service, such as ``events.amazonaws.com``.
        source_arn: the service's resource that invokes the function, such as a rule.
    """
    from moto.awslambda.exceptions import UnknownFunctionException
    from moto.awslambda.models import lambda_backends

    parts = function_arn.split(":")
    if len(parts) < 7:
        return True
    qualifier = read_qualifier(function_arn)
    if qualifier == "$LATEST":  # no policy can name it
        qualifier = None
    with reading(), service_lock("awslambda"):
        try:
            function = lambda_backends[parts[4]][parts[3]].get_function(parts[6], qualifier)
        except (KeyError, ValueError, UnknownFunctionException):
            return True
        return any(_allows(each, service, source_arn) for each in _list_statements(function, qualifier))


def _allows(statement: dict[str, Any], service: str, source_arn: str) -> bool:
    """Return whether a statement lets a service invoke its function, or may do so by a condition on something else."""
    principal = statement.get("Principal")
    if statement.get("Action") not in _INVOKING or principal not in ("*", {"Service": service}):
        return False
    known = {"aws:sourcearn": [source_arn], "aws:sourceaccount": [source_arn.split(":")[4]]}

    def find_values(key: str) -> list[str]:
        if key not in known:
            raise UnknowableKeyError(key)
        return known[key]

    try:
        return conditions_hold(statement.get("Condition") or {}, find_values)
    except UnknowableKeyError:
        return True


def _find(response: Any, position: int) -> tuple[Any, str | None, list[dict[str, Any]]]:
    """Find the function of a request, the qualifier, and the statements that apply to it."""
    name = unquote(response.path.split("/")[position])
    qualifier: str | None = response.querystring.get("Qualifier", [None])[0]
    if qualifier is None:
        qualifier = read_qualifier(name)
    function = response.backend.get_function(name, qualifier)
    return function, qualifier, _list_statements(function, qualifier)


def _list_statements(function: Any, qualifier: str | None) -> list[dict[str, Any]]:
    return [each for each in function.policy.statements if read_qualifier(each.get("Resource", "")) == qualifier]


def _refuse(text: str) -> AwsError:
    return AwsError(text, code="ResourceNotFoundException", status=404)


def _get(response: Any) -> str:
    function, _, statements = _find(response, -2)
    if not statements:
        raise _refuse("The resource you requested does not exist.")
    document = {"Version": "2012-10-17", "Id": "default", "Statement": statements}
    return json.dumps({"Policy": json.dumps(document), "RevisionId": function.policy.revision})


def _add(response: Any) -> str:
    function, qualifier, statements = _find(response, -2)
    sid = json.loads(response.body).get("StatementId")
    if any(each["Sid"] == sid for each in statements):
        raise AwsError(
            f"The statement id ({sid}) provided already exists. Please provide a new statement id, or remove the "
            "existing statement.",
            code="ResourceConflictException",
            status=409,
        )
    statement, _ = function.policy.add_statement(response.body, qualifier)
    return json.dumps({"Statement": json.dumps(statement)})


def _remove(response: Any) -> tuple[int, dict[str, int], str]:
    function, _, statements = _find(response, -3)
    sid = unquote(response.path.split("/")[-1].partition("?")[0])
    found = next((each for each in statements if each["Sid"] == sid), None)
    if found is None:
        raise _refuse(f"Statement {sid} is not found in resource policy.")
    policy, revision = function.policy, response.querystring.get("RevisionId", [""])[0]
    if revision and revision != policy.revision:
        text = "The RevisionId provided does not match the latest RevisionId for the Lambda function or alias."
        raise AwsError(text, code="PreconditionFailedException", status=412)
    # By identity: two qualifiers may have the same Sid.
    policy.statements = [each for each in policy.statements if each is not found]
    return 204, {"status": 204}, ""
