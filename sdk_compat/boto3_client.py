"""boto3, botocore and the AWS CLI: what they read from the environment, and a session for code that is ours.

``AWS_ENDPOINT_URL`` moves every client that names no endpoint of its own. The SageMaker SDK names one: it makes its STS
clients with ``https://sts.<region>.amazonaws.com``. botocore asks a service's endpoint rule set about an explicit
endpoint too, and reads rule sets from the folders in ``AWS_DATA_PATH`` first. The one written here sends AWS's own STS
addresses to the emulator and leaves every other explicit endpoint as it is.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import boto3
from botocore.loaders import Loader
from botocore.session import Session as BotocoreSession

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Good for nothing but the emulator, which reads signatures and does not check them.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "smdebug-emulator", "AWS_SECRET_ACCESS_KEY": "smdebug-emulator"}
_STS_RULE_SET = ("sts", "2011-06-15", "endpoint-rule-set-1.json")
# AWS_PROFILE may name a profile that is not here; its credentials and region would not be used anyway.
_NO_PROFILE: Any = {"profile": (None, None, None, None)}
_AWS_HOST = re.compile(r"(^|\.)amazonaws\.com(\.cn)?$")


def build_variables(endpoint_url: str, region: str, models: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that boto3, botocore and the AWS CLI read.

    Args:
        endpoint_url: the emulator.
        region: of clients that name none.
        models: the folder that ``write_sts_rule_set`` filled.
        environment: the present environment, whose AWS_DATA_PATH is kept.
    """
    others = [path for path in environment.get("AWS_DATA_PATH", "").split(os.pathsep) if path and path != str(models)]
    return {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
        "AWS_DATA_PATH": os.pathsep.join([str(models), *others]),
        "AWS_DEFAULT_REGION": region,
        "AWS_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        **CREDENTIALS,
    }


def build_sts_rule_set(endpoint_url: str) -> dict[str, Any]:
    """Endpoint rules for STS: botocore's own rule set with other rules, which read the same parameters."""
    endpoint_is_set = {"fn": "isSet", "argv": [{"ref": "Endpoint"}]}
    emulator = {"url": endpoint_url, "properties": {}, "headers": {}}
    aws_addresses = (
        "https://sts.{Region}.amazonaws.com",
        "https://sts.{Region}.amazonaws.com.cn",
        "https://sts-fips.{Region}.amazonaws.com",
        "https://sts.amazonaws.com",
    )
    rules: list[dict[str, Any]] = [
        {
            "conditions": [
                endpoint_is_set,
                {"fn": "isSet", "argv": [{"ref": "Region"}]},
                {"fn": "stringEquals", "argv": [{"ref": "Endpoint"}, address]},
            ],
            "endpoint": emulator,
            "type": "endpoint",
        }
        for address in aws_addresses
    ]
    as_named = {"url": {"ref": "Endpoint"}, "properties": {}, "headers": {}}
    rules.append({"conditions": [endpoint_is_set], "endpoint": as_named, "type": "endpoint"})
    rules.append({"conditions": [], "endpoint": emulator, "type": "endpoint"})
    return {**Loader().load_service_model("sts", "endpoint-rule-set-1"), "rules": rules}


def write_sts_rule_set(models: Path, endpoint_url: str) -> None:
    """Write the rule set where botocore looks for it when ``models`` is in AWS_DATA_PATH."""
    path = models.joinpath(*_STS_RULE_SET)
    path.parent.mkdir(parents=True, exist_ok=True)
    # In one step: another shell may be reading it.
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(build_sts_rule_set(endpoint_url), indent=1), encoding="utf-8")
    fresh.replace(path)


class EmulatorSession(boto3.Session):
    """A boto3 session whose clients all go to the emulator, whatever the environment says."""

    def __init__(self, endpoint_url: str, region: str = "us-east-1") -> None:
        super().__init__(
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region_name=region,
            botocore_session=BotocoreSession(session_vars=_NO_PROFILE),
        )
        self._endpoint_url = endpoint_url

    def client(self, *args: Any, **options: Any) -> Any:
        """Make a client; an explicit endpoint of AWS's own is replaced, any other is kept."""
        return cast("Any", super().client)(*args, **self._redirect(options))

    def resource(self, *args: Any, **options: Any) -> Any:
        """Make a resource; see ``client``."""
        return cast("Any", super().resource)(*args, **self._redirect(options))

    def _redirect(self, options: dict[str, Any]) -> dict[str, Any]:
        named = options.get("endpoint_url")
        if named and not _AWS_HOST.search(urlsplit(named).hostname or ""):
            return options
        return {**options, "endpoint_url": self._endpoint_url}


def assume_role(endpoint_url: str, region: str, role_name: str) -> dict[str, str]:
    """Variables with the credentials of an assumed role, made if it is missing.

    With them, ``sagemaker.get_execution_role()`` finds a role. The emulator forgets them when it ends.

    Raises:
        ClientError, EndpointConnectionError: as botocore says it.
    """
    session = EmulatorSession(endpoint_url, region)
    iam = session.client("iam")
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"},
        ],
    }
    try:
        role = iam.create_role(RoleName=role_name, AssumeRolePolicyDocument=json.dumps(trust))["Role"]
    except iam.exceptions.EntityAlreadyExistsException:
        role = iam.get_role(RoleName=role_name)["Role"]
    given = session.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="SageMaker")["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }
