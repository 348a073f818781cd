"""Tests of commands and the pytest plugin with an emulator elsewhere."""

import gc
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from emulator.gateway.addresses import find_own_address
from sdk_compat.aws_variables import CA_VARIABLE, EmulatorAnswerError, check_emulator
from sdk_compat.environment import EndpointError
from sdk_compat.remote import find_remote, parse_remote
from tests.commands import run_command
from tests.end_to_end.guarded import Guarded
from tests.forked_emulator import open_forking_process
from tests.running_emulator import RunningEmulator

pytestmark = pytest.mark.slow

TEST = """
import os

import boto3


def test_on_the_emulator_elsewhere(sagemaker_emulator, boto3_session, s3_bucket):
    assert sagemaker_emulator.endpoint_url == {url!r}
    boto3_session.client("s3").put_object(Bucket=s3_bucket, Key="key", Body=b"")
    assert boto3.client("s3").list_objects_v2(Bucket=s3_bucket)["KeyCount"] == 1
    assert sagemaker_emulator.collect_jobs(with_plots=False) == []
    assert os.environ["AWS_CA_BUNDLE"].endswith(".pem")


def test_others_do_not_trust_it():
    assert "AWS_CA_BUNDLE" not in os.environ


def test_after_a_reset(reset_sagemaker, s3_bucket):
    assert boto3.client("s3").list_objects_v2(Bucket=s3_bucket)["KeyCount"] == 0
"""


class OtherMachine:
    """What a user has there: commands, an empty home, and no state folder of an emulator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SMDEBUG_"))}
        self.variables = {**kept, "HOME": str(folder), "XDG_CACHE_HOME": str(folder), "XDG_STATE_HOME": str(folder)}

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.variables, **variables}
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=120, env=environment, cwd=self.folder
        )

    def fork(self, *arguments: str, variables: dict[str, str] | None = None) -> tuple[str, str]:
        """Run a command that may become another program in a fork; return what it prints as output and as errors."""
        with (self.folder / "errors").open("w") as errors:
            process = open_forking_process().fork(
                arguments, {**self.variables, **(variables or {})}, errors.fileno(), new_session=False
            )
        output, _ = process.communicate()
        return output, (self.folder / "errors").read_text()

    def command(self, *arguments: str, variables: dict[str, str] | None = None, code: int = 0) -> Result:
        """Run a command of the emulator's in this process, and expect its exit code."""
        environment: dict[str, str | None] = dict.fromkeys(os.environ.keys() - self.variables.keys())
        environment |= {**self.variables, **(variables or {})}
        return run_command(*arguments, code=code, environment=environment)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    emulator = Guarded(tmp_path_factory.mktemp("remote") / "state", "process", "--host", find_own_address())
    yield emulator
    emulator.stop()


@pytest.fixture(scope="module")
def said(guarded: Guarded) -> dict[str, str]:
    """What ``env --elsewhere`` says on the emulator's machine."""
    lines = [shlex.split(line)[1] for line in guarded.run("env", "--elsewhere").splitlines()]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """One on the loopback interface, without TLS or a token."""
    with RunningEmulator(tmp_path_factory.mktemp("plain") / "state", runtime="process") as emulator:
        yield emulator


@pytest.fixture
def machine(tmp_path: Path) -> OtherMachine:
    return OtherMachine(tmp_path)


