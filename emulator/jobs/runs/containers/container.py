"""One container of a job: its log, its meter, its stop and its exit."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Event, RLock, Thread

from container_runtime.runtime import (
    Container,
    ContainerNotFoundError,
    ContainerRuntime,
    ContainerRuntimeError,
    Exit,
    LogLine,
)
from emulator.jobs.runs.measuring.agent_thread import AgentThread

logger = logging.getLogger(__name__)

# Labels by which a container is found after a restart: the id of the job store, and the job's ARN.
STORE_LABEL = "smdebug-emulator.store"
JOB_LABEL = "smdebug-emulator.job-arn"
# Label with the name of the job's host.
HOST_LABEL = "smdebug-emulator.host"
# Time until the next attempt to stop a container, after a failed one.
_STOP_AGAIN_SECONDS = 1.0
_LAST_LINES = 60


class JobContainer:
    """A container that was started, or reattached to after a restart. Thread safe."""

    def __init__(
        self,
        runtime: ContainerRuntime,
        container_id: str,
        job_name: str,
        on_line: Callable[[LogLine], None],
        on_exit: Callable[[], None] = lambda: None,
        agents: Sequence[AgentThread] = (),
    ) -> None:
        self._runtime = runtime
        self._id = container_id
        self._job_name = job_name
        self._on_line = on_line
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._log_reader = Thread(target=self._read_log, name=f"log-{job_name}")
        self._on_exit = on_exit
        self._agents = agents
        self._exited = Event()
        self._exit: Exit | None = None
        self._error: Exception | None = None
        # Also held while a line is handled.
        self._lock = RLock()
        self._closed = False
        self._threads = [Thread(target=self._wait_for_exit, name=f"wait-{job_name}")]

    def follow(self) -> None:
        """Start to read the container's log, to measure it, and to wait for its end."""
        self._log_reader.start()
        for agent in self._agents:
            agent.start(self._runtime, self._id)
        self._threads[0].start()

    @property
    def has_ended(self) -> bool:
        """Whether the container has exited, or the back end has lost track of it."""
        return self._exited.is_set()

    def wait(self, timeout: float | None = None) -> Exit | None:
        """Wait until the container has ended, and return its exit; return None after ``timeout`` seconds.

        Raises:
            ContainerRuntimeError: the back end has lost track of the container.
        """
        if not self._exited.wait(timeout):
            return None
        if self._error is not None:
            raise self._error
        return self._exit

    def read_to_end(self) -> list[str]:
        """Wait until the log is read and the agents have finished; return the log's last lines.

        Call it after the container has ended.
        """
        if self._log_reader.ident is not None:
            self._log_reader.join()
        for agent in self._agents:
            agent.finish()
        return list(self._last_lines)

    def ask_stop(self, grace_seconds: float) -> None:
        """Send SIGTERM now and SIGKILL after the grace period, without waiting.

        Another call can only shorten the grace period.
        """
        thread = Thread(target=self._stop, args=(grace_seconds,), name=f"stop-{self._job_name}")
        with self._lock:
            if not self._closed:
                self._threads.append(thread)
                thread.start()

    def let_go(self) -> None:
        """Stop following the container, which may go on and be followed by another object.

        No line is handled after this. If it goes on, the threads that wait for it end with it.
        """
        with self._lock:
            self._closed = True
            self._on_line = lambda _line: None
        for agent in self._agents:
            agent.finish()
        if self._exit is not None:
            self._join()

    def close(self) -> None:
        """Kill the container if it is running, remove it, and join every thread."""
        if not self._exited.is_set() or self._error is not None:
            self._stop(0.0)
        with self._lock:
            self._closed = True
        self._join()
        remove_container(self._runtime, self._id)

    def _join(self) -> None:
        for thread in list(self._threads):
            if thread.ident is not None:
                thread.join()
        self.read_to_end()

    def _read_log(self) -> None:
        try:
            for line in self._runtime.logs(self._id):
                with self._lock:
                    self._last_lines.append(line.text)
                    self._on_line(line)
        except ContainerRuntimeError as error:
            logger.warning("The log of container %s ends here: %s", self._id, error)
        except Exception:
            logger.exception("The log of container %s ends here", self._id)

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
            # Without another attempt, the job would run to its normal end, and the emulator could not stop before that.
            if self._exited.wait(_STOP_AGAIN_SECONDS):
                return


def find_hosts(arn: str, containers: Iterable[Container]) -> dict[str, Container]:
    """Return the containers of a job, by host name."""
    return {each.labels[HOST_LABEL]: each for each in containers if each.labels[JOB_LABEL] == arn}


def remove_container(runtime: ContainerRuntime, container_id: str) -> None:
    """Remove a container, killing it if it is running. Log a warning on failure."""
    try:
        runtime.remove(container_id)
    except ContainerRuntimeError as error:
        logger.warning("The container %s could not be removed: %s", container_id, error)


def remove_network(runtime: ContainerRuntime, name: str) -> None:
    """Remove a network whose containers are already removed. Log a warning on failure."""
    try:
        runtime.remove_network(name)
    except ContainerRuntimeError as error:
        logger.warning("The network %s could not be removed: %s", name, error)
