"""Environment variables and files for boto3, botocore and the AWS CLI.

``AWS_ENDPOINT_URL`` redirects every client that is created without an explicit endpoint. Some clients have one: the
SageMaker SDK creates its STS clients with ``https://sts.<region>.amazonaws.com``, and version 1 of the AWS CLI uses the
former hosts of some services, such as ``https://queue.amazonaws.com``. botocore passes explicit endpoints through the
service's endpoint rule set too, and it reads rule sets from the folders in ``AWS_DATA_PATH`` first. The rule sets
written here redirect AWS's own hosts of these services to the emulator, and keep all other explicit endpoints.
"""

from __future__ import annotations

import json
import os
import re
from configparser import Error as ConfigError
from configparser import RawConfigParser
from hashlib import sha256
from hmac import digest
from pathlib import Path
from socket import create_connection
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

# The default secret is not secret: by default, the emulator reads signatures but does not check them. If the emulator
# requires valid signatures, this variable contains the secret key. The emulator's commands set it.
SECRET_VARIABLE = "SMDEBUG_EMULATOR_SECRET"  # noqa: S105 - its name
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "smdebug-emulator",
    "AWS_SECRET_ACCESS_KEY": os.environ.get(SECRET_VARIABLE, "smdebug-emulator"),
}
CA_VARIABLE = "AWS_CA_BUNDLE"
"""The path of the CA certificates that boto3 and the AWS CLI trust. The emulator's commands set it."""
_ANSWER_SECONDS = 60.0
EXPLICIT_ENDPOINTS = {
    "docdb": "2014-10-31",
    "emr": "2009-03-31",
    "health": "2016-08-04",
    "neptune": "2014-10-31",
    "rds": "2014-10-31",
    "sqs": "2012-11-05",
    "sts": "2011-06-15",
}
"""The services whose clients may be created with an explicit AWS endpoint, and their API versions."""
_RULE_SET = "endpoint-rule-set-1"
# A role of this tag does not mean that jobs need roles that exist.
_ROLE_TAG = {"Tags.member.1.Key": "MadeBy", "Tags.member.1.Value": "smdebug-emulator"}
_AWS_SUFFIXES = (".amazonaws.com", ".amazonaws.com.cn", ".sc2s.sgov.gov")


def build_variables(
    endpoint_url: str, region: str, models: Path, environment: Mapping[str, str], account_id: str | None = None
) -> dict[str, str]:
    """Build the variables that boto3, botocore and the AWS CLI read.

    Args:
        endpoint_url: the emulator's URL.
        region: the region of clients that specify none.
        models: the folder that ``write_rule_sets`` wrote to.
        environment: the current environment, whose AWS_DATA_PATH is kept.
        account_id: the AWS account that signs the requests; None for the emulator's default account.
    """
    others = [path for path in environment.get("AWS_DATA_PATH", "").split(os.pathsep) if path and path != str(models)]
    return {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
        "AWS_DATA_PATH": os.pathsep.join([str(models), *others]),
        "AWS_DEFAULT_REGION": region,
        "AWS_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        # Otherwise, clients would add prefixes to the host, such as sync-127.0.0.1, which does not exist.
        "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
        **CREDENTIALS,
        **({"AWS_ACCESS_KEY_ID": account_id} if account_id else {}),
        **_build_trust(endpoint_url, environment),
    }


