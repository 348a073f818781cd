"""Containers of a training job's hosts: parallel start, common end."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from emulator.jobs.runs.containers.container import JobContainer, remove_container

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from container_runtime.runtime import Container, ContainerRuntime, Exit, LogLine
    from container_runtime.spec import ContainerSpec
    from emulator.jobs.runs.containers.container import Agent
    from emulator.jobs.staging.hosts import Host

# What the others get between SIGTERM and SIGKILL once one host has failed: enough to flush files.
FAILURE_GRACE_SECONDS = 5.0

_STOPPED = frozenset({128 + signal.SIGTERM, 128 + signal.SIGKILL})


@dataclass(frozen=True, slots=True)
class HostExit:
    """How the container of one host ended.

    Attributes:
        host: which.
        exit: its exit.
        was_stopped: it ran on when another host had failed, and was stopped for that.
    """

    host: Host
    exit: Exit
    was_stopped: bool

    @property
    def failed(self) -> bool:
        """Whether it ended with an error, and not just by the signals that stopped it."""
        return self.exit.code != 0 and not (self.was_stopped and self.exit.code in _STOPPED)


class HostContainers:
    """What the hosts of one job run in. ``ask_stop`` may be called by any thread, the rest by the job's own."""

    def __init__(self, runtime: ContainerRuntime, job_name: str, containers: Mapping[str, Container]) -> None:
        """Prepare for a job's containers; ``containers`` are those, by host, that it had before a restart."""
        self._runtime = runtime
        self._job_name = job_name
        self._ids = {host: each.id for host, each in containers.items()}
        self._containers: dict[Host, JobContainer] = {}
        self._ended: SimpleQueue[Host] = SimpleQueue()
        self._exits: list[HostExit] = []
        self._running_on: frozenset[Host] = frozenset()
        self._stop_asked = False

    @property
    def followed(self) -> bool:
        """Whether ``follow`` was called."""
        return bool(self._containers)

    @property
    def exits(self) -> Sequence[HostExit]:
        """How those ended that have, first to last."""
        return self._exits

    def start(self, specs: Mapping[Host, ContainerSpec], check: Callable[[], None]) -> None:
        """Start the containers of all hosts at once, when there is room for all: files may have to be brought first.

        Args:
            specs: of the containers.
            check: called now and then before they start; what it raises ends the start.

        Raises:
            ContainerRuntimeError: as ``ContainerRuntime.reserve_capacity`` and ``start``.
        """
        with self._runtime.reserve_capacity(list(specs.values()), check):
            check()
            with ThreadPoolExecutor(len(specs), thread_name_prefix=f"start-{self._job_name}") as pool:
                starting = {host: pool.submit(self._runtime.start, spec) for host, spec in specs.items()}
        # Those that were started are known, and so removed, where another was not.
        self._ids |= {host.name: each.result() for host, each in starting.items() if each.exception() is None}
        for each in starting.values():
            each.result()

    def follow(
        self,
        hosts: Sequence[Host],
        on_line: Callable[[Host, LogLine], None],
        build_agents: Callable[[Host], Sequence[Agent]] = lambda _host: (),
    ) -> None:
        """Begin to read the logs, to measure and to wait for the ends of all containers, each started before."""
        for host in hosts:
            self._containers[host] = JobContainer(
                self._runtime,
                self._ids[host.name],
                f"{self._job_name}-{host.name}",
                partial(on_line, host),
                on_exit=partial(self._ended.put, host),
                agents=build_agents(host),
            )
        for container in self._containers.values():
            container.follow()

    def wait(self, timeout: float | None = None) -> Sequence[HostExit] | None:
        """Wait until all have ended, and return how, first to last; None when ``timeout`` seconds passed first.

        The first that ends with an error has the others stopped at once: they would wait for it without end, and
        ``timeout`` counts no more.

        Raises:
            ContainerRuntimeError: the back end can no longer tell.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while len(self._exits) < len(self._containers):
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                host = self._ended.get(timeout=left)
            except Empty:
                return None
            exit_status = self._containers[host].wait()
            assert exit_status is not None
            self._exits.append(HostExit(host, exit_status, host in self._running_on))
            if exit_status.code != 0 and not self._stop_asked:
                self._running_on = frozenset(
                    each for each, container in self._containers.items() if not container.has_ended
                )
                self.ask_stop(FAILURE_GRACE_SECONDS)
                # How the job ends is settled, and when: time that is up meanwhile changes nothing.
                deadline = None
        return self._exits

    def ask_stop(self, grace_seconds: float) -> None:
        """SIGTERM for all now, SIGKILL after the grace; returns at once."""
        self._stop_asked = True
        for container in self._containers.values():
            container.ask_stop(grace_seconds)

    def kill(self, seconds: float) -> None:
        """Kill what runs, and wait for its end, but not for longer than ``seconds``.

        Raises:
            ContainerRuntimeError: the back end can no longer tell.
        """
        self._stop_asked = True
        self._kill_running()
        self.wait(seconds)

    def read_to_end(self, host: Host) -> list[str]:
        """Wait until the host's whole log was read; returns its last lines. Only after its end."""
        return self._containers[host].read_to_end()

    def let_go(self) -> None:
        """Join every thread of containers that the engine has lost sight of, and leave them as they are."""
        for container in self._containers.values():
            container.let_go()

    def close(self) -> None:
        """Kill what runs, remove every container, and join every thread."""
        self._kill_running()
        for container in self._containers.values():
            container.close()
        if not self._containers:
            for container_id in self._ids.values():
                remove_container(self._runtime, container_id)

    def _kill_running(self) -> None:
        """Ask all at once: each takes a moment to be gone."""
        for container in self._containers.values():
            if not container.has_ended:
                container.ask_stop(0.0)
