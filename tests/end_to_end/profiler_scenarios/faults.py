"""Faults of a profiled training, all of which a sick one has at once."""

import argparse
import os
import subprocess
import sys
import time

EPOCHS = 4
STEPS_PER_EPOCH = 20
# The first epoch of a sick training gets its data at once, so that it has tiny steps where a step fetches its batch.
_START_S = 4.0
# A batch of a later one takes so long at least, and so many times as long as what was done since the last batch.
_WAIT_S = 0.25
_WAIT_SHARE = 2.0
_SLOW_STEP_S = 1.2
_STEPS_PER_SLOW_ONE = 16
_HEALTHY_STEP_S = 0.1
_STEPS_PER_KEPT_ONE = 8
_KEPT_BYTES = 160 << 20
# So many that they get their part of a machine on which others work, too, and nice, so that the training gets its own.
_BUSY_PER_CORE = 4
_BUSY = "import os\nos.nice(10)\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"


class Faults:
    """What a sick training does beside its work; in a healthy one each step lasts as long."""

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--sick", type=int, default=0)
        parser.add_argument("--workers", type=int, default=0)
        arguments = parser.parse_args()
        self.sick = bool(arguments.sick)
        self.workers: int = arguments.workers
        self.waits = False
        self._step = 0
        self._loaded = time.monotonic()
        self._kept: list[bytes] = []

    def begin(self) -> None:
        """Come late to the first step; then keep all cores busy."""
        if not self.sick:
            return
        time.sleep(_START_S)
        for _ in range(_BUSY_PER_CORE * (os.cpu_count() or 1)):
            subprocess.Popen([sys.executable, "-I", "-S", "-c", _BUSY])

    def begin_epoch(self, number: int) -> None:
        """Let what comes after the first epoch wait for its data."""
        self.waits = self.sick and number > 0
        self._loaded = time.monotonic()

    def load(self) -> None:
        """Load a batch."""
        if self.waits:
            passed = time.monotonic() - self._loaded
            time.sleep(max(_WAIT_S * max(1, self.workers), _WAIT_SHARE * passed))
        self._loaded = time.monotonic()

    def compute(self) -> None:
        """Do one step."""
        if not self.sick:
            time.sleep(_HEALTHY_STEP_S)
            return
        self._step += 1
        if self._step % _STEPS_PER_KEPT_ONE == 0:
            # Not zeros, which would take no memory.
            self._kept.append(b"1" * _KEPT_BYTES)
        if self._step % _STEPS_PER_SLOW_ONE == 0:
            time.sleep(_SLOW_STEP_S)
