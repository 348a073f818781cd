"""Tests of the parallel start of a job's hosts, including failed starts.

No container is forgotten where another is not started.
"""

from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import pytest

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import ContainerStartError, EngineUnavailableError, Exit
from container_runtime.spec import ContainerSpec
from emulator.jobs.runs.containers.host_containers import HostContainers
from emulator.jobs.staging.hosts import Host
from tests.waiting import wait_until

_DEADLINE_SECONDS = 60.0
_HOSTS = [Host(f"algo-{number}", "all", None) for number in (1, 2, 3)]


class _Together(LocalProcesses):
    """Real processes, none of which is started before the start of all was asked for, as where files come first."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._all = Barrier(len(_HOSTS))

    def start(self, spec: ContainerSpec) -> str:
        self._all.wait(_DEADLINE_SECONDS)
        return super().start(spec)


def _build_specs(program: str) -> dict[Host, ContainerSpec]:
    image, command = "sagemaker-debugger-rules", ("-c", "")
    return {
        host: ContainerSpec(host.name, image, command, (program if host is _HOSTS[1] else "python",)) for host in _HOSTS
    }


def test_hosts_are_started_side_by_side(tmp_path: Path) -> None:
    containers = HostContainers(_Together(tmp_path / "processes"), "job", {})
    containers.start(_build_specs("python"), lambda: None)
    containers.follow(_HOSTS, lambda _host, _line: None)
    try:
        ended = containers.wait(_DEADLINE_SECONDS)
        assert ended is not None
        assert {each.host.name: each.exit.code for each in ended} == {host.name: 0 for host in _HOSTS}
    finally:
        containers.close()


def test_those_that_were_started_beside_one_that_was_not_are_removed(tmp_path: Path) -> None:
    runtime = _Together(tmp_path / "processes")
    containers = HostContainers(runtime, "job", {})
    with pytest.raises(ContainerStartError, match="no-such-program"):
        containers.start(_build_specs("no-such-program"), lambda: None)
    assert len(runtime.find({})) == len(_HOSTS) - 1
    containers.close()
    assert runtime.find({}) == []


def refuse_threads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Refuse threads whose names begin with ``name``, as a system does that has no more."""
    start = Thread.start

    def refuse(thread: Thread) -> None:
        if thread.name.startswith(name):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(Thread, "start", refuse)


def test_those_are_removed_that_were_started_before_the_system_had_no_more_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_threads(monkeypatch, "start-job_1")
    runtime = LocalProcesses(tmp_path / "processes")
    containers = HostContainers(runtime, "job", {})
    with pytest.raises(RuntimeError, match="can't start new thread"):
        containers.start(_build_specs("python"), lambda: None)
    assert runtime.find({}) != []
    containers.close()
    assert runtime.find({}) == []


def test_those_that_are_not_followed_are_removed_with_the_others(tmp_path: Path) -> None:
    def fail_for_the_last(host: Host) -> tuple[()]:
        if host is _HOSTS[-1]:
            raise OSError("no space left on device")
        return ()

    runtime = LocalProcesses(tmp_path / "processes")
    containers = HostContainers(runtime, "job", {})
    containers.start(_build_specs("python"), lambda: None)
    with pytest.raises(OSError, match="no space"):
        containers.follow(_HOSTS, lambda _host, _line: None, fail_for_the_last)
    containers.close()
    assert runtime.find({}) == []


def test_running_ones_are_removed_though_the_system_has_no_more_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = LocalProcesses(tmp_path / "processes")
    containers = HostContainers(runtime, "job", {})
    asleep = ("-c", "import time; time.sleep(600)")
    containers.start(
        {host: replace(spec, command=asleep) for host, spec in _build_specs("python").items()}, lambda: None
    )
    containers.follow(_HOSTS, lambda _host, _line: None)
    refuse_threads(monkeypatch, "stop-")
    containers.close()
    assert runtime.find({}) == []


class _LosingOne(LocalProcesses):
    """Real processes, of which the wait for one fails, as where one of two connections to an engine breaks."""

    lost = ""

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        if container_id == self.lost:
            raise EngineUnavailableError("the connection was reset")
        return super().wait(container_id, timeout)


def test_those_that_go_on_are_not_waited_for_where_one_is_lost(tmp_path: Path) -> None:
    runtime = _LosingOne(tmp_path / "processes")
    containers = HostContainers(runtime, "job", {})
    asleep = ("-c", "import time; print('begun', flush=True); time.sleep(600)")
    containers.start(
        {host: replace(spec, command=asleep) for host, spec in _build_specs("python").items()}, lambda: None
    )
    found = {each.name: each for each in runtime.find({})}
    runtime.lost = found[_HOSTS[0].name].id
    containers.follow(_HOSTS, lambda _host, _line: None)
    with pytest.raises(EngineUnavailableError):
        containers.wait(60)
    containers.let_go()
    runtime.lost = ""
    again = HostContainers(runtime, "job", found)
    lines: list[tuple[str, str]] = []
    again.follow(_HOSTS, lambda host, line: lines.append((host.name, line.text)))
    wait_until(lambda: len(lines) == len(_HOSTS), lambda: lines)
    again.ask_stop(0.0)
    assert again.wait(60) is not None
    again.close()
    assert sorted(lines) == sorted((host.name, "begun") for host in _HOSTS), "each is read anew, from its first line"
    assert runtime.find({}) == []
