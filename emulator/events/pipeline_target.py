"""SageMaker pipelines as targets of EventBridge rules."""

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from emulator.events.target_input import read_path
from emulator.exceptions import TargetError, TargetGoneError, TargetInputError
from emulator.moto_services.eventbridge.rules import Target
from emulator.settings import Settings

_SESSION_SECONDS = 3600


def start_pipeline(settings: Settings, target: Target, event: Mapping[str, Any]) -> None:
    """Start an execution of the pipeline that ``target`` names, with its SageMakerPipelineParameters.

    An event that is delivered again starts no second execution.

    Raises:
        TargetGoneError: the pipeline does not exist.
        TargetError: the request is refused.
        TargetInputError: a parameter's path cannot be read.
    """
    from botocore.exceptions import ClientError

    parameters = target.parameters.get("SageMakerPipelineParameters", {}).get("PipelineParameterList", [])
    token = sha256("\n".join((str(event["id"]), target.rule_arn, target.target_id)).encode()).hexdigest()
    try:
        _connect(settings, target).start_pipeline_execution(
            PipelineName=target.arn.rpartition("/")[2],
            ClientRequestToken=token,
            PipelineParameters=[{"Name": each["Name"], "Value": _read_value(each, event)} for each in parameters],
        )
    except ClientError as error:
        found = error.response["Error"]
        if found["Code"] == "ResourceNotFound":
            raise TargetGoneError(f"{found['Message']} Create it or remove the target {target.arn}.") from None
        if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
            raise TargetError(f"{target.arn} could not be started: {found['Message']}") from error
        raise


def _read_value(parameter: Mapping[str, str], event: Mapping[str, Any]) -> str:
    """Return a parameter's value; one that is a JSON path is read from the event."""
    value = parameter["Value"]
    if not value.startswith("$."):
        return value
    found = read_path(event, value)
    if found is None:
        raise TargetInputError(f"The event has nothing at {value}, the value of the parameter {parameter['Name']}.")
    return found if isinstance(found, str) else json.dumps(found)


def _connect(settings: Settings, target: Target) -> Any:
    import boto3

    settings = replace(settings, account_id=target.account)
    role = target.parameters.get("RoleArn")
    credentials = (
        settings.issue_credentials(role, "EventBridge", _SESSION_SECONDS) if role else settings.container_credentials
    )
    make: Any = boto3.client
    return make(
        "sagemaker",
        endpoint_url=settings.endpoint_url,
        verify=None if settings.ca_bundle is None else str(settings.ca_bundle),
        region_name=target.arn.split(":")[3],
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials.get("AWS_SESSION_TOKEN"),
    )
