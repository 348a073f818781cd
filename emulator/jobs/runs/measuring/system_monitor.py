"""System profiler of one host, at the interval of its job's ProfilerConfig."""

from __future__ import annotations

import logging
import time
from threading import Condition
from typing import TYPE_CHECKING

from container_runtime.runtime import ContainerRuntimeError, PreparesInContainers
from emulator.jobs.runs.measuring.agent_thread import AgentThread
from emulator.jobs.runs.measuring.gpus import Gpus
from emulator.jobs.runs.measuring.machine import describe_load, describe_memory
from emulator.jobs.runs.measuring.measures import MinuteFiles
from emulator.jobs.runs.measuring.starvation import Starvation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from container_runtime.meter import Load, Machine, Meter
    from container_runtime.runtime import ContainerRuntime

logger = logging.getLogger(__name__)

_PREPARATION_POLL_SECONDS = 0.2


class SystemMonitor(AgentThread):
    """A thread that measures one container until it ends, as long as its job is profiled.

    A container that first builds its environment is measured from its command on: a build is no part of its training.
    """

    def __init__(
        self,
        job_name: str,
        host: str,
        memory_bytes: int,
        folder: Path,
        *,
        has_gpus: bool = False,
        on_starved: Callable[[float], None] = lambda _percent: None,
    ) -> None:
        """Prepare to measure.

        Args:
            job_name: name of the container's job.
            host: name of the host, such as algo-1.
            memory_bytes: memory of the host.
            folder: folder for the files.
            has_gpus: whether the host's instance type has GPUs. If so, those that the container holds are measured,
                unless it runs on another machine.
            on_starved: called once, with the percent of the time, if the container waits for cores that others use.
        """
        self._name = f"{job_name}/{host}"
        super().__init__(f"monitor-{self._name}")
        self._has_gpus = has_gpus
        self._on_starved = on_starved
        self._host = host
        self._memory_bytes = memory_bytes
        self._folder = folder
        self._interval: float | None = None
        # Notified of each change of _interval and _ended.
        self._changed = Condition()

    def set_interval(self, seconds: float | None) -> None:
        """Set the measurement interval; None to pause, as at the start. Any thread may call it."""
        with self._changed:
            self._interval = seconds
            self._changed.notify_all()

    def finish(self) -> None:
        """Wait until the last file is complete. Call it after the container has ended."""
        with self._changed:
            self._ended.set()
            self._changed.notify_all()
        super().finish()

    def _run(self, runtime: ContainerRuntime, container_id: str) -> None:
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._ended.is_set() or self._interval is not None)
                if self._ended.is_set() and self._interval is None:
                    return
            while isinstance(runtime, PreparesInContainers) and runtime.is_preparing(container_id):
                if self._ended.wait(_PREPARATION_POLL_SECONDS):
                    return
            if (meter := runtime.open_meter(container_id)) is not None:
                self._measure(meter)
        except ContainerRuntimeError as error:
            logger.warning("%s is not profiled: %s", self._name, error)
        except Exception:  # the job continues without measurements
            logger.exception("%s is profiled no longer", self._name)

    def _measure(self, meter: Meter) -> None:
        files = MinuteFiles(self._folder, self._host)
        gpus = Gpus(meter.gpus) if self._has_gpus and meter.is_local else None
        # The counters and the time of the last reading; None at first, and after a pause.
        before: tuple[Load, Machine] | None = None
        before_at = 0.0
        failed = False
        starvation = Starvation()
        try:
            while not self._ended.is_set():
                interval = self._interval
                if interval is None:
                    files.close()
                    starvation.pause()
                    before = None
                if interval is None or (before is not None and time.monotonic() < before_at + interval):
                    self._wait(interval, None if interval is None else before_at + interval - time.monotonic())
                    continue
                if (load := meter.read()) is None:
                    return
                now, now_at = (load, meter.read_machine()), time.monotonic()
                # Rates are available only after the second reading.
                figures = (
                    [describe_memory(load, self._memory_bytes)]
                    if before is None
                    else [*describe_load(before, now, now_at - before_at, self._memory_bytes)]
                )
                if (percent := starvation.add(*now, now_at)) is not None:
                    self._on_starved(percent)
                # After a late reading, the next interval still has its full length.
                before, before_at = now, now_at
                try:
                    files.append([*figures, *(gpus.measure(meter.list_processes()) if gpus else ())], time.time())
                    failed = False
                except OSError as error:
                    if not failed:
                        logger.warning("Measures of %s are lost: %s", self._name, error)
                    failed = True
        finally:
            files.close()
            if gpus:
                gpus.close()

    def _wait(self, interval: float | None, seconds: float | None) -> None:
        """Wait for at most ``seconds``, until the interval differs from ``interval`` or the container has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended.is_set() or self._interval != interval, seconds)
