"""Container back end that changes nothing while a fence is closed."""

from collections.abc import Callable
from typing import Any

from container_runtime.runtime import ContainerRuntime, PreparesInContainers

_CHANGES = frozenset({"start", "stop", "remove", "create_network", "remove_network"})


class FencedRuntime:
    """Another back end, whose containers and networks change only while this process may drive its jobs.

    What only reads, such as logs, waits and measurements, is the other's.
    """

    def __init__(self, runtime: ContainerRuntime, wait: Callable[[], None]) -> None:
        """Wrap a back end; ``wait`` returns once it may change something."""
        self._runtime = runtime
        self._wait = wait
        # From Python 3.12 on, isinstance asks no __getattr__ whether an object has the members of a protocol.
        if isinstance(runtime, PreparesInContainers):
            self.is_preparing = runtime.is_preparing

    def __getattr__(self, name: str) -> Any:
        """Find a member of the back end; a method that changes something waits before it does."""
        member = getattr(self._runtime, name)
        if name not in _CHANGES:
            return member

        def change(*arguments: Any, **options: Any) -> Any:
            self._wait()
            return member(*arguments, **options)

        return change
