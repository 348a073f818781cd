"""Tests of listening addresses from settings, and of unusable ones."""

from pathlib import Path
from typing import Any

import pytest

from emulator.exceptions import StartupError
from emulator.gateway import addresses
from emulator.gateway.addresses import Addresses, check_advertised, find_addresses, find_own_address
from emulator.gateway.listener import Listener
from emulator.security.certificates import Certificates
from emulator.settings import Settings, format_url

LOOPBACK = "127.0.0.1"


@pytest.mark.parametrize(
    ("given", "listening", "advertised"),
    [
        ({}, (LOOPBACK,), None),
        ({"host": LOOPBACK}, (LOOPBACK,), None),
        ({"host": "127.0.0.2"}, (LOOPBACK, "127.0.0.2"), None),
        ({"host": "192.0.2.9"}, (LOOPBACK, "192.0.2.9"), "192.0.2.9"),
        ({"advertise": "192.0.2.9"}, (LOOPBACK, "192.0.2.9"), "192.0.2.9"),
        ({"host": "192.0.2.9", "advertise": "198.51.100.9"}, (LOOPBACK, "192.0.2.9"), "198.51.100.9"),
        ({"host": "0.0.0.0", "advertise": "192.0.2.9"}, ("0.0.0.0",), "192.0.2.9"),
        ({"host": "::", "advertise": "2001:db8::1"}, ("::",), "2001:db8::1"),
    ],
)
def test_where_it_listens(given: dict[str, Any], listening: tuple[str, ...], advertised: str | None) -> None:
    found = find_addresses(Settings(**given))
    assert (found.listening, found.advertised) == (listening, advertised)
    assert found.takes_all == (listening[0] in ("0.0.0.0", "::"))


def test_all_addresses_are_advertised_as_the_one_that_leads_to_others() -> None:
    assert find_addresses(Settings(host="0.0.0.0")).advertised == find_own_address()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "0.0.0.0", "::1"])
def test_what_means_whoever_asks_is_refused(name: str) -> None:
    with pytest.raises(StartupError, match="an address of that machine itself"):
        find_addresses(Settings(advertise=name))


@pytest.mark.parametrize(
    ("in_container", "interfaces", "given", "said"),
    [
        (False, [], {}, "is for an emulator in a container"),
        (True, ["eth0"], {}, "would open this emulator to the network"),
        (True, [], {"advertise": "192.0.2.9"}, "serves only the machine that publishes the port"),
    ],
)
def test_plain_answers_on_every_address_are_refused_elsewhere(
    in_container: bool,
    interfaces: list[str],
    given: dict[str, Any],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "mark").touch()
    monkeypatch.setattr(addresses, "_CONTAINER_MARKS", (str(tmp_path / ("mark" if in_container else "none")),))
    monkeypatch.setattr(addresses, "_list_interfaces", lambda: interfaces)
    monkeypatch.setattr(addresses, "_is_virtual", lambda _name: False)
    with pytest.raises(StartupError, match=said):
        find_addresses(Settings(behind="loopback", **given))


def test_a_container_with_interfaces_of_its_own_listens_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_CONTAINER_MARKS", ("/",))
    monkeypatch.setattr(addresses, "_list_interfaces", lambda: ["eth0"])
    monkeypatch.setattr(addresses, "_is_virtual", lambda _name: True)
    assert find_addresses(Settings(behind="loopback", host="0.0.0.0")) == Addresses(("0.0.0.0",))


def test_a_name_that_nobody_knows_is_refused() -> None:
    with pytest.raises(StartupError, match="cannot resolve"):
        find_addresses(Settings(advertise="no-such-host.invalid"))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StartupError, match="not an address of this machine: give --host"):
        Listener("198.51.100.9", 0)


def test_an_address_where_nobody_or_another_answers_is_refused(tmp_path: Any) -> None:
    ours = Certificates(tmp_path, "localhost")
    silent = Listener(LOOPBACK, 0)
    silent.close()
    addresses = Addresses((LOOPBACK,), "localhost")
    with pytest.raises(StartupError, match=r"no server answers .*The emulator listens on 127.0.0.1: give an address"):
        check_advertised(addresses, silent.port, ours.bundle)
    other = tmp_path / "other"
    other.mkdir()
    listener = Listener(LOOPBACK, 0, certificates=Certificates(other))
    listener.serve(lambda _environ, _start: [])
    try:
        with pytest.raises(StartupError, match="another server answers, not this one"):
            check_advertised(addresses, listener.port, ours.bundle)
    finally:
        listener.close()


def test_addresses_of_version_6_stand_in_brackets() -> None:
    assert format_url("https", "2001:db8::1", 4580) == "https://[2001:db8::1]:4580"
    assert format_url("http", LOOPBACK, 4580) == "http://127.0.0.1:4580"
