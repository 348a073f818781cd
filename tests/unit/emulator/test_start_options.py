"""Options of ``start`` that say where it listens and what it shows, and what is said of bad ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from emulator.cli.service import start
from emulator.components.ports import open_certificates
from emulator.exceptions import StartupError
from emulator.gateway.addresses import Addresses
from emulator.settings import Settings, settings_from_environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "lab.example"], "give an IP address of this machine, or 0.0.0.0 for all"),
        (["--host", ""], "give an IP address of this machine"),
        (["--advertise", "https://lab.example"], "give an IP address or a host's name, without a port"),
        (["--advertise", "lab.example:4580"], "without a port"),
        (["--advertise", ""], "give an IP address or a host's name"),
        (["--s3-endpoint", "minio:9000"], "give a URL such as http://minio.example:9000"),
        (["--s3-endpoint", "http://minio:9000/bucket"], "give a URL such as"),
        (["--s3-bucket", "No_Bucket"], "give NAME or NAME/PREFIX"),
    ],
)
def test_an_option_that_means_nothing_is_named(options: list[str], said: str) -> None:
    done = CliRunner().invoke(start, options)
    assert done.exit_code == 2
    assert options[0] in done.output
    assert said in " ".join(done.output.split())


def test_a_bucket_without_an_s3_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(start, ["--state-dir", str(tmp_path), "--s3-bucket", "mine/a"])
    assert done.exit_code == 1
    assert "--s3-bucket mine/a needs --s3-endpoint, too" in done.output


@pytest.mark.parametrize("given", ["tls_certificate", "tls_key"])
def test_a_certificate_and_its_key_come_together(given: str, tmp_path: Path) -> None:
    named: dict[str, Any] = {given: tmp_path / "one.pem"}
    with pytest.raises(StartupError, match=f"--{given.replace('_', '-')} needs --tls-"):
        open_certificates(Settings(state_dir=tmp_path, **named), Addresses())


@pytest.mark.parametrize(
    ("addresses", "tls", "encrypts"),
    [(Addresses(), False, False), (Addresses(), True, True), (Addresses(advertised="192.0.2.9"), False, True)],
)
def test_tls_is_on_where_other_machines_ask(addresses: Addresses, *, tls: bool, encrypts: bool, tmp_path: Path) -> None:
    assert (open_certificates(Settings(state_dir=tmp_path, tls=tls), addresses) is not None) == encrypts


def test_the_environment_says_the_same(tmp_path: Path) -> None:
    names = {"HOST": "192.0.2.9", "ADVERTISE": "lab.example", "TLS": "1", "TLS_CERTIFICATE": "a.pem", "TLS_KEY": "/b"}
    found = settings_from_environment({f"SMDEBUG_EMULATOR_{name}": text for name, text in names.items()})
    assert (found.host, found.advertise, found.tls) == ("192.0.2.9", "lab.example", True)
    assert found.tls_certificate is not None
    assert found.tls_certificate.is_absolute()
    with pytest.raises(StartupError, match=r"SMDEBUG_EMULATOR_HOST is '10.0.0': give an IP address"):
        settings_from_environment({"SMDEBUG_EMULATOR_HOST": "10.0.0"})
