"""Tests of proxies whose agents do not answer."""

import asyncio
import threading
from pathlib import Path

from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.agent_key import keep_key
from container_runtime.swarm.proxies import Proxies


def test_a_container_that_is_removed_while_the_emulator_ends_hinders_no_other(tmp_path: Path) -> None:
    def find_no_agent(_node: str) -> tuple[str, int]:
        raise ContainerRuntimeError("no agent")

    proxies = Proxies(find_no_agent, keep_key(tmp_path))
    for container in ("a", "b", "c"):
        proxies.open(container, "node", 1, [], wait=False)
    begin = threading.Event()
    proxies._loop.call_soon_threadsafe(begin.wait)  # so that the end has begun when the container is removed
    end = asyncio.run_coroutine_threadsafe(proxies._end_all(), proxies._loop)
    removal = asyncio.run_coroutine_threadsafe(proxies._end("b"), proxies._loop)
    begin.set()
    try:
        removal.result(60)
        end.result(60)
    finally:
        proxies.shut()
