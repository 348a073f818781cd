"""Tests of proxies whose agents do not answer."""

import asyncio
import threading
from pathlib import Path

import pytest

from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.agent_key import keep_key
from container_runtime.swarm.proxies import Proxies
from tests.waiting import wait_until


def test_a_container_that_is_removed_while_the_emulator_ends_hinders_no_other(tmp_path: Path) -> None:
    def find_no_agent(_node: str) -> tuple[str, int]:
        raise ContainerRuntimeError("no agent")

    proxies = Proxies(find_no_agent, keep_key(tmp_path))
    for container in ("a", "b", "c"):
        proxies.open(container, "node", lambda: 1, [], wait=False)
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


def test_a_container_whose_node_is_away_is_looked_for_until_the_node_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("container_runtime.swarm.proxies._AGAIN_SECONDS", 0.01)
    answers = iter([ContainerRuntimeError("it is away"), ContainerRuntimeError("it is away"), None])

    def find_pid() -> int | None:
        answer = next(answers)
        if answer is None:
            return None  # the container has ended meanwhile
        raise answer

    proxies = Proxies(lambda _node: ("127.0.0.1", 9), keep_key(tmp_path))
    try:
        proxies.open("a", "node", find_pid, [], wait=False)
        wait_until(lambda: proxies._proxies["a"].ready.done())
        assert next(answers, "none is left") == "none is left"
    finally:
        proxies.shut()
