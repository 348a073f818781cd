"""SageMaker Python SDK: its configuration file, and a version 2 session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sdk_compat.aws_variables import check_emulator

if TYPE_CHECKING:
    from pathlib import Path


def build_config() -> dict[str, Any]:
    """Return the SDK's configuration: no telemetry, which would go to the internet."""
    return {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}


def write_config(path: Path) -> dict[str, str]:
    """Write the configuration and return the variables that make the SDK read it.

    Version 3 asks IAM what a role may do before it uses it; the emulator asks of no role that it exists, so it is told
    not to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # JSON is YAML, so that no YAML library is needed.
    path.write_text(json.dumps(build_config(), indent=2), encoding="utf-8")
    return {"SAGEMAKER_USER_CONFIG_OVERRIDE": str(path), "SAGEMAKER_VALIDATE_ROLE": "false"}


def local_session(
    endpoint_url: str,
    region: str = "us-east-1",
    *,
    default_bucket: str | None = None,
) -> Any:
    """Return a ``sagemaker.session.Session`` that asks the emulator for everything and reads no environment.

    Args:
        endpoint_url: the emulator.
        region: of the session.
        default_bucket: made when first needed; the SDK's own name for it when None.

    Raises:
        ImportError: the SDK is not installed, or is version 3 or later; the text says what to do.
        EmulatorAnswerError: no emulator answers there.
    """
    check_emulator(endpoint_url, region)
    try:
        from sagemaker.session import Session
    except ImportError as error:
        raise ImportError(
            f"{error}: this needs version 2 of the SageMaker SDK (pip install 'sagemaker<3'). Version 3 needs none of "
            "ours: it reads the variables of smdebug-emulator env, and those that smdebug-emulator run sets."
        ) from error

    from sdk_compat.boto3_client import EmulatorSession

    return Session(
        boto_session=EmulatorSession(endpoint_url, region),
        default_bucket=default_bucket,
        sagemaker_config=build_config(),
    )
