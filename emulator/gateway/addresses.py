"""Listening addresses, and the address that other machines use."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.exceptions import StartupError

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.settings import Settings

LOOPBACK = "127.0.0.1"
_ANSWER_SECONDS = 10.0
# In a range reserved for documentation (RFC 5737): the kernel looks up the route, and nothing is sent.
_ELSEWHERE = ("192.0.2.1", 9)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of the emulator.

    Attributes:
        listening: the addresses that it listens on; the first is the one that clients on this machine use.
        advertised: the address or host name for other machines; None if it serves this machine only.
    """

    listening: tuple[str, ...] = (LOOPBACK,)
    advertised: str | None = None

    @property
    def takes_all(self) -> bool:
        """Whether it listens on every address of this machine, including those of container bridges."""
        return ipaddress.ip_address(self.listening[0]).is_unspecified


def find_addresses(settings: Settings) -> Addresses:
    """Determine the addresses from the settings.

    Raises:
        StartupError: other machines could not reach the advertised address.
    """
    host, advertised = settings.host, settings.advertise
    if advertised is None:
        if host is None or read_address(host).is_loopback:
            return Addresses((LOOPBACK,) if host in (None, LOOPBACK) else (LOOPBACK, str(host)))
        advertised = find_own_address() if ipaddress.ip_address(host).is_unspecified else host
    found = _resolve(advertised)
    if read_address(found).is_loopback or ipaddress.ip_address(found).is_unspecified:
        meant = f"{advertised} is {found} here, which" if found != advertised else f"{advertised}"
        raise StartupError(
            f"No other machine reaches this one at what --advertise names: {meant} means whichever machine asks. Give "
            "the address that others have for this one (`ip address` lists its own)."
        )
    host = host or found
    return Addresses((host,) if ipaddress.ip_address(host).is_unspecified else (LOOPBACK, host), advertised)


def check_advertised(addresses: Addresses, port: int, bundle: Path) -> None:
    """Check, as a client would, that the advertised address leads to this emulator.

    Raises:
        StartupError: it does not.
    """
    import ssl

    assert addresses.advertised is not None
    client = ssl.create_default_context(cafile=str(bundle))
    where = f"--advertise names {addresses.advertised}, and at its port {port}"
    listens = " and ".join(addresses.listening)
    try:
        with (
            socket.create_connection((addresses.advertised, port), _ANSWER_SECONDS) as plain,
            client.wrap_socket(plain, server_hostname=addresses.advertised),
        ):
            return
    except ssl.SSLCertVerificationError as error:
        text = f"another server answers, not this one ({error.verify_message})"
    except ssl.SSLError:
        text = "another server answers, not this one"
    except OSError as error:
        text = f"nobody answers ({error.strerror or error})"
    raise StartupError(
        f"{where} {text}, as this machine asks. The emulator listens on {listens}: name an address that leads "
        "there, or another to listen on with --host."
    )


def read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parse an IP address; an IPv4 address in IPv6 notation becomes an IPv4 address.

    Raises:
        ValueError: ``text`` is not an IP address.
    """
    found = ipaddress.ip_address(text)
    return found if isinstance(found, ipaddress.IPv4Address) else found.ipv4_mapped or found


def find_own_address() -> str:
    """Return the address from which this machine reaches others."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_ELSEWHERE)
        return str(probe.getsockname()[0])
    raise StartupError("This machine has no way to others, so it has no address for them: name one with --advertise.")


def _resolve(address: str) -> str:
    try:
        return str(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        raise StartupError(
            f"--advertise names {address!r}, which this machine cannot resolve ({error}): give an IP address, or a "
            "name that it knows."
        ) from error
