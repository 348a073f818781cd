"""The environment in which unmodified client code meets the emulator: variables, and the two files they point to."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sdk_compat.boto3_client import assume_role, build_variables, write_sts_rule_set
from sdk_compat.sagemaker_v2 import default_bucket_name, write_config

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_ENDPOINT_URL = "http://127.0.0.1:4580"
DEFAULT_REGION = "us-east-1"
DEFAULT_ACCOUNT_ID = "123456789012"
OVERRULING_VARIABLES = ("AWS_PROFILE", "AWS_SESSION_TOKEN")
"""A profile or a token of the user's real account, which clients would put beside the emulator's credentials."""


class EndpointError(ValueError):
    """The endpoint is no URL that clients can use; the text says what is wrong."""


def default_folder(endpoint_url: str, environment: Mapping[str, str]) -> Path:
    """Where the files for this endpoint are kept: below the XDG cache folder."""
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".cache")
    return Path(base) / "smdebug-emulator" / "clients" / _parse_endpoint(endpoint_url)


def prepare_environment(
    endpoint_url: str,
    environment: Mapping[str, str],
    *,
    region: str = DEFAULT_REGION,
    account_id: str = DEFAULT_ACCOUNT_ID,
    folder: Path | None = None,
    role_name: str | None = None,
) -> dict[str, str]:
    """Write the files and return the variables that a shell, a notebook or a subprocess needs.

    Args:
        endpoint_url: the emulator; it need not run yet, unless there is a role.
        environment: the present environment; it is not changed.
        region: of clients that name none.
        account_id: the emulator's.
        folder: for the files; ``default_folder`` when None.
        role_name: sign as this role, which is made if missing, so that ``sagemaker.get_execution_role()`` works.

    Raises:
        EndpointError, OSError, ClientError, EndpointConnectionError.
    """
    kept = folder if folder is not None else default_folder(endpoint_url, environment)
    _parse_endpoint(endpoint_url)
    models = kept / "models"
    write_sts_rule_set(models, endpoint_url)
    variables = build_variables(endpoint_url, region, models, environment)
    variables |= write_config(kept / "sagemaker" / "config.yaml", default_bucket_name(region, account_id))
    if role_name is not None:
        variables |= assume_role(endpoint_url, region, role_name)
    return variables


def format_exports(variables: Mapping[str, str]) -> str:
    """Shell code for ``eval``: sets ``variables`` and takes away those that would win over them."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    overruling = [name for name in OVERRULING_VARIABLES if name not in variables]
    return "\n".join([*exports, f"unset {' '.join(overruling)}"])


def _parse_endpoint(endpoint_url: str) -> str:
    """``host-port`` of a usable endpoint."""
    try:
        parts = urlsplit(endpoint_url)
        port = parts.port
    except ValueError as error:
        raise EndpointError(f"{endpoint_url!r} is no URL: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.rstrip("/"):
        raise EndpointError(f"{endpoint_url!r} is no endpoint: give one like {DEFAULT_ENDPOINT_URL}.")
    return f"{parts.hostname.replace(':', '_')}-{port or {'http': 80, 'https': 443}[parts.scheme]}"
