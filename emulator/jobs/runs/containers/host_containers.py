"""Containers of a job's hosts: parallel start, common end."""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple

from container_runtime.runtime import Container, ContainerRuntime, Exit, LogLine, PreparesInContainers
from container_runtime.spec import ContainerSpec
from emulator.jobs.runs.containers.container import JobContainer, remove_container
from emulator.jobs.runs.measuring.agent_thread import AgentThread
from emulator.jobs.staging.hosts import Host

# Time between SIGTERM and SIGKILL for the other hosts after one host has failed. It is enough to flush files.
FAILURE_GRACE_SECONDS = 5.0

_PREPARATION_POLL_SECONDS = 0.2
_STOPPED = frozenset({128 + signal.SIGTERM, 128 + signal.SIGKILL})


class HostExit(NamedTuple):
    """How the container of one host ended.

    Attributes:
        host: the host.
        exit: the exit of its container.
        was_stopped: whether the container was stopped because another host had failed.
    """

    host: Host
    exit: Exit
    was_stopped: bool

    @property
    def failed(self) -> bool:
        """Whether the container ended with an error of its own, and not just because it was stopped."""
        return self.exit.code != 0 and not (self.was_stopped and self.exit.code in _STOPPED)


class HostContainers:
    """The containers of a job's hosts.

    Any thread may call ``ask_stop``. The other methods belong to the thread of the job run.
    """

    def __init__(self, runtime: ContainerRuntime, job_name: str, containers: Mapping[str, Container]) -> None:
        """Create the object without starting containers.

        Args:
            runtime: the back end.
            job_name: name of the job.
            containers: the job's containers from before a restart of the emulator, by host name.
        """
        self._runtime = runtime
        self._job_name = job_name
        self._ids = {host: each.id for host, each in containers.items()}
        self._containers: dict[Host, JobContainer] = {}
        self._ended: SimpleQueue[Host] = SimpleQueue()
        self._exits: list[HostExit] = []
        # Those whose containers were stopped because another host had failed.
        self._stopped_hosts: frozenset[Host] = frozenset()
        self._stop_asked = False

    @property
    def followed(self) -> bool:
        """Whether ``follow`` was called."""
        return bool(self._containers)

    @property
    def exits(self) -> Sequence[HostExit]:
        """The exits of the hosts that have ended, in the order in which they ended."""
        return self._exits

    def start(self, specs: Mapping[Host, ContainerSpec], check: Callable[[], None]) -> None:
        """Wait until there is capacity for the containers of all hosts, and start them in parallel.

        Args:
            specs: the specification of each host's container.
            check: called repeatedly before the containers start; an exception from it cancels the start.

        Raises:
            ContainerRuntimeError: an error of ``ContainerRuntime.reserve_capacity`` or ``ContainerRuntime.start``.
        """

        def start(host: Host, spec: ContainerSpec) -> None:
            # Stored at once: whatever else fails, `close` removes this container.
            self._ids[host.name] = self._runtime.start(spec)

        with self._runtime.reserve_capacity(list(specs.values()), check):
            check()
            with ThreadPoolExecutor(len(specs), thread_name_prefix=f"start-{self._job_name}") as pool:
                starting = [pool.submit(start, host, spec) for host, spec in specs.items()]
        for each in starting:
            each.result()

    def follow(
        self,
        hosts: Sequence[Host],
        on_line: Callable[[Host, LogLine], None],
        build_agents: Callable[[Host], Sequence[AgentThread]] = lambda _host: (),
    ) -> None:
        """Start to read the logs of all containers, to measure them, and to wait for their ends.

        Args:
            hosts: all hosts of the job; each has a container.
            on_line: called with each line of a host's log.
            build_agents: returns the agents of a host.
        """
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

    def wait_until_prepared(self, seconds: float) -> None:
        """Wait until each container has come to its command or ended, for at most the given seconds."""
        deadline = time.monotonic() + seconds
        while isinstance(self._runtime, PreparesInContainers) and time.monotonic() < deadline:
            waiting = [host.name for host, container in self._containers.items() if not container.has_ended]
            if not any(self._runtime.is_preparing(self._ids[name]) for name in waiting):
                return
            time.sleep(_PREPARATION_POLL_SECONDS)

    def wait(self, timeout: float | None = None) -> Sequence[HostExit] | None:
        """Wait until all containers have ended, and return their exits in order; return None after ``timeout`` seconds.

        When one container ends with an error, the others are stopped, because they could wait for it forever. From then
        on, ``timeout`` no longer applies.

        Raises:
            ContainerRuntimeError: the back end has lost track of a container.
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
            self._exits.append(HostExit(host, exit_status, host in self._stopped_hosts))
            if exit_status.code != 0 and not self._stop_asked:
                self._stopped_hosts = frozenset(
                    each for each, container in self._containers.items() if not container.has_ended
                )
                self.ask_stop(FAILURE_GRACE_SECONDS)
                # The result of the job is certain now, so a time limit that expires later does not change it.
                deadline = None
        return self._exits

    def ask_stop(self, grace_seconds: float) -> None:
        """Send SIGTERM to all containers now and SIGKILL after the grace period, without waiting."""
        self._stop_asked = True
        for container in self._containers.values():
            container.ask_stop(grace_seconds)

    def kill(self, seconds: float) -> None:
        """Kill the running containers, and wait at most ``seconds`` for their ends.

        Raises:
            ContainerRuntimeError: the back end has lost track of a container.
        """
        self._stop_asked = True
        self._kill_running()
        self.wait(seconds)

    def read_to_end(self, host: Host) -> list[str]:
        """Wait until a host's log is read and its agents have finished; return the log's last lines.

        Call it after the host's container has ended.
        """
        return self._containers[host].read_to_end()

    def let_go(self) -> None:
        """Stop following the containers, of which the container engine has lost track of one or all.

        Those that go on are not waited for.
        """
        for container in self._containers.values():
            container.let_go()

    def close(self) -> None:
        """Kill the running containers, remove all containers, and join every thread."""
        with suppress(RuntimeError):  # the system has no more threads: each is killed in its turn
            self._kill_running()
        for container in self._containers.values():
            container.close()
        closed = {host.name for host in self._containers}
        for host, container_id in self._ids.items():
            if host not in closed:
                remove_container(self._runtime, container_id)

    def _kill_running(self) -> None:
        """Kill the running containers in parallel, because each takes a moment to end."""
        for container in self._containers.values():
            if not container.has_ended:
                container.ask_stop(0.0)
