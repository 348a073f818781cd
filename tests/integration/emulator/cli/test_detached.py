"""Detached emulators: work without a terminal, and the end in the log."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.cli.service.ending import EndRequests, log_end
from emulator.state.folder import is_free
from tests.boto3_client import make_client
from tests.commands import run_command
from tests.forked_emulator import ForkedEmulator
from tests.unprivileged import AS_NOBODY, needs_other_user
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Command = Callable[..., Any]

COMMAND = [sys.executable, "-P", "-m", "emulator"]


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """Run a command on a state folder of its own; the emulator that is left on it is stopped.

    What starts an emulator, or one again, and what leaves a download is a process of its own.
    """
    state = tmp_path / "state"

    def run(*arguments: str, code: int = 0) -> Any:
        if arguments[0] not in {"start", "state"}:
            return run_command(*arguments, "--state-dir", str(state), code=code)
        done = subprocess.run(
            [*COMMAND, *arguments, "--state-dir", str(state)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    yield run
    if not is_free(state):
        run("stop")


def start(command: Command, *options: str) -> str:
    said: str = command("start", "-d", "--port", "0", "--runtime", "process", *options).stdout
    return said


@pytest.mark.parametrize("detach", [[], ["--detach"]], ids=["in the foreground", "detached"])
def test_a_start_on_a_port_that_is_taken_leaves_nothing(detach: list[str], command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert command("start", *detach, "--port", port, code=1).stderr == (
            f"Port {port} of 127.0.0.1 is taken: stop what listens there, or give another port with --port.\n"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_detached_emulator_takes_another_state_as_often_as_it_is_asked(command: Command, tmp_path: Path) -> None:
    start(command, "--log-level", "error")
    archive = str(tmp_path / "state.tar")
    command("state", "export", archive)
    nowhere = str(tmp_path / "state.tar" / "state.tar")
    assert command("state", "export", nowhere, code=1).stderr == f"{nowhere} cannot be written: Not a directory\n"
    assert command("state", "import", archive).stdout == f"Imported the state of {archive}.\n"
    health = json.loads(command("status", "--json").stdout)["emulator"]
    assert health["status"] == "running"
    make_client(health["endpoint"], "sqs").create_queue(QueueName="waiting")
    assert "state import would replace 0 jobs, 0 buckets" in command("state", "import", archive, code=1).stderr
    assert "QueueUrls" in make_client(health["endpoint"], "sqs").list_queues()
    command("state", "import", archive, "--yes")
    assert "QueueUrls" not in make_client(health["endpoint"], "sqs").list_queues()
    command("stop")
    log = (tmp_path / "state" / "emulator.log").read_text()
    assert log.count("The emulator restarts: an archive replaces its state.") == 2
    assert "The emulator stops: it received SIGTERM.\n" in log
    assert "The emulator has stopped.\n" in log


def test_it_outlives_its_command_and_a_kill_is_reported_with_the_interpreter_s_stack(
    command: Command, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    kept = [state / "jobs" / f"{name}-0123456789ab" for name in ("old", "new")]
    for folder in kept:
        folder.mkdir(parents=True)
    os.utime(kept[0], (1, 1))
    started = start(command, "--log-level", "debug", "--retention", "1h", "--retention-size", "1G")
    assert started.startswith("http://127.0.0.1:")
    assert started.endswith(f" Log: {state}/emulator.log\n")
    wait_until(lambda: not kept[0].exists(), "what a job left an hour ago to be gone")
    assert kept[1].exists()
    found = {finding["subject"]: finding for finding in json.loads(command("doctor", "--json").stdout)}
    assert found["emulator"]["found"].startswith(f"it answers at {started.split()[0]}")
    assert {"versions", "sdk", "engine", "disk", "clients"} <= found.keys()
    assert (found["sdk"]["state"], found["sdk"]["found"]) == ("ok", "sagemaker 2.257.7")
    killed = json.loads((state / "emulator.json").read_text())["pid"]
    os.kill(killed, signal.SIGSEGV)
    wait_until(lambda: is_free(state), "the end of the emulator")
    assert "Fatal Python error: Segmentation fault" in (state / "emulator.log").read_text()
    assert f"The last one, process {killed}, did not close: it was killed" in command("jobs", code=1).stderr
    with ForkedEmulator(state, runtime="process") as again:
        assert f"process {killed}, did not close: it was killed" in again.log_text()
    assert "did not close" not in command("jobs", code=1).stderr


@pytest.mark.nightly  # the test of other states has an import, which asks as long as the emulator restarts
def test_an_import_says_at_once_that_the_emulator_did_not_come_back(command: Command, tmp_path: Path) -> None:
    start(command)
    archive, state = tmp_path / "state.tar", tmp_path / "state"
    command("state", "export", str(archive))
    # What it is to listen with once it starts again.
    (state / "keys.json").write_text("no JSON")
    said = command("state", "import", str(archive), code=1).stderr
    assert f"does not answer with the new state; its log, {state / 'emulator.log'}, says why." in said
    assert "keys.json" in (state / "emulator.log").read_text()


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), MemoryError(), RuntimeError("words")])
def test_an_error_that_ends_the_process_is_in_its_log(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended, log_end(detached=True):
        raise error
    assert ended.value.code == 1
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_requests_are_served_in_their_order() -> None:
    requests = EndRequests()
    requests.restart("an import")
    requests.stop("Ctrl-C")
    assert requests.wait()
    assert not requests.wait(), "a stop during a restart is not lost"


@needs_other_user
@pytest.mark.parametrize("detach", [["-d"], pytest.param([], marks=pytest.mark.nightly)])
@pytest.mark.parametrize("mode", [0o755, pytest.param(0o700, marks=pytest.mark.nightly)])
def test_a_folder_of_another_user_is_one_line(detach: list[str], mode: int, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=mode)
    done = subprocess.run(
        [*AS_NOBODY, *COMMAND, "start", "--port", "0", "--state-dir", str(state), *detach],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"The state folder {state} cannot be written (Permission denied; {state} is of root, mode {mode:04o}): "
        f"give another with --state-dir, or make it yours: sudo chown -R nobody {state}.\n"
    )
