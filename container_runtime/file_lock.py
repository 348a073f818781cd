"""File lock between processes, released when its holder ends."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hold_lock(path: Path, say_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file at ``path``, and wait while another process holds it.

    Args:
        path: path of the lock file, which is created with its folder. It is not removed afterwards: two processes
            could hold a removed file at once.
        say_waiting: called before waiting, if another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say_waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock file at ``path``. False if there is no such file."""
    try:
        with path.open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
