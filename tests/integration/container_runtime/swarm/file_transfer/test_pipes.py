"""Tests of channels in Pipe mode whose program is on another node."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.container_runtime.swarm.file_transfer.carrying import NAME, USER, Setup
from tests.waiting import wait_until

LARGE = os.urandom(3_000_000)


class Channel:
    """What a channel in Pipe mode does: it writes epoch after epoch, and makes each pipe before the last one ends."""

    def __init__(self, folder: Path, epochs: list[bytes]) -> None:
        self._folder, self._epochs = folder, epochs
        self.begun: list[int] = []
        self.broken: list[int] = []
        folder.mkdir(parents=True)
        os.mkfifo(folder / "train_0")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for epoch, data in enumerate(self._epochs):
            with (self._folder / f"train_{epoch}").open("wb", buffering=0) as pipe:
                self.begun.append(epoch)
                os.mkfifo(self._folder / f"train_{epoch + 1}")
                try:
                    view = memoryview(data)
                    while view:
                        view = view[pipe.write(view) :]
                except BrokenPipeError:
                    self.broken.append(epoch)


@pytest.fixture
def begin(setup: Setup) -> Callable[..., Channel]:
    """Begin a channel, and bring the container its files."""

    def begin(*epochs: bytes) -> Channel:
        channel = Channel(setup.here / "input" / "data", list(epochs))
        setup.make().fill(NAME, "node", setup.folders)
        return channel

    return begin


def test_each_epoch_is_read_whole(setup: Setup, begin: Callable[..., Channel]) -> None:
    channel = begin(LARGE, b"", b"the third")
    there = setup.there / "input" / "data"
    assert (there / "train_0").is_fifo()
    assert ((there / "train_0").stat().st_uid, (there / "train_0").stat().st_gid) == USER
    assert channel.begun == [], "nobody has asked for it"
    assert (there / "train_0").read_bytes() == LARGE
    # Opened at once: it is there before the end of the epoch before it is read.
    assert (there / "train_1").read_bytes() == b""
    assert (there / "train_2").read_bytes() == b"the third"
    assert channel.begun == [0, 1, 2]
    assert (channel.broken, setup.killed) == ([], [])


def test_an_epoch_may_be_left_in_its_middle(setup: Setup, begin: Callable[..., Channel]) -> None:
    channel = begin(LARGE, b"the second")
    there = setup.there / "input" / "data"
    with (there / "train_0").open("rb", buffering=0) as pipe:
        assert pipe.read(1) == LARGE[:1]
    wait_until((there / "train_1").is_fifo)
    assert (there / "train_1").read_bytes() == b"the second"
    assert (channel.begun, channel.broken, setup.killed) == ([0, 1], [0], [])


def test_an_epoch_that_breaks_off_ends_the_container(setup: Setup, begin: Callable[..., Channel]) -> None:
    begin(LARGE)
    with (setup.there / "input" / "data" / "train_0").open("rb", buffering=0) as pipe:
        assert pipe.read(1) == LARGE[:1]
        setup.agent.end()
        wait_until(lambda: setup.killed == [NAME])


def test_an_agent_that_comes_back_before_the_epoch_is_read_serves_it(
    setup: Setup, begin: Callable[..., Channel]
) -> None:
    begin(b"the first")
    setup.agent.end()
    setup.agent.start()
    assert (setup.there / "input" / "data" / "train_0").read_bytes() == b"the first"
    assert setup.killed == []
