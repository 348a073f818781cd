"""Tests of local processes: supervisors, files and loopback networks."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from container_runtime.contract.fixtures import shared  # noqa: F401 - a fixture
from container_runtime.contract.programs import (
    DEADLINE_SECONDS,
    IMAGE,
    MEBIBYTE,
    in_container,
    python,
    run,
)
from container_runtime.process import loopback_network
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import (
    MAX_NETWORK_HOSTS,
    ContainerRuntimeError,
    Exit,
    NetworkExhaustedError,
)
from container_runtime.spec import Mount
from tests.waiting import wait_until


def test_the_number_of_hosts_in_a_loopback_network_is_limited(tmp_path: Path) -> None:
    runtime = LocalProcesses(tmp_path / "processes")
    hosts = [f"algo-{number}" for number in range(1, MAX_NETWORK_HOSTS + 2)]
    network = runtime.create_network("full", hosts[:-1], {})
    assert len(set(network.addresses.values())) == MAX_NETWORK_HOSTS
    with socket.create_server((network.addresses[hosts[-2]], 0)):
        pass  # the last one is an address of this machine, too
    with pytest.raises(ContainerRuntimeError, match="251 hosts: 250 fit"):
        runtime.create_network("too-full", hosts, {})


def test_loopback_ranges_that_run_out_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_network, "_SECOND", range(64, 65))
    monkeypatch.setattr(loopback_network, "_THIRD", range(1))
    runtime = LocalProcesses(tmp_path / "processes")
    runtime.create_network("first", ["algo-1"], {})
    with pytest.raises(NetworkExhaustedError, match="wait until some jobs have ended"):
        runtime.create_network("second", ["algo-1"], {})
    runtime.remove_network("first")
    runtime.create_network("second", ["algo-1"], {})


def test_process_back_end_leaves_no_file_and_no_zombie(tmp_path: Path) -> None:
    runtime = LocalProcesses(tmp_path / "processes")
    source = "import os; print(os.environ['HOME']); print(os.environ['TMPDIR']); print(os.getppid())"
    spec = python(source)
    _, lines = run(runtime, spec)
    runtime.remove(spec.name)
    assert not any(Path(folder).exists() for folder in lines[:2])
    assert list((tmp_path / "processes").iterdir()) == []
    assert not Path(f"/proc/{lines[2]}").exists()


@pytest.mark.parametrize("killed", ["supervisor", "its guardian", "both"])
def test_process_ends_with_a_supervisor_that_is_killed(tmp_path: Path, shared: Mount, killed: str) -> None:
    """And so does what it has started, be it a daemon in a session of its own."""
    runtime = LocalProcesses(tmp_path / "processes")
    source = f"""
import fcntl, os, time
lock = open({in_container(runtime, shared, "held")}, "w")
fcntl.flock(lock, fcntl.LOCK_EX)
parent, ready = os.getppid(), os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(ready[1], b"x")
    time.sleep(60)
os.read(ready[0], 1)
print(parent, flush=True)
time.sleep(60)
"""
    container = runtime.start(python(source, mounts=(shared,)))
    supervisor = int(next(runtime.logs(container)).text)
    guardian = int((tmp_path / "processes" / container / "supervisor.pid").read_text())
    victims = {"supervisor": [supervisor], "its guardian": [guardian], "both": [supervisor, guardian]}[killed]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, neither sees the other's end
        for victim in victims:
            os.kill(victim, number)
    if killed == "both":  # the kernel ends no more than the one process: the next look at the container ends the rest
        assert LocalProcesses(tmp_path / "processes").wait(container, DEADLINE_SECONDS) is not None

    def is_free() -> bool:
        with (shared.source / "held").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    wait_until(is_free, "the end of the supervised process")
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(128 + signal.SIGKILL)
    runtime.remove(container)


def test_supervisor_of_a_sleeping_process_sleeps_too(tmp_path: Path) -> None:
    """Its process measures it: of a core, the supervisor takes less than a hundredth."""
    source = """
import os, time
def read_seconds():
    ticks = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
before = read_seconds()
time.sleep(5)
print(read_seconds() - before)
"""
    runtime = LocalProcesses(tmp_path / "processes")
    spec = python(source, memory_bytes=8 * 1024 * MEBIBYTE)
    ended, lines = run(runtime, spec)
    runtime.remove(spec.name)
    assert ended == Exit(0)
    assert float(lines[0]) <= 0.05


def test_process_back_end_clears_a_half_started_container_away(tmp_path: Path) -> None:
    half = tmp_path / "processes" / "half-started"
    half.mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    (half / "container.json").write_text(
        json.dumps({"name": "half-started", "labels": {}, "scratch": str(tmp_path / "scratch")})
    )
    (half / "lock").touch()
    assert LocalProcesses(tmp_path / "processes").find({}) == []
    assert not half.exists()
    assert not (tmp_path / "scratch").exists()


def test_process_back_end_clears_away_what_a_killed_start_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, temporary = tmp_path / "processes", tmp_path / "temporary"
    temporary.mkdir()
    source = f"""
import os, pathlib
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.process_builder import ProcessBuilder
from container_runtime.spec import ContainerSpec
ProcessBuilder.build = lambda *_: os._exit(9)
LocalProcesses(pathlib.Path({str(folder)!r})).start(ContainerSpec("killed", {IMAGE!r}, ("true",)))
"""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    assert subprocess.run([sys.executable, "-c", source], env=environment, timeout=400, check=False).returncode == 9
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (starting,) = folder.iterdir()
    (temporary / starting.name.replace(".starting-", "smdebug-emulator-") / "home").mkdir()
    LocalProcesses(folder)
    assert starting.exists(), "it may be another thread's, just now"
    os.utime(starting, (0, 0))
    LocalProcesses(folder)
    assert list(folder.iterdir()) == list(temporary.iterdir()) == []


def test_a_start_that_was_killed_has_no_container_on_its_network(tmp_path: Path) -> None:
    runtime = LocalProcesses(tmp_path)
    for name, record in (("begun", ""), ("recorded", '{"network": "job"}')):
        (tmp_path / f".starting-{name}").mkdir()
        (tmp_path / f".starting-{name}" / "container.json").write_text(record)
    runtime.create_network("job", ["algo-1"], {})
    runtime.remove_network("job")
    assert runtime.find_networks({}) == []


def test_process_back_end_opens_while_another_removes_a_container(tmp_path: Path) -> None:
    (tmp_path / ".starting-gone-container-1").symlink_to("nowhere")  # listed, and not there when it is looked at
    assert LocalProcesses(tmp_path).find({}) == []