def test_commands_use_it_by_the_variables_alone(guarded: Guarded, said: dict[str, str], machine: OtherMachine) -> None:
    assert re.fullmatch(r"https://[\d.]+:\d+#sha256:[0-9a-f]{64}", said["SMDEBUG_EMULATOR_REMOTE"])
    url = said["SMDEBUG_EMULATOR_REMOTE"].partition("#")[0]

    assert f"answers at {url}" in machine.command("status", variables=said).stdout
    led, errors = machine.fork("run", "--", "printenv", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE", variables=said)
    assert re.fullmatch(rf"{re.escape(url)}\n.*\.pem\n", led), errors
    exports, _ = machine.fork("env", variables=said)
    assert f"export AWS_ENDPOINT_URL={url}" in exports
    source = "import boto3; print(boto3.client('sts').get_caller_identity()['Arn'])"
    asked = machine.run("bash", "-c", f'{exports}\n{sys.executable} -c "{source}"', **said)
    assert asked.stdout.startswith("arn:aws:sts::123456789012:"), asked.stderr

    machine.command("stop-handler", "deploy", variables=said)
    for arguments in (("jobs",), ("events",), ("prune", "--dry-run"), ("processing",), ("open", "--print")):
        machine.command(*arguments, variables=said)
    refused = machine.command("reset", variables=said, code=1)
    assert f"all else in the emulator at {url}" in refused.stderr
    assert not list(machine.folder.rglob("emulator.json"))


def test_the_option_overrules_the_variable(said: dict[str, str], machine: OtherMachine) -> None:
    remote = said["SMDEBUG_EMULATOR_REMOTE"]
    others = {**said, "SMDEBUG_EMULATOR_REMOTE": "https://nobody.invalid"}
    machine.command("jobs", "--remote", remote, variables=others)
    both = machine.command("jobs", "--remote", remote, "--state-dir", str(machine.folder), variables=said, code=2)
    assert "one of --remote and --state-dir" in both.stderr
    here = machine.command("jobs", "--state-dir", str(machine.folder), variables=said, code=1)
    assert "No emulator is running on the state folder" in here.stderr


def test_another_certificate_than_the_pinned_one_is_refused(said: dict[str, str], machine: OtherMachine) -> None:
    """Nothing is trusted, and the token is not sent."""
    url = said["SMDEBUG_EMULATOR_REMOTE"].partition("#")[0]
    others = {**said, "SMDEBUG_EMULATOR_REMOTE": f"{url}#sha256:{'0' * 64}"}
    other = machine.command("jobs", variables=others, code=1)
    assert "is not the emulator whose certificate is pinned" in other.stderr
    bare = machine.command("jobs", variables={**said, "SMDEBUG_EMULATOR_REMOTE": url}, code=1)
    assert "is not trusted" in bare.stderr
    assert f"pin it, as in {url}#sha256:" in bare.stderr
    for done in (other, bare):
        assert len(done.stderr.strip().splitlines()) == 1


def test_a_missing_token_is_named(said: dict[str, str], machine: OtherMachine) -> None:
    lacking = {name: value for name, value in said.items() if name != "SMDEBUG_EMULATOR_TOKEN"}
    assert "set SMDEBUG_EMULATOR_TOKEN" in machine.command("jobs", variables=lacking, code=1).stderr


def test_doctor_says_where_the_variable_leads(said: dict[str, str], machine: OtherMachine) -> None:
    found = json.loads(machine.fork("doctor", "--json", variables=said)[0])
    assert {each["subject"]: each["state"] for each in found}["remote"] == "ok"
    lost = {**said, "SMDEBUG_EMULATOR_REMOTE": "http://127.0.0.1:1"}
    found = json.loads(machine.command("doctor", "--json", variables=lost, code=1).stdout)
    (remote,) = [each for each in found if each["subject"] == "remote"]
    assert (remote["state"], "No emulator answers" in remote["found"]) == ("missing", True)


def test_the_plugin_uses_it_and_leaves_it_running(
    guarded: Guarded, said: dict[str, str], machine: OtherMachine
) -> None:
    url = said["SMDEBUG_EMULATOR_REMOTE"].partition("#")[0]
    (machine.folder / "test_it.py").write_text(TEST.format(url=url))
    done = machine.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", **said)
    assert done.returncode == 0, done.stdout
    assert guarded.run("status")


def test_one_that_speaks_plainly_needs_its_address_alone(plain: RunningEmulator, machine: OtherMachine) -> None:
    variables = {"SMDEBUG_EMULATOR_TOKEN": "secret"}
    status = machine.command("status", "--remote", plain.endpoint_url, variables=variables)
    assert plain.endpoint_url in status.stdout
    said, warning = machine.fork("env", "--elsewhere", "--state-dir", str(plain.state_dir))
    assert said == f"export SMDEBUG_EMULATOR_REMOTE={plain.endpoint_url}\n"
    assert "No other machine reaches this emulator" in warning
    exports, _ = machine.fork("env", "--remote", plain.endpoint_url)
    shell = machine.run("sh", "-c", f"{exports}\n{sys.executable} -m emulator status")
    assert plain.endpoint_url in shell.stdout, shell.stderr


def test_a_proxy_of_the_environment_is_not_asked(plain: RunningEmulator, machine: OtherMachine) -> None:
    """Neither by the emulator's own clients nor by commands, nor by clients after ``env``."""
    nobody = {f"{name}_proxy": "http://127.0.0.1:1" for name in ("http", "https", "all")}
    url = plain.endpoint_url
    for arguments in (["stop-handler", "deploy"], ["prune", "--dry-run"], ["jobs"], ["reset", "--all", "--yes"]):
        machine.command(*arguments, "--remote", url, variables=nobody)
    exports, _ = machine.fork("env", "--remote", url, variables=nobody)
    source = "import boto3; boto3.client('s3').create_bucket(Bucket='past-the-proxy')"
    made = machine.run("bash", "-c", f'{exports}\n{sys.executable} -c "{source}"', **nobody)
    assert made.returncode == 0, made.stderr


def test_a_token_is_never_sent_in_the_clear(machine: OtherMachine) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            connection, _ = server.accept()
            with connection:
                heard.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n<html>a web page</html>")

        thread = threading.Thread(target=listen)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        variables = {"SMDEBUG_EMULATOR_TOKEN": "a-secret", "HTTP_PROXY": "http://127.0.0.1:1"}
        done = machine.command("jobs", "--remote", url, variables=variables, code=1)
        thread.join()
    assert b"a-secret" not in heard[0]
    assert f"What answers at {url} is not an emulator" in done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("lab:4580", "is not an address of an emulator"),
        ("https://lab:4580/path", "is not an address of an emulator"),
        ("https://lab:abc", "is not a URL"),
        ("https://token@lab:4580", "must not contain a user"),
        ("https://lab:4580#sha256:12", "pins no certificate"),
        ("http://lab:4580#sha256:" + "0" * 64, "http:// has none"),
    ],
)
def test_what_is_not_an_address_is_refused(text: str, reason: str) -> None:
    with pytest.raises(EndpointError, match=re.escape(reason)):
        parse_remote(text)


@pytest.mark.parametrize("content", ["", "a certificate", None])
def test_a_file_without_certificates_is_named(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(EmulatorAnswerError) as refused:
        find_remote("https://127.0.0.1:1", {CA_VARIABLE: str(file)})
    assert str(refused.value) == f"{file} contains no certificates: set {CA_VARIABLE} to a file in PEM."


def test_no_connection_to_it_is_left_open(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CA_VARIABLE, str(guarded.state_dir / "tls" / "trusted" / "ca.pem"))
    gc.collect()  # what other tests have left is not looked at
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ResourceWarning)
        with pytest.raises(EmulatorAnswerError, match="refuses"):
            check_emulator(guarded.endpoint_url, "us-east-1")
        gc.collect()
    assert [str(each.message) for each in found if "unclosed" in str(each.message)] == []
