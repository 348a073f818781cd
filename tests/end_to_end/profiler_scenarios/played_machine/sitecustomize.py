"""Played NVIDIA runtime of Docker, and played waits of cores for a disk.

A core waits for a disk only while nobody has work for it, which no test can promise.
"""

import dataclasses
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock, patch

STATE = Path(__file__).with_name("state")
_WAITING_SHARE = 0.7


def play() -> None:
    from container_runtime import meter
    from container_runtime.docker.gpus import GPUS_LABEL, EngineGpus

    read_real = meter.read_machine

    def read_machine(*arguments: Any) -> meter.Machine:
        machine = read_real(*arguments)
        if STATE.read_text() != "sick":
            return machine
        return dataclasses.replace(
            machine, waiting_seconds=tuple(_WAITING_SHARE * time.monotonic() for _ in machine.waiting_seconds)
        )

    def choose(_: EngineGpus, count: int) -> AbstractContextManager[tuple[None, dict[str, str]]]:
        return nullcontext((None, {GPUS_LABEL: "GPU-0,GPU-1"} if count else {}))

    patch.object(meter, "read_machine", read_machine).start()
    patch.object(EngineGpus, "has_runtime", PropertyMock(return_value=True), create=True).start()
    patch.object(EngineGpus, "choose", choose).start()


# Not in the processes that the emulator starts.
if "start" in sys.orig_argv:
    play()