def _build_trust(endpoint_url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Build the variables for boto3 and Node that name the trusted CA certificates; empty without TLS."""
    bundle = environment.get(CA_VARIABLE)
    if not bundle or not endpoint_url.startswith("https:"):
        return {}
    return {CA_VARIABLE: bundle, "NODE_EXTRA_CA_CERTS": bundle}


def _build_rules(endpoint_url: str) -> list[dict[str, Any]]:
    endpoint_is_set = {"fn": "isSet", "argv": [{"ref": "Endpoint"}]}
    emulator = {"url": endpoint_url, "properties": {}, "headers": {}}
    rules: list[dict[str, Any]] = [
        {
            "conditions": [
                endpoint_is_set,
                {"fn": "substring", "argv": [{"ref": "Endpoint"}, 0, len(suffix), True], "assign": "suffix"},
                {"fn": "stringEquals", "argv": [{"ref": "suffix"}, suffix]},
            ],
            "endpoint": emulator,
            "type": "endpoint",
        }
        for suffix in _AWS_SUFFIXES
    ]
    as_named = {"url": {"ref": "Endpoint"}, "properties": {}, "headers": {}}
    rules.append({"conditions": [endpoint_is_set], "endpoint": as_named, "type": "endpoint"})
    rules.append({"conditions": [], "endpoint": emulator, "type": "endpoint"})
    return rules


def write_rule_sets(models: Path, endpoint_url: str) -> None:
    """Write the rule sets to the paths from which botocore loads them if ``models`` is in AWS_DATA_PATH.

    They are botocore's with other rules. Files that have these rules already are kept.
    """
    rules = _build_rules(endpoint_url)
    for service, version in EXPLICIT_ENDPOINTS.items():
        path = models / service / version / f"{_RULE_SET}.json"
        if _read_rules(path) != rules:  # or they are another version's
            from botocore.loaders import Loader  # slow to import, and needed only once for an endpoint

            loader = Loader()
            # What `load_service_model` does, but for a look into the folders of all services.
            latest = loader.determine_latest_version(service, _RULE_SET)
            rule_set = {**loader.load_data(f"{service}/{latest}/{_RULE_SET}"), "rules": rules}
            write_whole(path, json.dumps(rule_set, indent=1))


def _read_rules(path: Path) -> Any:
    """Read the rules of a rule set that was written before; None if there is none, or it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["rules"]
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return None


class EmulatorAnswerError(Exception):
    """The emulator did not respond, or another program did; the message says what to do."""


class NoAnswerError(EmulatorAnswerError):
    """Nothing responds at the endpoint."""


def check_emulator(endpoint_url: str, region: str) -> None:
    """Check that an emulator responds at the endpoint, by calling GetCallerIdentity.

    Without this check, a session for a wrong endpoint would fail later, with a less helpful error.

    Raises:
        EmulatorAnswerError: no emulator responded.
    """
    signer = {**CREDENTIALS, "AWS_REGION": region}
    answer = _ask(endpoint_url, signer, "sts", {"Action": "GetCallerIdentity", "Version": "2011-06-15"})
    _read_element(answer, "Account", endpoint_url)


def assume_role(endpoint_url: str, signer: Mapping[str, str], role_name: str) -> dict[str, str]:
    """Assume a role and return the variables with its credentials. A missing role is created.

    With these credentials, ``sagemaker.get_execution_role()`` finds a role. They are valid until the emulator ends.

    Args:
        endpoint_url: the emulator's URL.
        signer: the variables of ``build_variables``. The role belongs to their account, and the certificates that
            they name are trusted.
        role_name: the role's name.

    Raises:
        EmulatorAnswerError: no emulator responded.
    """
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"},
        ],
    }
    named = {"RoleName": role_name, "Version": "2010-05-08"}
    found = _ask(endpoint_url, signer, "iam", {"Action": "GetRole", **named})
    if "<Code>NoSuchEntity</Code>" in found:
        policy = {"AssumeRolePolicyDocument": json.dumps(trust), **_ROLE_TAG}
        found = _ask(endpoint_url, signer, "iam", {"Action": "CreateRole", **named, **policy})
        if "<Code>EntityAlreadyExists</Code>" in found:  # another command has just created it
            found = _ask(endpoint_url, signer, "iam", {"Action": "GetRole", **named})
    arn = _read_element(found, "Arn", endpoint_url)
    assumed = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": arn, "RoleSessionName": "SageMaker"}
    given = _ask(endpoint_url, signer, "sts", assumed)
    return {
        "AWS_ACCESS_KEY_ID": _read_element(given, "AccessKeyId", endpoint_url),
        "AWS_SECRET_ACCESS_KEY": _read_element(given, "SecretAccessKey", endpoint_url),
        "AWS_SESSION_TOKEN": _read_element(given, "SessionToken", endpoint_url),
    }


