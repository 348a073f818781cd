"""SageMaker Python SDK: its configuration file, and a version 2 session."""

import json
from pathlib import Path
from typing import Any

from sdk_compat.aws_variables import check_emulator, write_whole


def build_config() -> dict[str, Any]:
    """Build the SDK's configuration. It turns off telemetry, which would access the internet."""
    return {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}


def write_config(path: Path) -> dict[str, str]:
    """Write the configuration and return the variables that make the SDK read it.

    They also turn off the role validation of version 3, which checks a role's permissions in IAM before using it. The
    emulator does not require that a role exists.
    """
    # JSON is valid YAML, so no YAML library is needed.
    write_whole(path, json.dumps(build_config(), indent=2))
    return {"SAGEMAKER_USER_CONFIG_OVERRIDE": str(path), "SAGEMAKER_VALIDATE_ROLE": "false"}


def local_session(
    endpoint_url: str,
    region: str = "us-east-1",
    *,
    default_bucket: str | None = None,
) -> Any:
    """Create a ``sagemaker.session.Session`` that uses only the emulator, whatever the environment variables are.

    Args:
        endpoint_url: the emulator's URL.
        region: the session's region.
        default_bucket: the name of the default bucket, which is created when first needed; the SDK's default if None.

    Raises:
        ImportError: the SDK is not installed, or is version 3 or later; the message says what to do.
        EmulatorAnswerError: no emulator responds at the endpoint.
    """
    check_emulator(endpoint_url, region)
    try:
        from sagemaker.session import Session
    except ImportError as error:
        raise ImportError(
            f"{error}: this needs version 2 of the SageMaker SDK (pip install 'sagemaker<3'). Version 3 needs none of "
            "ours: it reads the variables of smdebug-emulator env, and those that smdebug-emulator run sets."
        ) from error

    return build_session(Session, endpoint_url, region, default_bucket)


def build_session(session_class: Any, endpoint_url: str, region: str, default_bucket: str | None) -> Any:
    """Build a session of the class that this version of the SDK has."""
    from sdk_compat.boto3_client import EmulatorSession

    return session_class(
        boto_session=EmulatorSession(endpoint_url, region),
        default_bucket=default_bucket,
        sagemaker_config=build_config(),
    )
