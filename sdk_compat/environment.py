"""Client environment: variables and two files that point at the emulator."""

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from sdk_compat.aws_variables import assume_role, build_variables, write_profiles, write_rule_sets
from sdk_compat.sagemaker_v2 import write_config
from sdk_compat.startup.short_polls import POLL_VARIABLE, parse_poll_seconds

DEFAULT_ENDPOINT_URL = "http://127.0.0.1:4580"
DEFAULT_REGION = "us-east-1"
DEFAULT_ACCOUNT_ID = "123456789012"
DEFAULT_POLL_SECONDS = "1"
STARTUP_FOLDER = str(Path(__file__).with_name("startup"))
NODE_OPTION = f"--require {json.dumps(f'{STARTUP_FOLDER}/lead_to_emulator.cjs', ensure_ascii=False)}"
OVERRULING_VARIABLES = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_CREDENTIAL_EXPIRATION",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
)
"""Variables of the user's real AWS account, which would override the emulator's credentials and endpoint."""
REMOTE_VARIABLE, STATE_DIR_VARIABLE = "SMDEBUG_EMULATOR_REMOTE", "SMDEBUG_EMULATOR_STATE_DIR"
"""Where the emulator's own commands find it; the address overrules the folder. The emulator's commands set one."""
_ENDPOINT_OF_SERVICE = "AWS_ENDPOINT_URL_"


class EndpointError(ValueError):
    """The endpoint is not a URL that clients can use; the message is the reason."""


def default_folder(endpoint_url: str, environment: Mapping[str, str]) -> Path:
    """Return the folder of the files for this endpoint, in the user's XDG cache folder."""
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".cache")
    return Path(base) / "smdebug-emulator" / "clients" / _parse_endpoint(endpoint_url)


def list_overruling(environment: Mapping[str, str]) -> list[str]:
    """List the variables to remove: ``OVERRULING_VARIABLES``, and each service's own endpoint in an environment."""
    return [*OVERRULING_VARIABLES, *(name for name in environment if name.startswith(_ENDPOINT_OF_SERVICE))]


def prepare_environment(
    endpoint_url: str,
    environment: Mapping[str, str],
    *,
    region: str = DEFAULT_REGION,
    folder: Path | None = None,
    account_id: str | None = None,
    role_name: str | None = None,
) -> dict[str, str]:
    """Write the configuration files and return the variables that a shell, a notebook or a subprocess needs.

    Args:
        endpoint_url: the emulator's URL. The emulator only needs to be running if ``role_name`` is given.
        environment: the current environment, which is not changed.
        region: the region of clients that specify none.
        folder: the folder of the files; ``default_folder`` if None.
        account_id: the AWS account (12 digits) that signs the requests; None for the emulator's default account.
        role_name: a role that is assumed, so that ``sagemaker.get_execution_role()`` works. A missing role is created.

    Raises:
        EndpointError: ``endpoint_url`` is not usable.
        PollSecondsError: the variable in ``POLL_VARIABLE`` is not valid.
        EmulatorAnswerError: a role is given, and no emulator responds.
        OSError: the files cannot be written.
    """
    kept = folder if folder is not None else default_folder(endpoint_url, environment)
    _parse_endpoint(endpoint_url)
    models = kept / "models"
    write_rule_sets(models, endpoint_url)
    variables = build_variables(endpoint_url, region, models, environment, account_id)
    variables |= write_config(kept / "sagemaker" / "config.yaml")
    variables[POLL_VARIABLE] = _read_poll_seconds(environment)
    variables["PYTHONPATH"] = _put_first(STARTUP_FOLDER, environment.get("PYTHONPATH", ""), os.pathsep)
    if any(name.lower().endswith("_proxy") for name in environment):  # which is for the internet, not for the emulator
        variables |= _build_no_proxy(endpoint_url, environment)
    if role_name is not None:
        variables |= assume_role(endpoint_url, variables, role_name)
    return variables


