"""Emulator's side of the proxies in the isolated networks of containers."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from container_runtime.runtime import ContainerRuntimeError, ContainerStartError
from container_runtime.swarm import agent
from container_runtime.swarm.inside import GONE, KEEP_ALIVE, LISTENING, LOOPBACK, close, pass_on

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path
    from typing import Any

    from container_runtime.swarm.inside import Stream

logger = logging.getLogger(__name__)

_START_SECONDS = 60.0
_AGAIN_SECONDS = 1.0
# An agent whose node does not answer never completes the TLS shutdown.
_END_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class _Proxy:
    """The proxy of one container.

    Attributes:
        node: node of the container.
        find_pid: function that returns the id of the container's first process on the node; None if it has ended.
        ports: ports of this machine that the container reaches.
        ready: done once the agent listens.
        keeping: task that receives new connections from the agent.
        removed: whether the agent is to close the proxy.
    """

    node: str
    find_pid: Callable[[], int | None]
    ports: Sequence[int]
    ready: Future[None] = field(default_factory=Future)
    keeping: asyncio.Task[None] | None = None
    removed: bool = False


class Proxies:
    """The proxies of one back end's containers; see ``inside.py``. Thread-safe.

    Args:
        find_agent: function that returns IP address and port of a node's agent. It raises ContainerRuntimeError while
            there is none.
        key: file of the agents' key.
    """

    def __init__(self, find_agent: Callable[[str], tuple[str, int]], key: Path) -> None:
        self._find_agent = find_agent
        self._context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, key, agent.PROXY)
        self._proxies: dict[str, _Proxy] = {}
        self._passing: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def open(
        self, container: str, node: str, find_pid: Callable[[], int | None], ports: Sequence[int], *, wait: bool = True
    ) -> None:
        """Open a container's proxy. Until ``close``, it is opened again whenever the connection to its agent breaks.

        Args:
            container: id of the container.
            node: node of the container.
            find_pid: function that returns the id of the container's first process on the node; None if it has ended.
                It raises ContainerRuntimeError while the node does not answer, and is then called again.
            ports: ports that the container is to reach.
            wait: whether to wait until the agent listens.

        Raises:
            ContainerStartError: the agent refuses, or does not answer.
        """
        proxy = _Proxy(node, find_pid, ports)
        self._run(self._begin(container, proxy))
        if not wait:
            return
        try:
            proxy.ready.result(_START_SECONDS)
        except TimeoutError as error:
            self.close(container)
            raise ContainerStartError(
                f"The network of container {container} was not made within {_START_SECONDS:g} s: the agent of its node "
                "does not answer."
            ) from error

    def close(self, container: str) -> None:
        """Close a container's proxy. Idempotent."""
        self._run(self._end(container))

    def shut(self) -> None:
        """Close the connections and end the thread. Containers wait at their proxies for the next emulator process."""
        if not self._loop.is_closed():
            self._run(self._end_all())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, doing: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(doing, self._loop).result()

    async def _begin(self, container: str, proxy: _Proxy) -> None:
        if (before := self._proxies.get(container)) is not None:
            await _cancel(before)
        self._proxies[container] = proxy
        proxy.keeping = asyncio.create_task(self._keep(container, proxy))

    async def _end(self, container: str) -> None:
        if (proxy := self._proxies.pop(container, None)) is not None:
            proxy.removed = True
            await _cancel(proxy)

    async def _end_all(self) -> None:
        for proxy in list(self._proxies.values()):  # a removal may change them meanwhile
            await _cancel(proxy)
        for task in (passing := list(self._passing)):
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _keep(self, container: str, proxy: _Proxy) -> None:
        while True:
            try:
                if not await self._serve(proxy):
                    return
            except (OSError, ContainerRuntimeError) as error:
                logger.info("The proxy of container %s is closed for the moment: %s", container, error)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _serve(self, proxy: _Proxy) -> bool:
        """Forward the connections that the agent reports. Return whether to retry after the agent has ended."""
        address = await asyncio.to_thread(self._find_agent, proxy.node)
        if (pid := await asyncio.to_thread(proxy.find_pid)) is None:
            if not proxy.ready.done():
                proxy.ready.set_result(None)
            return False
        reader, writer = await self._connect(address)
        try:
            writer.write(f"open {pid} {' '.join(map(str, proxy.ports))}\n".encode())
            answer = (await reader.readline()).decode().strip()
            if answer not in (LISTENING, GONE, "") and not proxy.ready.done():
                proxy.ready.set_exception(ContainerStartError(f"The node refuses a container's network: {answer}"))
                return False
            if answer in (LISTENING, GONE) and not proxy.ready.done():
                proxy.ready.set_result(None)
            if answer == GONE:
                return False
            if answer != LISTENING:
                raise ConnectionError(answer or "its agent has ended")
            while line := await reader.readline():
                number, port = map(int, line.split())
                task = asyncio.create_task(self._pass_on(address, number, port))
                self._passing.add(task)
                task.add_done_callback(self._passing.discard)
        finally:
            if proxy.removed:
                writer.write(b"close\n")
            await close(writer)
        return True

    async def _pass_on(self, address: tuple[str, int], number: int, port: int) -> None:
        """Connect a client, by its number on a node, to the server of a port. Either may have disconnected already."""
        with suppress(OSError):
            there = await self._connect(address)
            try:
                there[1].write(f"take {number}\n".encode())
                await pass_on(there, await asyncio.open_connection(LOOPBACK, port))
            finally:
                await close(there[1])

    async def _connect(self, address: tuple[str, int]) -> Stream:
        reader, writer = await asyncio.open_connection(*address, ssl=self._context, ssl_shutdown_timeout=_END_SECONDS)
        for option in KEEP_ALIVE:
            writer.get_extra_info("socket").setsockopt(*option)
        return reader, writer


async def _cancel(proxy: _Proxy) -> None:
    assert proxy.keeping is not None
    proxy.keeping.cancel()
    await asyncio.wait([proxy.keeping])
