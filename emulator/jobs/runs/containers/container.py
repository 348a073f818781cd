"""One container of a job: its log, its meter, its stop and its exit."""

from __future__ import annotations

import logging
import time
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Protocol

from container_runtime.runtime import ContainerNotFoundError, ContainerRuntimeError
from emulator.jobs.runs.containers.logs import LogFollower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from container_runtime.runtime import Container, ContainerRuntime, Exit, LogLine

logger = logging.getLogger(__name__)

# How a container is found again after a restart: by the store that knows its job, and by the job's ARN.
STORE_LABEL = "smdebug-emulator.store"
JOB_LABEL = "smdebug-emulator.job-arn"
# Which of a job's hosts it is.
HOST_LABEL = "smdebug-emulator.host"
# Between an attempt to stop a container that the back end refused, and the next.
_STOP_AGAIN_SECONDS = 1.0


class Agent(Protocol):
    """What works beside a container until it ends."""

    def start(self, runtime: ContainerRuntime, container_id: str) -> None:
        """Begin; the container was started."""

    def finish(self) -> None:
        """Return when the rest is done. After the container's end; may be called again."""


class JobContainer:
    """A container that was started, or taken up again. Thread safe."""

    def __init__(
        self,
        runtime: ContainerRuntime,
        container_id: str,
        job_name: str,
        on_line: Callable[[LogLine], None],
        on_exit: Callable[[], None] = lambda: None,
        agents: Sequence[Agent] = (),
    ) -> None:
        self._runtime = runtime
        self._id = container_id
        self._job_name = job_name
        self._follower = LogFollower(runtime, container_id, on_line, f"log-{job_name}")
        self._on_exit = on_exit
        self._agents = agents
        self._exited = Event()
        self._exit: Exit | None = None
        self._error: Exception | None = None
        self._lock = Lock()
        self._closed = False
        self._threads = [Thread(target=self._wait_for_exit, name=f"wait-{job_name}")]

    def follow(self) -> None:
        """Begin to read its log, to measure it and to wait for its end."""
        self._follower.start()
        for agent in self._agents:
            agent.start(self._runtime, self._id)
        self._threads[0].start()

    @property
    def has_ended(self) -> bool:
        """Whether it has exited, or the back end can no longer tell."""
        return self._exited.is_set()

    def wait(self, timeout: float | None = None) -> Exit | None:
        """How it ended; None when ``timeout`` seconds passed first.

        Raises:
            ContainerRuntimeError: the back end can no longer tell.
        """
        if not self._exited.wait(timeout):
            return None
        if self._error is not None:
            raise self._error
        return self._exit

    def read_to_end(self) -> list[str]:
        """Wait until its whole log and its metrics were read; returns the last lines. Only after its end."""
        self._follower.join()
        for agent in self._agents:
            agent.finish()
        return self._follower.last_lines

    def ask_stop(self, grace_seconds: float) -> None:
        """SIGTERM now, SIGKILL after the grace; returns at once. Asking again can only shorten the grace."""
        thread = Thread(target=self._stop, args=(grace_seconds,), name=f"stop-{self._job_name}")
        with self._lock:
            if not self._closed:
                self._threads.append(thread)
                thread.start()

    def let_go(self) -> None:
        """Join every thread; only after its end, or that of the engine's connection."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        self.read_to_end()

    def close(self) -> None:
        """Kill it if it runs, remove it, and join every thread."""
        if not self._exited.is_set() or self._error is not None:
            self._stop(0.0)
        self.let_go()
        remove_container(self._runtime, self._id)

    def _wait_for_exit(self) -> None:
        try:
            self._exit = self._runtime.wait(self._id)
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self._exited.set()
            self._on_exit()

    def _stop(self, grace_seconds: float) -> None:
        until = time.monotonic() + grace_seconds
        while True:
            try:
                self._runtime.stop(self._id, max(0.0, until - time.monotonic()))
            except ContainerNotFoundError:
                return
            except ContainerRuntimeError as error:
                logger.warning("The container of %s could not be stopped: %s", self._job_name, error)
            else:
                return
            # Nobody else asks again: the job would run on to an end of its own, and its emulator's stop with it.
            if self._exited.wait(_STOP_AGAIN_SECONDS):
                return


def find_hosts(arn: str, containers: Iterable[Container]) -> dict[str, Container]:
    """Find the containers of a job, by the host that each is."""
    return {each.labels[HOST_LABEL]: each for each in containers if each.labels[JOB_LABEL] == arn}


def remove_container(runtime: ContainerRuntime, container_id: str) -> None:
    """Kill a container if it runs and remove it; a failure is said and left."""
    try:
        runtime.remove(container_id)
    except ContainerRuntimeError as error:
        logger.warning("The container %s could not be removed: %s", container_id, error)


def remove_network(runtime: ContainerRuntime, name: str) -> None:
    """Give a network back whose containers are removed; a failure is said and left."""
    try:
        runtime.remove_network(name)
    except ContainerRuntimeError as error:
        logger.warning("The network %s could not be removed: %s", name, error)