def prepare_command_environment(
    endpoint_url: str,
    environment: Mapping[str, str],
    *,
    region: str | None = None,
    folder: Path | None = None,
    account_id: str | None = None,
    role_name: str | None = None,
) -> dict[str, str]:
    """Build the complete environment of a command whose AWS clients can only use the emulator.

    In addition to the variables of ``prepare_environment``, it replaces the user's AWS configuration by one with the
    same profiles and the emulator's credentials, and it sets start-up hooks that block access to AWS in Python and
    Node (see ``startup/``).

    Raises:
        EndpointError, PollSecondsError, EmulatorAnswerError, OSError: see ``prepare_environment``.
    """
    kept = folder if folder is not None else default_folder(endpoint_url, environment)
    chosen = region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    variables = prepare_environment(
        endpoint_url,
        environment,
        region=chosen or DEFAULT_REGION,
        folder=kept,
        account_id=account_id,
        role_name=role_name,
    )
    # The profiles contain the account's access key, so each account has its own file.
    variables |= write_profiles(kept / (account_id or ""), variables, environment)
    if chosen is None:  # the region of the profile is used, as without the emulator
        del variables["AWS_REGION"], variables["AWS_DEFAULT_REGION"]
    variables["SMDEBUG_EMULATOR_ONLY"] = "1"
    variables["NODE_OPTIONS"] = _put_first(NODE_OPTION, environment.get("NODE_OPTIONS", ""), " ")
    variables |= _build_no_proxy(endpoint_url, environment)
    overruling = list_overruling(environment)
    inherited = {name: value for name, value in environment.items() if name not in overruling}
    return {**inherited, **variables}


def _build_no_proxy(endpoint_url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Build the variables that let clients reach the emulator without the user's proxy."""
    host = urlsplit(endpoint_url).hostname or ""
    hosts = ",".join(dict.fromkeys(["127.0.0.1", "localhost", ".localhost", host]))
    return {name: _put_first(hosts, environment.get(name, ""), ",") for name in ("NO_PROXY", "no_proxy")}


def _read_poll_seconds(environment: Mapping[str, str]) -> str:
    """Return the user's value of the variable, or the default value.

    Raises:
        PollSecondsError: the user's value is not valid.
    """
    text = environment.get(POLL_VARIABLE) or DEFAULT_POLL_SECONDS
    parse_poll_seconds(text)
    return text


def _put_first(first: str, rest: str, separator: str) -> str:
    """Prepend an entry to a list, unless the list already starts with it, because one command may run another."""
    return rest if rest.startswith(first) else separator.join(filter(None, (first, rest)))


def format_exports(variables: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Format shell code for ``eval`` that sets ``variables`` and unsets those that would override them.

    Args:
        variables: what to set, in addition to where the emulator's own commands find it.
        environment: that of the shell, with what the command that became this process set.
    """
    place = {name: environment[name] for name in (REMOTE_VARIABLE, STATE_DIR_VARIABLE) if name in environment}
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted({**variables, **place}.items())]
    overruling = [name for name in list_overruling(environment) if name not in variables]
    overruling += [REMOTE_VARIABLE] if REMOTE_VARIABLE not in place else []
    # A shell does not know a variable that it could not name, and would fail at it.
    overruling = [name for name in overruling if name.isidentifier()]
    return "\n".join([*exports, f"unset {' '.join(overruling)}"])


def _parse_endpoint(endpoint_url: str) -> str:
    """Return ``host-port`` of an endpoint URL, followed by ``-tls`` for https.

    Raises:
        EndpointError: the URL is not usable.
    """
    try:
        parts = urlsplit(endpoint_url)
        port = parts.port
    except ValueError as error:
        raise EndpointError(f"{endpoint_url!r} is not a URL: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.rstrip("/"):
        raise EndpointError(f"{endpoint_url!r} is not an endpoint: give one like {DEFAULT_ENDPOINT_URL}.")
    encrypted = parts.scheme == "https"
    return f"{parts.hostname.replace(':', '_')}-{port or (443 if encrypted else 80)}{'-tls' if encrypted else ''}"
