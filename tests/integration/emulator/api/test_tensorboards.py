"""Tests of the console's TensorBoard processes: address and end.

They end with their standard input.
"""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from emulator.api.tensorboards import TensorBoardError, TensorBoards
from tests.waiting import wait_until

# Its process id stands for its port; it says something else before.
SERVES = """
import os, sys
print("The emulator at http://127.0.0.1:4580 is another version.", file=sys.stderr)
print(f"TensorBoard 2.21.0 at http://localhost:{os.getpid()}/ (Press CTRL+C to quit)", file=sys.stderr, flush=True)
sys.stdin.read()
"""
FAILS = "import sys; sys.exit('TensorBoard is not installed here: pip install tensorboard')"


@pytest.fixture
def tensorboards() -> Iterator[TensorBoards]:
    made = TensorBoards(lambda name: [sys.executable, "-c", FAILS if name == "fails" else SERVES])
    yield made
    made.close()


def find_process(url: str) -> int:
    return int(url.rstrip("/").rpartition(":")[2])


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_one_is_started_for_each_job_and_found_again(tensorboards: TensorBoards) -> None:
    first = tensorboards.start("a")
    assert first.startswith("http://localhost:")
    assert tensorboards.start("a") == first
    others = [tensorboards.start(name) for name in ("b", "c", "d")]
    assert len({first, *others}) == 4
    # The first made room for the fourth.
    wait_until(lambda: is_gone(find_process(first)), "the oldest ended")
    tensorboards.close()
    assert all(is_gone(find_process(url)) for url in others)


def test_one_that_was_killed_is_started_again(tensorboards: TensorBoards) -> None:
    first = tensorboards.start("a")
    os.kill(find_process(first), signal.SIGKILL)
    assert wait_until(lambda: (again := tensorboards.start("a")) != first and again, "another one")


def test_what_it_said_is_the_error(tensorboards: TensorBoards) -> None:
    with pytest.raises(TensorBoardError, match="pip install tensorboard") as error:
        tensorboards.start("fails")
    assert error.value.status == 409


def test_one_that_starts_does_not_delay_the_end() -> None:
    tensorboards = TensorBoards(lambda _name: [sys.executable, "-c", "import sys; sys.stdin.read()"])
    with ThreadPoolExecutor(1) as callers:
        starting = callers.submit(tensorboards.start, "a")
        wait_until(lambda: list_children() != [] or starting.done(), "the process")
        tensorboards.close()
        with pytest.raises(TensorBoardError):
            starting.result()


def list_children() -> list[psutil.Process]:
    return psutil.Process().children()
