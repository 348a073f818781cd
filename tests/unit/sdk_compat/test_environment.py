import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session as BotocoreSession

from sdk_compat import aws_variables, sagemaker_v2
from sdk_compat.__main__ import main
from sdk_compat.aws_variables import CREDENTIALS, EmulatorAnswerError, assume_role
from sdk_compat.environment import (
    NODE_OPTION,
    STARTUP_FOLDER,
    EndpointError,
    default_folder,
    format_exports,
    prepare_command_environment,
    prepare_environment,
)
from sdk_compat.process_environment import ProcessEnvironment

URL = "http://127.0.0.1:4580"


def test_variables_and_files(tmp_path: Path) -> None:
    variables = prepare_environment(URL, {"AWS_DATA_PATH": "/my/models"}, region="eu-west-1", folder=tmp_path)
    assert variables["AWS_ENDPOINT_URL"] == URL
    assert variables["AWS_REGION"] == variables["AWS_DEFAULT_REGION"] == "eu-west-1"
    assert variables["AWS_DATA_PATH"] == os.pathsep.join([str(tmp_path / "models"), "/my/models"])
    config = json.loads(Path(variables["SAGEMAKER_USER_CONFIG_OVERRIDE"]).read_text())
    assert config["SageMaker"]["PythonSDK"]["Modules"] == {"TelemetryOptOut": True}


def test_a_proxy_is_not_asked_for_the_emulator(tmp_path: Path) -> None:
    there = {"https_proxy": "http://proxy:3128", "NO_PROXY": "intranet"}
    variables = prepare_environment("http://lab:4580", there, folder=tmp_path)
    assert variables["NO_PROXY"] == "127.0.0.1,localhost,.localhost,lab,intranet"
    assert variables["no_proxy"] == "127.0.0.1,localhost,.localhost,lab"
    assert "NO_PROXY" not in prepare_environment(URL, {}, folder=tmp_path)


def test_an_account_signs_with_its_number(tmp_path: Path) -> None:
    variables = prepare_environment(URL, {}, folder=tmp_path, account_id="222222222222")
    assert variables["AWS_ACCESS_KEY_ID"] == "222222222222"
    assert prepare_environment(URL, {}, folder=tmp_path)["AWS_ACCESS_KEY_ID"] == "smdebug-emulator"


@pytest.mark.parametrize("action", [["env"], ["run", "true"]])
def test_an_account_that_is_none(action: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([action[0], "--account", "12", *action[1:]])
    assert "--account is '12': give an account's 12 digits." in capsys.readouterr().err


def test_preparing_again_adds_nothing(tmp_path: Path) -> None:
    first = prepare_environment(URL, {}, folder=tmp_path)
    files = sorted(tmp_path.rglob("*"))
    assert prepare_environment(URL, first, folder=tmp_path) == first
    assert sorted(tmp_path.rglob("*")) == files


def test_preparing_again_replaces_the_rules_of_an_earlier_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(aws_variables, "_AWS_SUFFIXES", (".amazonaws.com",))
        prepare_environment(URL, {}, folder=tmp_path)
    (path,) = (tmp_path / "models" / "sqs").rglob("*.json")
    kept = len(json.loads(path.read_text())["rules"])
    prepare_environment(URL, {}, folder=tmp_path)
    assert len(json.loads(path.read_text())["rules"]) == kept + len(aws_variables._AWS_SUFFIXES) - 1


@pytest.mark.parametrize("damaged", ["", "[]", "{}", "no JSON"])
def test_preparing_again_replaces_a_damaged_rule_set(tmp_path: Path, damaged: str) -> None:
    prepare_environment(URL, {}, folder=tmp_path)
    (path,) = (tmp_path / "models" / "sqs").rglob("*.json")
    written = path.read_text()
    path.write_text(damaged)
    prepare_environment(URL, {}, folder=tmp_path)
    assert path.read_text() == written


def test_the_sdks_configuration_is_never_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.yaml"
    sagemaker_v2.write_config(path)
    with path.open() as reader:
        monkeypatch.setattr(sagemaker_v2, "build_config", lambda: {"SchemaVersion": "2.0"})
        sagemaker_v2.write_config(path)
        assert json.load(reader)["SchemaVersion"] == "1.0", "a program that has opened it reads what it was"
    assert json.loads(path.read_text())["SchemaVersion"] == "2.0"


def test_a_commands_own_hooks_come_first_and_once(tmp_path: Path) -> None:
    own = {"XDG_CACHE_HOME": str(tmp_path), "NODE_OPTIONS": "--max-old-space-size=99", "PYTHONPATH": "/mine"}
    first = prepare_command_environment(URL, own)
    assert first["NODE_OPTIONS"] == f"{NODE_OPTION} --max-old-space-size=99"
    assert first["PYTHONPATH"] == os.pathsep.join([STARTUP_FOLDER, "/mine"])
    assert prepare_command_environment(URL, first) == first


def test_each_endpoint_has_a_folder_of_its_own(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    assert default_folder(URL, environment) == tmp_path / "smdebug-emulator/clients/127.0.0.1-4580"
    assert default_folder("http://127.0.0.1:4581", environment) != default_folder(URL, environment)
    assert default_folder(URL, {"HOME": str(tmp_path)}).is_relative_to(tmp_path / ".cache")


def test_only_what_a_command_waits_for_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import sys, sdk_compat.__main__; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    slow = {"boto3", "botocore", "email", "http.client", "ssl", "subprocess", "tempfile", "urllib.request"}
    assert not slow & set(done.stdout.split())


@pytest.mark.parametrize("url", ["127.0.0.1:4580", "http://", "ftp://x", "http://x:port", "http://x/path"])
def test_bad_endpoint_is_reported(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EndpointError):
        prepare_environment(url, {}, folder=tmp_path)
    assert main(["env", "--endpoint", url]) == 1
    assert capsys.readouterr().err.startswith(f"{url!r} is not a")


def test_role_of_an_emulator_that_does_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "--endpoint", "http://127.0.0.1:9", "--role", "r"]) == 1
    assert "No emulator answers at http://127.0.0.1:9" in capsys.readouterr().err


