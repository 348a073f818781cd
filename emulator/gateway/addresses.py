"""Listening addresses, and the address that other machines use."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emulator.exceptions import StartupError

if TYPE_CHECKING:
    from emulator.settings import Settings

LOOPBACK = "127.0.0.1"
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - of a container only, see _find_published
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_ANSWER_SECONDS = 10.0
# In a range reserved for documentation (RFC 5737): the kernel looks up the route, and nothing is sent.
_ELSEWHERE = ("192.0.2.1", 9)


class Addresses(NamedTuple):
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
        StartupError: other machines could not reach the advertised address, or ``behind`` is given outside a
            container.
    """
    if settings.behind:
        return _find_published(settings)
    host, advertised = settings.host, settings.advertise
    if advertised is None:
        if host is None or read_address(host).is_loopback:
            return Addresses((LOOPBACK,) if host in (None, LOOPBACK) else (LOOPBACK, str(host)))
        advertised = find_own_address() if ipaddress.ip_address(host).is_unspecified else host
    found = _resolve(advertised)
    if read_address(found).is_loopback or ipaddress.ip_address(found).is_unspecified:
        meant = f"{advertised} ({found})" if found != advertised else advertised
        raise StartupError(
            f"Other machines cannot reach this one at the address of --advertise: on each machine, {meant} is an "
            "address of that machine itself. Give the address that others use for this one (`ip address` lists them)."
        )
    host = host or found
    return Addresses((host,) if ipaddress.ip_address(host).is_unspecified else (LOOPBACK, host), advertised)


def is_in_container() -> bool:
    """Return whether Docker or Podman started this process in a container."""
    return any(Path(name).exists() for name in _CONTAINER_MARKS)


def _find_published(settings: Settings) -> Addresses:
    """Return the addresses of an emulator whose only clients are those of a port published on the loopback interface.

    They cannot be told from clients on other machines, so the container's own addresses are served as the loopback
    interface is. Outside a container that would open this machine to its network.
    """
    if not is_in_container():
        raise StartupError(
            f"--behind {settings.behind} is for an emulator in a container, but this one is not in a container. "
            "Without it, the emulator listens on the loopback interface."
        )
    if shared := [name for name in _list_interfaces() if not _is_virtual(name)]:
        raise StartupError(
            f"--behind {settings.behind} would open this emulator to the network: the container shares the machine's "
            f"interface {shared[0]}. Leave --behind out and give --host {LOOPBACK} (SMDEBUG_EMULATOR_HOST), or start "
            "the container without --network host."
        )
    if settings.advertise is not None:
        raise StartupError(
            f"--behind {settings.behind} serves only the machine that publishes the port, but --advertise "
            f"{settings.advertise} is for other machines: use one of the two."
        )
    return Addresses((EVERY_ADDRESS,))


def _list_interfaces() -> list[str]:
    return [name for _, name in socket.if_nameindex() if name != "lo"]


def _is_virtual(interface: str) -> bool:
    """Return whether an interface is one end of a pair, as those of containers are."""
    folder = Path("/sys/class/net", interface)
    try:
        return (folder / "iflink").read_text() != (folder / "ifindex").read_text()
    except OSError:
        return False


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
        text = f"no server answers ({error.strerror or error})"
    raise StartupError(
        f"{where} {text}. The emulator listens on {listens}: give an address that leads there, or another "
        "address to listen on with --host."
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
    raise StartupError(
        "This machine has no route to other machines, so they cannot reach it: give an address with --advertise."
    )


def _resolve(address: str) -> str:
    try:
        return str(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        raise StartupError(
            f"--advertise names {address!r}, which this machine cannot resolve ({error}): give an IP address, or a "
            "name that it can resolve."
        ) from error
