"""Deployment of the stop handler to any endpoint, with boto3 alone."""

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

DEFAULT_NAME = "smdebug-stop-training"
_SOURCE = Path(__file__).with_name("stop_handler_function.py")
_MODULE = "stop_handler_function"
_STATEMENT_ID = "eventbridge"
_PATTERN = {"source": ["aws.sagemaker"], "detail-type": ["SageMaker Training Job State Change"]}
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}
_PERMISSIONS = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["sagemaker:StopTrainingJob"], "Resource": "*"},
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": "*",
        },
    ],
}


ClientFactory = Callable[[str], Any]
"""Creates a client of ``iam``, ``lambda`` or ``events``, as ``boto3.Session(...).client`` with an endpoint does."""


class StopHandler(NamedTuple):
    """The ARNs of the deployed resources."""

    role_arn: str
    function_arn: str
    rule_arn: str


def deploy_stop_handler(
    client: ClientFactory,
    name: str = DEFAULT_NAME,
    *,
    rule_names: Sequence[str] = (),
    job_name_prefix: str = "",
) -> StopHandler:
    """Create or update the role, function, rule, permission and target.

    Args:
        client: creates the clients.
        name: the name of the function and of the rule; the role is called ``<name>-role``.
        rule_names: rule configurations that may stop a job; empty for all.
        job_name_prefix: only jobs with this name prefix are watched.

    Raises:
        ClientError, EndpointConnectionError: a request failed.
    """
    role_arn = _put_role(client("iam"), f"{name}-role")
    environment = {"RULE_NAMES": ",".join(rule_names), "JOB_NAME_PREFIX": job_name_prefix}
    functions = client("lambda")
    function_arn = _put_function(functions, name, role_arn, environment)
    rule_arn = _put_rule(client("events"), name, function_arn, job_name_prefix)
    _put_permission(functions, name, rule_arn)
    return StopHandler(role_arn, function_arn, rule_arn)


def build_code_zip() -> bytes:
    """Build the deployment package: the handler's own source. The same source gives the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        entry = zipfile.ZipInfo(f"{_MODULE}.py", date_time=(1980, 1, 1, 0, 0, 0))
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, _SOURCE.read_text(encoding="utf-8"))
    return content.getvalue()


def _put_role(iam: Any, name: str) -> str:
    arn: str
    try:
        arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(_TRUST))["Role"]["Arn"]
    except iam.exceptions.EntityAlreadyExistsException:
        arn = iam.get_role(RoleName=name)["Role"]["Arn"]
    iam.put_role_policy(RoleName=name, PolicyName="stop-training", PolicyDocument=json.dumps(_PERMISSIONS))
    return arn


def _put_function(functions: Any, name: str, role_arn: str, environment: dict[str, str]) -> str:
    code = build_code_zip()
    configuration: dict[str, Any] = {
        "Role": role_arn,
        "Runtime": "python3.11",
        "Handler": f"{_MODULE}.lambda_handler",
        "Timeout": 30,
        "MemorySize": 256,
        "Environment": {"Variables": environment},
    }
    try:
        created = functions.create_function(FunctionName=name, Code={"ZipFile": code}, **configuration)
        return str(created["FunctionArn"])
    except functions.exceptions.ResourceConflictException:
        pass
    functions.update_function_code(FunctionName=name, ZipFile=code)
    functions.get_waiter("function_updated_v2").wait(FunctionName=name)
    return str(functions.update_function_configuration(FunctionName=name, **configuration)["FunctionArn"])


def _put_rule(events: Any, name: str, function_arn: str, job_name_prefix: str) -> str:
    pattern: dict[str, Any] = dict(_PATTERN)
    if job_name_prefix:
        pattern["detail"] = {"TrainingJobName": [{"prefix": job_name_prefix}]}
    arn: str = events.put_rule(
        Name=name,
        EventPattern=json.dumps(pattern),
        State="ENABLED",
        Description="Stops a training job when one of its debugger rules has found an issue.",
    )["RuleArn"]
    answer = events.put_targets(Rule=name, Targets=[{"Id": name, "Arn": function_arn}])
    if answer["FailedEntryCount"]:
        raise RuntimeError(f"The rule {name} did not take the function as its target: {answer['FailedEntries']}")
    return arn


def _put_permission(functions: Any, name: str, rule_arn: str) -> None:
    # First check for the permission of an earlier deployment: not every Lambda refuses a duplicate statement.
    try:
        policy = json.loads(functions.get_policy(FunctionName=name)["Policy"])
    except functions.exceptions.ResourceNotFoundException:
        policy = {"Statement": []}
    if not any(statement.get("Sid") == _STATEMENT_ID for statement in policy["Statement"]):
        with suppress(functions.exceptions.ResourceConflictException):  # another deployment was faster
            functions.add_permission(
                FunctionName=name,
                StatementId=_STATEMENT_ID,
                Action="lambda:InvokeFunction",
                Principal="events.amazonaws.com",
                SourceArn=rule_arn,
            )
