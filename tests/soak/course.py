"""One part of the soak: seeded, repeatable rounds, failures and figures."""

import logging
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """What was wrong in the round of a seed."""

    seed: int
    text: str


@dataclass
class Course:
    """One part in one back end.

    Attributes:
        runtime: ``process``, ``docker`` or ``swarm``.
        count: how many rounds.
        seed: of the first round; each has one more than the one before.
        folder: for all that the part writes.
        tell: hears of each round that is over, and how many failed so far.
        done: how many rounds are over.
        figures: what was measured, by name, in the order of the report.
        starts: how containers start: ``warm`` with their imports done where they can, or ``cold``.
    """

    runtime: str
    count: int
    seed: int
    folder: Path
    tell: Callable[[int], None] = lambda _failed: None
    failures: list[Failure] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)
    done: int = 0
    starts: str = "warm"

    @property
    def place(self) -> str:
        """The back end, and how its containers start if that is not the usual way."""
        return self.runtime if self.starts == "warm" else f"{self.runtime} {self.starts}"

    def draw_rounds(self) -> Iterator[tuple[int, Random]]:
        """Yield each round's seed, and chance that is the same for the same seed."""
        for seed in range(self.seed, self.seed + self.count):
            yield seed, Random(seed)
            self.done += 1
            self.tell(self.count_failed())

    def fail(self, seed: int, text: str) -> None:
        """Note what was wrong in a round."""
        self.failures.append(Failure(seed, text))

    @contextmanager
    def noting(self, seed: int) -> Iterator[None]:
        """Note what is raised as a failure of the round; the next one may be right."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever it is, it is in the report
            self.fail(seed, traceback.format_exc())

    def count_failed(self) -> int:
        """Count the rounds in which something was wrong."""
        return len({failure.seed for failure in self.failures})


def list_processes_with(mark: str) -> list[str]:
    """List the processes whose command line or environment holds a text, this one and its parents left out."""
    found, own = [], os.getpid()
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) in (own, os.getppid()):
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            if mark.encode() in command + b"\0" + (folder / "environ").read_bytes():
                found.append(f"{folder.name} {command.replace(bytes(1), b' ').decode(errors='replace')[:200]}")
        except OSError:  # it ended meanwhile
            continue
    return found


def is_true_within(seconds: float, condition: Callable[[], object]) -> bool:
    """Ask again and again until the answer is true, or so many seconds are over."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
