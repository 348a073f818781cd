"""Container back end that changes nothing while a fence is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from container_runtime.runtime import ContainerRuntime, Network
    from container_runtime.spec import ContainerSpec


class FencedRuntime:
    """Another back end, whose containers and networks change only while this process may drive its jobs.

    What only reads, such as logs, waits and measurements, is the other's.
    """

    def __init__(self, runtime: ContainerRuntime, wait: Callable[[], None]) -> None:
        """Wrap a back end; ``wait`` returns once it may change something."""
        self._runtime = runtime
        self._wait = wait

    def __getattr__(self, name: str) -> Any:
        """Find everything else in the back end."""
        return getattr(self._runtime, name)

    def start(self, spec: ContainerSpec) -> str:
        self._wait()
        return self._runtime.start(spec)

    def stop(self, container_id: str, grace_seconds: float) -> None:
        self._wait()
        self._runtime.stop(container_id, grace_seconds)

    def remove(self, container_id: str) -> None:
        self._wait()
        self._runtime.remove(container_id)

    def create_network(self, name: str, hosts: Sequence[str], *arguments: Any, **options: Any) -> Network:
        self._wait()
        return self._runtime.create_network(name, hosts, *arguments, **options)

    def remove_network(self, name: str) -> None:
        self._wait()
        self._runtime.remove_network(name)
