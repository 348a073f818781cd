"""Host agent: resource use of a job's container, and its custom metrics files."""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from container_runtime.runtime import ContainerRuntimeError
from emulator.jobs.model.training_job import FinalMetric
from emulator.jobs.staging.instance_types import find_memory_bytes
from emulator.jobs.staging.job_files import RefusedError
from emulator.moto_services.cloudwatch.metrics import Datum

if TYPE_CHECKING:
    from collections.abc import Callable

    from container_runtime.runtime import ContainerRuntime, Usage
    from emulator.jobs.runs.measuring.volume import VolumeWatch
    from emulator.jobs.staging.job_files import JobFolder
    from emulator.jobs.staging.job_warnings import ReportedWarnings
    from emulator.moto_services.cloudwatch.metrics import Metrics

logger = logging.getLogger(__name__)

# AWS measures once a minute. Jobs are shorter here: the first times come soon, the later ones less and less often.
_FIRST_SECONDS = 0.5
_LAST_SECONDS = 5.0
# Of a core, at most, for looking at one container and its files.
_MAX_SHARE = 0.02
# At a time, of one file.
_MAX_READ_BYTES = 1 << 20
_MAX_NAME = 255
_MAX_VALUE = 2.0**360
_MAX_TIME = 1e11

MACHINE_MEMORY_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class MeasuredHost:
    """What the agent has to know of an instance.

    Attributes:
        name: the dimension Host: ``<job>/algo-1``.
        files: what the job writes on it.
        instance_type: says how much memory it has; as much as this machine where it says nothing.
        volume: its storage volume, watched.
        warnings: what its container reports, read now and then, and at its end.
    """

    name: str
    files: JobFolder
    instance_type: str | None
    volume: VolumeWatch
    warnings: ReportedWarnings | None = None


class HostAgent:
    """A thread that measures one container until it ends."""

    def __init__(
        self,
        host: MeasuredHost,
        metrics: Metrics,
        namespace: str,
        on_metric: Callable[[FinalMetric], None] | None = None,
        metrics_folder: str = "",
    ) -> None:
        """Prepare to measure.

        Args:
            host: what the container runs on.
            metrics: gets the utilizations.
            namespace: of these.
            on_metric: gets what the job writes to its metrics files.
            metrics_folder: where these are, in the host's files.
        """
        self._host = host
        self._metrics = metrics
        self._namespace = namespace
        self._on_metric = on_metric
        self._metrics_folder = metrics_folder
        self._offsets: dict[str, int] = {}
        self._ended = Event()
        self._thread: Thread | None = None

    def start(self, runtime: ContainerRuntime, container_id: str) -> None:
        """Begin to measure."""
        self._thread = Thread(target=self._run, args=(runtime, container_id), name=f"agent-{self._host.name}")
        self._thread.start()

    def finish(self) -> None:
        """Read the metrics files to their end, and return when the thread has ended. After the container's end."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, runtime: ContainerRuntime, container_id: str) -> None:
        try:
            try:
                self._measure(runtime, container_id)
            except ContainerRuntimeError as error:
                logger.warning("%s is measured no longer: %s", self._host.name, error)
            self._ended.wait()
            self._read_files()
            self._metrics.keep()
        except Exception:  # its job goes on without it
            logger.exception("%s is measured no longer", self._host.name)

    def _measure(self, runtime: ContainerRuntime, container_id: str) -> None:
        pause = _FIRST_SECONDS
        before, measured_at = runtime.read_usage(container_id), time.monotonic()
        while not self._ended.wait(pause) and before is not None:
            last_at, measured_at = measured_at, time.monotonic()
            usage = runtime.read_usage(container_id)
            if usage is not None:
                share = max(0.0, usage.cpu_seconds - before.cpu_seconds) / (measured_at - last_at)
                self._metrics.put(self._namespace, self._describe(usage, share))
            before = usage
            self._read_files()
            pause = max(min(2 * pause, _LAST_SECONDS), (time.monotonic() - measured_at) / _MAX_SHARE)

    def _describe(self, usage: Usage, cpu_share: float) -> list[Datum]:
        """Name the utilizations as AWS does: the processors' from 0 to 100 for each of them, the others to 100."""
        host, now_ms = self._host, time.time_ns() // 1_000_000
        memory_bytes = find_memory_bytes(host.instance_type) or MACHINE_MEMORY_BYTES
        percents = {
            "CPUUtilization": 100 * cpu_share,
            "MemoryUtilization": 100 * usage.memory_bytes / memory_bytes,
            "DiskUtilization": 100 * host.volume.taken / host.volume.volume.limit,
        }
        return [Datum(name, value, now_ms, {"Host": host.name}, "Percent") for name, value in percents.items()]

    def _read_files(self) -> None:
        if self._host.warnings is not None:
            self._host.warnings.read()
        self._read_metrics()

    def _read_metrics(self) -> None:
        """Read what was appended to the metrics files, whole lines only."""
        if self._on_metric is None:
            return
        folder = self._host.files.below(self._metrics_folder)
        for path in [path for path, _ in folder.walk() if path.endswith(".json")]:
            with suppress(RefusedError, FileNotFoundError), folder.open_file(path) as file:
                while True:
                    file.seek(self._offsets.get(path, 0))
                    lines, newline, _ = file.read(_MAX_READ_BYTES).rpartition(b"\n")
                    if not newline:
                        break
                    self._offsets[path] = self._offsets.get(path, 0) + len(lines) + 1
                    for metric in filter(None, map(parse_metric, lines.split(b"\n"))):
                        self._on_metric(metric)


def parse_metric(line: bytes) -> FinalMetric | None:
    """Read one line of a metrics file, as smdebug writes it; None for anything else, such as a number that is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match record:
        case {"MetricName": str() as name, "Value": int() | float() as value, "Timestamp": int() | float() as seconds}:
            # Numbers beyond these are none that CloudWatch takes, and text that cannot be printed no name.
            if (
                name.isprintable()
                and 0 < len(name) <= _MAX_NAME
                and abs(value) < _MAX_VALUE
                and 0 <= seconds < _MAX_TIME
            ):
                return FinalMetric(name, float(value), round(seconds * 1000))
    return None
