"""Tests of ``start`` options for addresses, TLS and replicas, and their errors."""

import os
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from docs_site.environment import build_environment_page
from emulator.cli.service.start_stop import start
from emulator.cli.setting_options import list_given, name_option, setting_options, write_arguments
from emulator.components.ports import open_certificates
from emulator.exceptions import StartupError
from emulator.gateway.addresses import Addresses
from emulator.options import option
from emulator.settings import Settings, list_options, name_variable, settings_from_environment


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "lab.example"], "give an IP address of this machine, or 0.0.0.0 for all"),
        (["--host", ""], "give an IP address of this machine"),
        (["--advertise", "https://lab.example"], "give an IP address or a host name, without a port"),
        (["--advertise", "lab.example:4580"], "without a port"),
        (["--advertise", ""], "give an IP address or a host name"),
        (["--s3-endpoint", "minio:9000"], "give a URL such as http://minio.example:9000"),
        (["--s3-endpoint", "http://minio:9000/bucket"], "give a URL such as"),
        (["--s3-bucket", "No_Bucket"], "give NAME or NAME/PREFIX"),
        (["--port", "70000"], "give a whole number from 0 to 65535"),
        (["--port", ""], "give a whole number from 0 to 65535"),
        (["--max-jobs", "0"], "give a whole number from 1 to 10000"),
        (["--account", "12345"], "give an account's 12 digits"),
        (["--container-user", "1000:"], "give root, UID or UID:GID"),
        (["--shared-folder", ""], "give an existing folder"),
        (["--shared-folder", "/nowhere/at/all"], "give an existing folder"),
        (["--tls-key", ""], "give a file"),
        (["--retention", "7"], "give an age such as 12h or 7d"),
        (["--behind", "nat"], "'nat': use loopback"),
        (["--accepted-hosts", "sagemaker:4580"], "give host names separated by commas"),
        (["--warm", "pytorch training"], "give names of images separated by commas"),
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
    with pytest.raises(StartupError, match=f"--{given.replace('_', '-')} also needs --tls-"):
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


GIVEN = {
    "port": "0",
    "runtime": "process",
    "own_images": "pytorch-training:2.3=my/dlc:2.3",
    "no_smdebug": "1",
    "shared_folder": ".",
    "registry": "registry.example:5000/images",
    "account_id": "210987654321",
    "faults": "s3:error=0.1,delay=200ms",
    "warm": "pytorch-training,sagemaker-xgboost",
    "no_warm": "1",
    "warm_memory": "3G",
    "max_jobs": "7",
    "quotas": __file__.replace("test_start_options.py", "quotas.json"),
    "disk_reserve": "2G",
    "container_user": f"{os.getuid()}:7",
    "writable_root": "1",
    "retention": "90m",
    "retention_size": "1G",
    "moto_api": "1",
    "require_signature": "1",
    "allow_internet": "1",
    "host": "192.0.2.9",
    "advertise": "lab.example",
    "behind": "loopback",
    "accepted_hosts": "sagemaker,lab.example",
    "tls": "1",
    "tls_certificate": "a.pem",
    "tls_key": "b.pem",
    "s3_endpoint": "http://minio:9000",
    "s3_bucket": "mine/a",
    "lenient_roles": "1",
    "strict_versions": "1",
}


def list_arguments() -> list[str]:
    options = list_options()
    return [
        part
        for name, text in GIVEN.items()
        for part in ([name_option(name, options[name])] + ([] if options[name].is_flag else [text]))
    ]


def parse_start(arguments: list[str]) -> Settings:
    """The settings that the command makes of its arguments."""
    given = start.make_context("start", list(arguments)).params
    settings = Settings(**list_given({name: given[name] for name in GIVEN}))
    return replace(settings, state_dir=given["state_dir"] or settings.state_dir)


def test_every_option_and_variable_is_a_setting_declared_once(tmp_path: Path) -> None:
    options = list_options()
    assert GIVEN.keys() == {name for name, option in options.items() if option.on_command_line}
    settings = parse_start([*list_arguments(), "--state-dir", str(tmp_path)])
    unchanged = Settings(state_dir=tmp_path)
    assert [name for name in GIVEN if getattr(settings, name) == getattr(unchanged, name)] == []
    variables = {name_variable(name): text for name, text in GIVEN.items() if options[name].in_environment}
    found = settings_from_environment(variables | {"SMDEBUG_EMULATOR_STATE_DIR": str(tmp_path)})
    beside = {name: getattr(settings, name) for name in GIVEN if not options[name].in_environment}
    assert beside.keys() == {"faults", "own_images"}
    assert replace(found, **beside) == settings


@pytest.mark.parametrize("arguments", [[], list_arguments(), ["--fault", "s3:error=1", "--fault", "events:error=0.5"]])
def test_a_detached_process_gets_the_same_settings(arguments: list[str], tmp_path: Path) -> None:
    settings = parse_start([*arguments, "--state-dir", str(tmp_path)])
    assert parse_start(write_arguments(settings)) == settings


def test_a_fault_that_is_none_is_explained() -> None:
    done = CliRunner().invoke(start, ["--fault", "s3:error=maybe"])
    assert done.exit_code == 2
    assert "--fault" in done.output
    assert "maybe" in done.output


def test_a_new_field_is_an_option_a_variable_and_a_line_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    colour = option("red", parse=str, fits=str.isalpha, wanted="give a colour", metavar="NAME", help="Its colour.")
    wider = make_dataclass("Wider", [("colour", str, colour)], bases=(Settings,), frozen=True, slots=True)
    monkeypatch.setattr("emulator.settings.Settings", wider)
    monkeypatch.setattr("docs_site.environment.Settings", wider)

    @click.command()
    @setting_options
    def show(**options: Any) -> None:
        click.echo(list_given(options))

    assert CliRunner().invoke(show, ["--colour", "blue"]).output == "{'colour': 'blue'}\n"
    assert "give a colour" in CliRunner().invoke(show, ["--colour", "7"]).output
    assert getattr(settings_from_environment({"SMDEBUG_EMULATOR_COLOUR": "blue"}), "colour") == "blue"  # noqa: B009
    assert "| `SMDEBUG_EMULATOR_COLOUR` | Its colour. | `red` | give a colour |" in build_environment_page()
