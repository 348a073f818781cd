"""Tests of the command line, in a separate process."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from emulator.cli.commands import main
from tests.boto3_client import make_client
from tests.commands import run_command
from tests.forked_emulator import ForkedEmulator, ForkedProcess, open_forking_process

Start = Callable[..., subprocess.Popen[str]]

COMMAND = [sys.executable, "-m", "emulator"]


class ForkedStart(NamedTuple):
    """A `start` in a fork, and the file that has its standard error."""

    process: ForkedProcess
    log: Path

    def end(self) -> tuple[int, str, str]:
        """Wait for its end, and return the exit code, the rest of its output, and its standard error."""
        return self.process.wait(), self.process.stdout.read(), self.log.read_text()


@contextmanager
def default_hangup() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def begin(
        *arguments: str, state_dir: Path = tmp_path / "state", runtime: tuple[str, ...] = ("--runtime", "process")
    ) -> subprocess.Popen[str]:
        command = [*COMMAND, "start", *runtime, "--state-dir", str(state_dir), *arguments]
        # The tests may run under nohup, whose children ignore SIGHUP: here it is to have its usual meaning.
        with default_hangup():
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=400)


@pytest.fixture
def fork(tmp_path: Path) -> Iterator[Callable[..., ForkedStart]]:
    """Start one in a fork, where no test asks for a signal or a module of the interpreter's own."""
    started: list[ForkedStart] = []

    def begin(*, state_dir: Path = tmp_path / "state", runtime: str = "process") -> ForkedStart:
        log = tmp_path / f"{len(started)}.log"
        arguments = ["start", "--port", "0", "--runtime", runtime, "--state-dir", str(state_dir)]
        with log.open("w") as errors:
            process = open_forking_process().fork(arguments, os.environ, errors.fileno(), new_session=False)
        started.append(ForkedStart(process, log))
        return started[-1]

    yield begin
    for each in started:
        each.process.kill()
        each.process.communicate()


def first_line(process: subprocess.Popen[str] | ForkedProcess) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedEmulator]:
    """One that no test stops."""
    with ForkedEmulator(tmp_path_factory.mktemp("service") / "state", runtime="process") as started:
        yield started


