"""Emulator on another machine: its address, pinned certificate and keys.

The address is a URL. One with TLS ends in ``#sha256:`` and the SHA-256 of the file that clients have to trust:
``https://lab:4580#sha256:…``, as ``smdebug-emulator env --elsewhere`` prints it. That file is fetched once, without
trust, and kept if it is the one that was meant. From then on, only it is trusted at that address.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from sdk_compat.aws_variables import CA_VARIABLE, EmulatorAnswerError, NoAnswerError, write_whole
from sdk_compat.environment import DEFAULT_ACCOUNT_ID, DEFAULT_REGION, EndpointError, default_folder

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from http.client import HTTPConnection, HTTPResponse

TOKEN_VARIABLE = "SMDEBUG_EMULATOR_TOKEN"  # noqa: S105 - its name
_API = "/_emulator/"
_PIN = re.compile(r"sha256:([0-9a-f]{64})")
_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 600.0
_HOW = "`smdebug-emulator env --elsewhere` prints it on the emulator's machine"


@dataclass(frozen=True, slots=True)
class Remote:
    """An emulator that runs elsewhere.

    Attributes:
        endpoint_url: its URL.
        ca_bundle: the file of the certificates that are trusted there; None for those of this machine, or without TLS.
        token: what its own API asks for; None if it is not known, and never sent without TLS.
    """

    endpoint_url: str
    ca_bundle: str | None = None
    token: str | None = field(default=None, repr=False)

    def ask(self, path: str, method: Literal["GET", "POST"] = "GET") -> Any:
        """Return what its own API answers.

        Args:
            path: behind ``/_emulator/``.
            method: of HTTP.

        Raises:
            NoAnswerError: nothing responds.
            EmulatorAnswerError: it refuses, its certificate is not to be trusted, or another program responds.
        """
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        answer, body = _request(self.endpoint_url, path, _trust(self.ca_bundle), method, headers)
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if answer.status == 401:
            raise EmulatorAnswerError(
                f"The emulator at {self.endpoint_url} requires its token: set {TOKEN_VARIABLE}; {_HOW}."
            )
        if answer.status >= 400 and isinstance(found, dict) and "error" in found:
            raise EmulatorAnswerError(f"The emulator at {self.endpoint_url} refuses: {found['error']}")
        if answer.status >= 400 or found is None:
            raise EmulatorAnswerError(
                f"What answers at {self.endpoint_url} is not an emulator: give the address of one that runs."
            )
        return found


class RemoteEmulator:
    """An emulator elsewhere in place of an ``EmulatorProcess``: it is used, and neither started nor stopped.

    Attributes:
        endpoint_url: its URL.
        state_dir: its URL again, where reports say whose jobs they list.
        region: its default region.
        account_id: the account of clients whose access key does not specify one.
    """

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        """Find the emulator at an address; see ``find_remote``."""
        self._remote, health = find_remote(text, environment)
        self.ask = self._remote.ask
        self.endpoint_url = self.state_dir = self._remote.endpoint_url
        self.ca_bundle = self._remote.ca_bundle
        self.region = str(health.get("region", DEFAULT_REGION))
        self.account_id = str(health.get("account", DEFAULT_ACCOUNT_ID))

    def log_text(self) -> str:
        """Return nothing: its log is where it runs."""
        return ""

    def stop(self) -> int:
        """Leave it running."""
        return 0


def find_remote(text: str, environment: Mapping[str, str]) -> tuple[Remote, dict[str, Any]]:
    """Find the emulator at an address, and return it with what it says of itself.

    Args:
        text: the address, with the pin of its certificate.
        environment: variables with its token, CA file and the folder for the file that is pinned.

    Raises:
        EndpointError: the address is not one.
        EmulatorAnswerError: no emulator responds, or its certificate is another than the pinned one.
        OSError: the certificates cannot be written.
    """
    endpoint_url, pin = parse_remote(text)
    token = environment.get(TOKEN_VARIABLE)
    if endpoint_url.startswith("http:"):
        remote = Remote(endpoint_url)
    elif pin is None:
        remote = Remote(endpoint_url, environment.get(CA_VARIABLE) or None, token)
    else:
        remote = Remote(endpoint_url, _fetch_pinned(endpoint_url, pin, environment), token)
    health = remote.ask("health")
    if not isinstance(health, dict) or "version" not in health:
        raise EmulatorAnswerError(
            f"What answers at {endpoint_url} is not an emulator: give the address of one that runs."
        )
    return remote, health


def parse_remote(text: str) -> tuple[str, str | None]:
    """Parse an address and return its URL and the pin of its certificate.

    >>> parse_remote("http://localhost:4580/")
    ('http://localhost:4580', None)

    Raises:
        EndpointError: it is not an address.
    """
    try:
        parts = urlsplit(text.strip())
        parts.port  # noqa: B018 - raises
    except ValueError as error:
        raise EndpointError(f"{text!r} is not a URL: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.rstrip("/") or parts.query:
        raise EndpointError(
            f"{text!r} is not an address of an emulator: give one like http://localhost:4580 or "
            "https://lab:4580#sha256:…."
        )
    if parts.username is not None:
        raise EndpointError(f"The address must not contain a user: set {TOKEN_VARIABLE}, and leave it out of the URL.")
    if not parts.fragment:
        return f"{parts.scheme}://{parts.netloc}", None
    found = _PIN.fullmatch(parts.fragment.lower())
    if found is None:
        raise EndpointError(f"{text!r} pins no certificate: behind # is sha256: and 64 digits; {_HOW}.")
    if parts.scheme == "http":
        raise EndpointError(f"{text!r} pins a certificate, but http:// has none: use https://.")
    return f"{parts.scheme}://{parts.netloc}", found[1]


def _fetch_pinned(endpoint_url: str, pin: str, environment: Mapping[str, str]) -> str:
    """Return the path of the file that the pin means; fetch it if it is not kept yet."""
    path = default_folder(endpoint_url, environment) / f"{pin}.pem"
    if not (path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == pin):
        import ssl

        unchecked = ssl.create_default_context()
        unchecked.check_hostname = False
        unchecked.verify_mode = ssl.CERT_NONE  # what it answers is compared with the pin
        answer, content = _request(endpoint_url, "authority", unchecked)
        found = hashlib.sha256(content).hexdigest()
        if answer.status != 200 or found != pin:
            shown = f"the one there is sha256:{found}" if answer.status == 200 else "it shows none"
            raise EmulatorAnswerError(
                f"What answers at {endpoint_url} is not the emulator whose certificate is pinned ({shown}): another "
                f"answers in its place, or its state folder was created again. {_HOW[0].upper()}{_HOW[1:]}."
            )
        write_whole(path, content.decode())
    return str(path)


def _trust(ca_bundle: str | None) -> ssl.SSLContext:
    import ssl

    try:
        return ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:
        raise EmulatorAnswerError(f"{ca_bundle} contains no certificates: set {CA_VARIABLE} to a file in PEM.") from (
            error
        )


def _request(
    endpoint_url: str,
    path: str,
    trusted: ssl.SSLContext,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> tuple[HTTPResponse, bytes]:
    """Ask without a proxy: the variables of proxies are for the internet, and a token is for the emulator alone."""
    import ssl
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(endpoint_url)
    connection: HTTPConnection
    if parts.scheme == "https":
        connection = HTTPSConnection(parts.hostname or "", parts.port, timeout=_CONNECT_SECONDS, context=trusted)
    else:
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=_CONNECT_SECONDS)
    try:
        connection.connect()
        connection.sock.settimeout(_ANSWER_SECONDS)
        connection.request(method, f"{_API}{path}", headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer, answer.read()
    except ssl.SSLCertVerificationError as error:
        raise EmulatorAnswerError(
            f"The certificate of {endpoint_url} is not trusted ({error.verify_message}): pin it, as in "
            f"{endpoint_url}#sha256:…; {_HOW}."
        ) from error
    except (OSError, HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NoAnswerError(
            f"No emulator answers at {endpoint_url} ({why}): start one there, or give the address of one that runs."
        ) from error
    finally:
        connection.close()


def describe(text: str) -> str:
    """Return JSON that says which emulator is at an address, for the commands.

    Raises:
        EndpointError, EmulatorAnswerError, OSError: see ``find_remote``.
    """
    remote, health = find_remote(text, os.environ)
    return json.dumps(
        {"endpoint_url": remote.endpoint_url, "ca_bundle": remote.ca_bundle, "token": remote.token, "health": health}
    )