def test_variables_of_an_emulator_that_is_started_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["env", "--endpoint", "http://127.0.0.1:9"]) == 0
    said = capsys.readouterr()
    assert "export AWS_ENDPOINT_URL=http://127.0.0.1:9\n" in said.out
    assert (said.err.count("\n"), "start one with smdebug-emulator start" in said.err) == (1, True)


@pytest.fixture(params=["page", "missing page", "no HTTP"])
def other_service(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of what is not an emulator, and answers."""
    status = {"page": b"HTTP/1.1 200 OK", "missing page": b"HTTP/1.1 404 Not Found", "no HTTP": b"SSH-2.0-Other"}
    answer = status[request.param] + b"\r\nContent-Length: 4\r\nConnection: close\r\n\r\nElse"
    with answering(answer) as address:
        yield address


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Answer every request on an address with the same bytes."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.connection.recv(65536)
            self.wfile.write(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@pytest.mark.parametrize("role", [["--role", "r"], []], ids=["role", "no role"])
@pytest.mark.parametrize("action", [["env"], ["run", "true"]], ids=["env", "run"])
def test_another_service_on_the_port(
    other_service: str,
    action: list[str],
    role: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main([action[0], "--endpoint", other_service, *role, *action[1:]]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"What answers at {other_service} is not an emulator: start one on another port with")


def test_why_an_emulator_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    document = b"<ErrorResponse><Error><Code>InsufficientStorage</Code><Message>Disk &amp; all full.</Message></Error>"
    with answering(b"HTTP/1.1 507 Insufficient Storage\r\n\r\n" + document) as address:
        with pytest.raises(EmulatorAnswerError) as refused:
            assume_role(address, {**CREDENTIALS, "AWS_REGION": "us-east-1"}, "r")
        assert str(refused.value) == f"The emulator at {address} refuses: Disk & all full."


def test_exports_survive_the_shell(tmp_path: Path) -> None:
    text = format_exports({"A": "it's $HOME; `x`"}, {})
    done = subprocess.run(["sh", "-c", f'{text}; printf %s "$A"'], capture_output=True, text=True, check=True)
    assert done.stdout == "it's $HOME; `x`"


REAL = {"AWS_ENDPOINT_URL_S3": "https://s3.prod.example", "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": "https://prod.example"}


def test_exports_unset_the_endpoint_of_a_service() -> None:
    text = format_exports({"A": "x"}, {**REAL, "AWS_ENDPOINT_URL_S3-OF;exit": "no name in a shell"})
    done = subprocess.run(["sh", "-ec", f"{text}; env"], capture_output=True, text=True, check=True, env=REAL)
    assert "A=x\n" in done.stdout
    assert "AWS_ENDPOINT_URL_" not in done.stdout


def test_exports_lead_the_emulators_own_commands() -> None:
    """The address of an emulator elsewhere would overrule the folder of one that is here."""
    here, elsewhere = {"SMDEBUG_EMULATOR_STATE_DIR": "/my state"}, {"SMDEBUG_EMULATOR_REMOTE": "http://lab:4580"}
    for place in (here, elsewhere):
        text = format_exports({"A": "x"}, place)
        shell = ["sh", "-ec", f"{text}; env"]
        done = subprocess.run(shell, capture_output=True, text=True, check=True, env={"SMDEBUG_EMULATOR_REMOTE": "old"})
        assert [line for line in done.stdout.splitlines() if line.startswith("SMDEBUG_")] == [
            f"{name}={value}" for name, value in place.items()
        ]


def test_the_endpoint_of_a_service_does_not_lead_a_process_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in REAL.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    process = ProcessEnvironment()
    process.lead({"AWS_ENDPOINT_URL": URL})
    try:
        assert [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")] == ["AWS_ENDPOINT_URL"]
    finally:
        process.restore()
    assert dict(os.environ) == before


def test_temporary_credentials_of_the_user_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that `aws configure export-credentials --format env` prints end, and the emulator's do not."""
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", "2020-01-01T00:00:00+00:00")
    monkeypatch.setenv("AWS_SECURITY_TOKEN", "real")
    process = ProcessEnvironment()
    process.lead({**CREDENTIALS, "AWS_SESSION_TOKEN": "of-the-emulator"})
    try:
        credentials: Any = BotocoreSession().get_credentials()
        assert credentials.get_frozen_credentials().token == "of-the-emulator"
    finally:
        process.restore()


@pytest.mark.parametrize("command", [[], ["--"]])
def test_run_without_a_command(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", *command])
    assert "run what?" in capsys.readouterr().err


def test_run_of_a_command_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["run", "--endpoint", URL, "--", "no-such-command"]) == 127
    wanted = "no-such-command cannot be run, because there is no such program: name a program that PATH has, or"
    assert capsys.readouterr().err.splitlines()[-1].startswith(wanted)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["run", "--endpoint", URL, "--", "aws", "s3", "ls"]) == 127
    assert capsys.readouterr().err.endswith(": pip install awscli.\n")