@pytest.mark.nightly  # by day a fork and one with an upstream smdebug beside it start so, and end by SIGTERM
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_start_says_one_line_and_stops_cleanly(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    process = start("--port", "0")
    line = first_line(process)
    assert line.startswith("http://127.0.0.1:")
    assert f"State: {tmp_path / 'state'}" in line
    process.send_signal(number)
    out, err = process.communicate(timeout=400)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.slow
def test_a_session_with_every_command(fork: Callable[..., ForkedStart], tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    started = fork()
    line = first_line(started.process)
    endpoint = line.split()[0]
    assert endpoint.startswith("http://127.0.0.1:")
    assert "Containers run as local processes, as requested." in line
    assert f"State: {state}" in line

    exported = subprocess.run(  # which becomes another program
        [*COMMAND, "env", "--state-dir", state], capture_output=True, text=True, check=True, timeout=400
    )
    assert f"export AWS_ENDPOINT_URL={endpoint}\n" in exported.stdout
    shell = subprocess.run(
        ["/bin/sh", "-c", f"{exported.stdout}\nenv"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/bin:/usr/bin"},
    )
    assert f"AWS_ENDPOINT_URL={endpoint}\n" in shell.stdout
    assert "AWS_DEFAULT_REGION=us-east-1\n" in shell.stdout

    status = json.loads(run_command("status", "--state-dir", state, "--json").stdout)
    assert status["emulator"]["pid"] == started.process.pid
    assert status["emulator"]["status"] == "running"
    assert status["trainingJobs"] == []
    shown = run_command("status", "--state-dir", state).stdout
    assert "No training jobs yet." in shown
    assert shown.startswith(f"The emulator answers at {endpoint} (version ")
    assert re.search(r"^Running +0 training jobs, 0 rules$", shown, re.MULTILINE)
    assert "None" not in shown

    deployed = run_command("stop-handler", "deploy", "--state-dir", state, "--rule", "VanishingGradient")
    assert "function:smdebug-stop-training" in deployed.stdout

    removed = run_command("stop-handler", "remove", "--state-dir", state)
    assert removed.stdout == "Removed the rule, the function, the role of smdebug-stop-training.\n"
    again = run_command("stop-handler", "remove", "--state-dir", state, code=1)
    assert again.stderr.partition(":")[0] == "There is no stop handler smdebug-stop-training"

    interrupted = run_command("interrupt", "no-such-job", "--state-dir", state, code=3)
    assert interrupted.stderr == "There is no training job no-such-job: smdebug-emulator jobs lists the jobs.\n"

    stopped = run_command("stop", "--state-dir", state)
    assert stopped.stdout == f"Stopped the emulator at {endpoint}.\n"
    assert started.end() == (0, "", "")


@pytest.mark.slow
def test_what_differs_from_usual_is_reported(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upstream's smdebug beside ours, and jobs in processes where no runtime was asked for and no engine answers."""
    information = tmp_path / "site" / "smdebug-1.0.34.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: smdebug\nVersion: 1.0.34\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    process = start("--port", "0", runtime=())
    assert "No Docker engine answers: containers run as local processes." in first_line(process)
    process.terminate()
    err = process.communicate(timeout=400)[1]
    assert process.returncode == 0
    assert err.startswith("Upstream smdebug 1.0.34 is installed in this environment too")
    assert err.count("\n") == 1


def test_a_second_emulator_on_the_folder_is_one_line(fork: Callable[..., ForkedStart], shared: ForkedEmulator) -> None:
    code, out, err = fork(state_dir=shared.state_dir).end()
    assert (code, out) == (1, "")
    assert err.startswith("Another emulator is using the state folder")
    assert f"; it answers at {shared.endpoint_url}: use that one, stop it" in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_one_line(fork: Callable[..., ForkedStart], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = fork(state_dir=tmp_path / "file" / "state").end()
    assert (code, out) == (1, "")
    assert "cannot be written" in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_docker_that_is_not_there_is_one_line(
    fork: Callable[..., ForkedStart], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    code, out, err = fork(runtime="docker").end()
    assert (code, out) == (1, "")
    assert "--runtime process" in err
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.nightly  # moto_services/ has the state of each service after a kill
def test_s3_and_settings_survive_a_kill(start: Start) -> None:
    process = start("--port", "0")
    s3 = make_client(first_line(process).split()[0], "s3")
    s3.create_bucket(Bucket="kept")
    s3.put_object(Bucket="kept", Key="k", Body=b"v")
    process.kill()
    process.wait(60)
    s3 = make_client(first_line(start("--port", "0")).split()[0], "s3")
    assert s3.get_object(Bucket="kept", Key="k")["Body"].read() == b"v"


@pytest.mark.parametrize("command", [["env"], ["stop"], ["status"], ["stop-handler", "deploy"], ["jobs"], ["events"]])
def test_without_an_emulator_the_commands_say_how_to_start_one(command: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [*command, "--state-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert "smdebug-emulator start" in result.output


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["rules", "list"], pytest.param(["env"], marks=pytest.mark.nightly)])
def test_files_of_the_current_folder_take_no_module_s_place(
    shared: ForkedEmulator, tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands' own subprocesses start in the user's folder, where any name may be taken."""
    for name in ("smdebug", "sdk_compat", "json", "botocore"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMDEBUG_EMULATOR_STATE_DIR", str(shared.state_dir))
    code = "import sys; sys.path.remove(''); from emulator.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=400
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_variable_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_EMULATOR_PORT", "many")
    result = CliRunner().invoke(main, ["env"])
    assert result.exit_code == 1
    assert result.output == "SMDEBUG_EMULATOR_PORT is 'many': give a whole number from 0 to 65535.\n"


def test_help_teaches() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert 'eval "$(smdebug-emulator env)"' in result.output
    for command in ("start", "env", "stop", "status", "stop-handler"):
        assert command in result.output


def test_a_python_that_is_too_old_is_one_line() -> None:
    source = "import sys; sys.version_info = (3, 10, 0); from emulator.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("The service needs Python 3.11 or later")


def test_library_alone_says_which_extra_the_service_needs() -> None:
    """Training containers install the distribution without click, Flask, moto or Docker."""
    hide_click = "import sys; sys.modules['click'] = None; import emulator.__main__; emulator.__main__.main()"
    done = subprocess.run([sys.executable, "-c", hide_click], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("The service needs click")
    assert "smdebug-emulator[emulator]" in done.stderr


@pytest.mark.slow
def test_an_emulator_of_another_version_is_reported(
    shared: ForkedEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("emulator.cli.running.VERSION", "9.9")
    replaced: list[str] = []
    monkeypatch.setattr(os, "execv", lambda path, _arguments: replaced.append(path))
    state = ["--state-dir", str(shared.state_dir)]
    for arguments, said in (
        (["jobs", *state], "No training jobs yet.\n"),
        (["env", *state], ""),
        (["run", *state, "echo", "run"], ""),
    ):
        done = run_command(*arguments)
        assert done.stdout.startswith(said)
        assert "is version 0.1.0, this command 9.9: restart it (smdebug-emulator stop, then start)." in done.stderr
    assert replaced == [sys.executable] * 2, "the last two become other programs"


def test_the_doctor_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        monkeypatch.setenv("SMDEBUG_EMULATOR_PORT", str(port))
        result = CliRunner().invoke(main, ["doctor", "--state-dir", str(tmp_path)])
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert f"missing port      {port} is in use" in lines
    assert f"{'':<18}-> smdebug-emulator start --port N, or 0" in lines
    assert "note    engine    no Docker engine answers: jobs run as local processes" in lines


@pytest.mark.parametrize("runtime", ["auto", "docker", "process"])
@pytest.mark.parametrize("engine", ["Docker Engine 29", None])
def test_the_doctor_names_environments_that_are_not_built(
    engine: str | None, runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    monkeypatch.setattr("container_runtime.docker.daemon.describe_engine", lambda: engine)
    result = CliRunner().invoke(main, ["doctor", "--json", "--runtime", runtime, "--state-dir", str(tmp_path)])
    remedy = "smdebug-emulator images build --runtime process NAME"
    found = [each["found"] for each in json.loads(result.output)]
    remedies = [each["remedy"] for each in json.loads(result.output)]
    # A job of the engine's needs none.
    assert (remedy in remedies, "mxnet-training" in str(found)) == (engine is None or runtime != "docker",) * 2


@pytest.mark.parametrize(
    ("variables", "state", "said"),
    [
        ({}, None, ""),
        ({"HOST": "192.0.2.254"}, "missing", "It is not an address of this machine: give --host one of those"),
        ({"ADVERTISE": "localhost"}, "missing", "an address of that machine itself"),
        ({"TLS_CERTIFICATE": "/gone"}, "missing", "also needs --tls-key"),
        ({"TLS_CERTIFICATE": "/gone", "TLS_KEY": "/gone"}, "missing", "/gone cannot be read: No such file"),
        ({"TLS": "1"}, "ok", "this machine alone, over TLS with a generated certificate"),
    ],
)
def test_the_doctor_tries_where_other_machines_are_to_ask(
    variables: dict[str, str], state: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    for name, value in variables.items():
        monkeypatch.setenv(f"SMDEBUG_EMULATOR_{name}", value)
    result = CliRunner().invoke(main, ["doctor", "--json", "--state-dir", str(tmp_path)])
    reach = [finding for finding in json.loads(result.output) if finding["subject"] == "reach"]
    assert [each["state"] for each in reach] == ([] if state is None else [state])
    assert all(said in each["found"] for each in reach)
    assert not (tmp_path / "tls").exists(), "it only looks"


@pytest.mark.parametrize(
    ("credentials", "state"),
    [({}, "note"), ({"AWS_PROFILE": "gone"}, "note"), ({"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}, "ok")],
)
def test_the_doctor_misses_credentials(
    credentials: dict[str, str], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    here = {"HOME": str(tmp_path), "DOCKER_HOST": f"unix://{tmp_path}/nothing.sock", "AWS_ENDPOINT_URL": "http://x:1"}
    for name, value in {**here, **credentials}.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(main, ["doctor", "--json", "--state-dir", str(tmp_path)])
    (clients,) = [finding for finding in json.loads(result.output) if finding["subject"] == "clients"]
    said = "find no credentials" in clients["found"], "smdebug-emulator env" in clients["remedy"]
    assert (clients["state"], *said) == (state, state == "note", state == "note")


@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_completion_is_written_where_the_shell_looks(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    result = CliRunner().invoke(main, ["completion", "install"])
    assert result.exit_code == 0, result.output
    files = {"fish": "fish/completions/smdebug-emulator.fish", "zsh": "zsh/site-functions/_smdebug-emulator"}
    assert "_SMDEBUG_EMULATOR_COMPLETE" in (tmp_path / files[shell]).read_text()


def test_completion_for_a_shell_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    result = CliRunner().invoke(main, ["completion", "install"])
    assert result.exit_code == 1
    assert "give --shell bash, --shell fish, --shell zsh." in result.output
