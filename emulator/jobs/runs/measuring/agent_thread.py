"""Thread that works alongside a container until the container ends."""

from abc import ABC, abstractmethod
from threading import Event, Thread

from container_runtime.runtime import ContainerRuntime


class AgentThread(ABC):
    """A helper that runs alongside a container until the container ends, such as a meter."""

    def __init__(self, thread_name: str) -> None:
        """Prepare the thread."""
        self._thread_name = thread_name
        self._ended = Event()
        self._thread: Thread | None = None

    def start(self, runtime: ContainerRuntime, container_id: str) -> None:
        """Start the thread. Call it after the container has started."""
        self._thread = Thread(target=self._run, args=(runtime, container_id), name=self._thread_name)
        self._thread.start()

    def finish(self) -> None:
        """Wait until the thread has done its last work. Call it after the container has ended. Idempotent."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @abstractmethod
    def _run(self, runtime: ContainerRuntime, container_id: str) -> None:
        """Work until ``_ended`` is set or the container is gone."""