def write_profiles(folder: Path, variables: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Write an AWS configuration file with the user's profiles, and return the variables that name it.

    Each profile keeps its region and output format, so that code that names a profile works. Its credentials are
    replaced by the emulator's, and all other settings are dropped.

    Args:
        folder: the folder of the file.
        variables: the client variables, with the emulator's credentials.
        environment: the current environment.
    """
    home = Path(environment.get("HOME") or Path.home()) / ".aws"
    profiles: dict[str, dict[str, str]] = {"default": {"region": variables["AWS_REGION"]}}
    for variable, name in (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")):
        found = RawConfigParser(strict=False)
        try:
            found.read(Path(environment.get(variable) or home / name).expanduser(), encoding="utf-8")
        except (ConfigError, UnicodeError):
            continue  # without the emulator, clients could not use these profiles either
        for section in found.sections():
            if not section.startswith(("sso-session ", "services ", "plugins")):
                kept = {key: value for key, value in found.items(section) if key in ("region", "output")}
                profiles.setdefault(section.removeprefix("profile ").strip(), {}).update(kept)
    credentials = {name.lower(): variables[name] for name in (*CREDENTIALS, "AWS_SESSION_TOKEN") if name in variables}
    lines: list[str] = []
    for name, settings in profiles.items():
        lines.append("[default]" if name == "default" else f"[profile {name}]")
        lines += [f"{key} = {value}" for key, value in {**settings, **credentials}.items()]
    path = folder / "config"
    write_whole(path, "\n".join(lines) + "\n")
    return {"AWS_CONFIG_FILE": str(path), "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically, because another process may be reading it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _ask(endpoint_url: str, signer: Mapping[str, str], service: str, parameters: Mapping[str, str]) -> str:
    """Send a request with AWS's query protocol and return the body of the response, even if it is an error.

    It uses a socket, because importing ``urllib.request`` takes longer than the rest of the command, and
    ``urllib.request`` would use a proxy from the environment even for this machine.

    Raises:
        NoAnswerError: nothing responds.
        EmulatorAnswerError: the server's certificate is not trusted.
    """
    body, address = urlencode(parameters), urlsplit(endpoint_url)
    moment = strftime("%Y%m%dT%H%M%SZ", gmtime())
    region, secret = signer["AWS_REGION"], signer["AWS_SECRET_ACCESS_KEY"]
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    signed = f"Credential={signer['AWS_ACCESS_KEY_ID']}/{scope}, SignedHeaders=host;x-amz-date"
    signature = _sign(secret, scope, moment, address.netloc, body)
    head = (
        "POST / HTTP/1.0",
        f"Host: {address.netloc}",
        f"X-Amz-Date: {moment}",
        f"Authorization: AWS4-HMAC-SHA256 {signed}, Signature={signature}",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(body)}",
    )
    name, is_encrypted = address.hostname or "", address.scheme == "https"
    try:
        # The host is passed as bytes: for text, Python would import the codec of international domain names.
        host = name.encode() if name.isascii() else name
        place = cast("Any", (host, address.port or (443 if is_encrypted else 80)))
        with create_connection(place, _ANSWER_SECONDS) as plain:
            trusted = signer.get(CA_VARIABLE) or os.environ.get(CA_VARIABLE)
            with _encrypt(plain, name, trusted) if is_encrypted else plain as connection:
                connection.sendall("\r\n".join((*head, "", body)).encode())
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
    except OSError as error:
        if hasattr(error, "verify_message"):
            raise EmulatorAnswerError(
                f"The certificate of {endpoint_url} is not trusted ({error.verify_message}): set {CA_VARIABLE} to "
                "the emulator's tls/trusted/ca.pem, which is in its state folder, or to a copy of it on this machine."
            ) from error
        raise NoAnswerError(
            f"No emulator answers at {endpoint_url} ({error.strerror or error}): start one with "
            "smdebug-emulator start, or give the address of one that runs."
        ) from error
    return answer.partition(b"\r\n\r\n")[2].decode(errors="replace")


def _sign(secret: str, scope: str, moment: str, host: str, body: str) -> str:
    """Compute the Signature Version 4 of a POST request to the path ``/``.

    botocore's implementation is not used, because botocore is slow to import.
    """
    signed = f"POST\n/\n\nhost:{host}\nx-amz-date:{moment}\n\nhost;x-amz-date\n{sha256(body.encode()).hexdigest()}"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{sha256(signed.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), text):
        key = digest(key, part.encode(), "sha256")
    return key.hex()


def _encrypt(connection: socket, name: str, trusted: str | None) -> socket:
    import ssl

    return ssl.create_default_context(cafile=trusted).wrap_socket(connection, server_hostname=name)


def _read_element(answer: str, name: str, endpoint_url: str) -> str:
    found = re.search(f"<{name}>(.*?)</{name}>", answer)
    if found is None:
        # Such as a full disk.
        if refused := re.search("<Message>(.*?)</Message>", answer, re.DOTALL):
            from html import unescape

            raise EmulatorAnswerError(f"The emulator at {endpoint_url} refuses: {unescape(refused[1])}")
        raise EmulatorAnswerError(
            f"What answers at {endpoint_url} is not an emulator: start one on another port with smdebug-emulator start "
            "--port N, or give the address of one that runs."
        )
    return found[1]
