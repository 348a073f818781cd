"""Host agent: resource use of a job's container, and its custom metrics files."""

import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from container_runtime.machine import count_memory_bytes
from container_runtime.runtime import ContainerRuntime, ContainerRuntimeError, Usage
from emulator.jobs.model.training_job import FinalMetric
from emulator.jobs.runs.measuring.agent_thread import AgentThread
from emulator.jobs.runs.measuring.volume import VolumeWatch
from emulator.jobs.staging.instance_types import find_memory_bytes
from emulator.jobs.staging.job_files import JobFolder, RefusedError
from emulator.jobs.staging.job_warnings import ReportedWarnings
from emulator.moto_services.cloudwatch.metrics import Datum, Metrics

logger = logging.getLogger(__name__)

# AWS measures once a minute. Local jobs are shorter: the first interval is short, and later ones are longer.
_FIRST_SECONDS = 0.5
_LAST_SECONDS = 5.0
# Maximum share of a CPU core for measuring one container and reading its files.
_MAX_SHARE = 0.02
# Maximum number of bytes to read from a file at once.
_MAX_READ_BYTES = 1 << 20
_MAX_NAME = 255
_MAX_VALUE = 2.0**360
_MAX_TIME = 1e11

MACHINE_MEMORY_BYTES = count_memory_bytes()


class MeasuredHost(NamedTuple):
    """The properties of an instance that the agent needs.

    Attributes:
        name: value of the dimension Host: ``<job>/algo-1``.
        files: the files that the job writes on the host.
        instance_type: determines the memory; if it is None or unknown, this machine's memory is used.
        volume: watches the storage volume.
        warnings: the warnings that the container reports, read regularly and at its end; None to read none.
    """

    name: str
    files: JobFolder
    instance_type: str | None
    volume: VolumeWatch
    warnings: ReportedWarnings | None = None


class HostAgent(AgentThread):
    """A thread that measures one container until it ends, and reads its metrics files to their end."""

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
            host: the host of the container.
            metrics: stores the utilizations.
            namespace: CloudWatch namespace of the utilizations.
            on_metric: called with each metric that the job writes to its metrics files; None to read no files.
            metrics_folder: folder of the metrics files, relative to the host's files.
        """
        super().__init__(f"agent-{host.name}")
        self._host = host
        self._metrics = metrics
        self._namespace = namespace
        self._on_metric = on_metric
        self._metrics_folder = metrics_folder
        self._offsets: dict[str, int] = {}

    def _run(self, runtime: ContainerRuntime, container_id: str) -> None:
        try:
            try:
                self._measure(runtime, container_id)
            except ContainerRuntimeError as error:
                logger.warning("%s is measured no longer: %s", self._host.name, error)
            self._ended.wait()
            self._read_files()
            self._metrics.keep()
        except Exception:  # the job continues without measurements
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
        """Build data points as AWS does: CPUUtilization is up to 100 for each core, the others are up to 100."""
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
        """Read the new complete lines of the metrics files."""
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
    """Parse a line of a metrics file in smdebug's format; return None if it is invalid, such as for NaN."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match record:
        case {"MetricName": str() as name, "Value": int() | float() as value, "Timestamp": int() | float() as seconds}:
            # CloudWatch does not accept numbers outside these ranges, or names with unprintable characters.
            if (
                name.isprintable()
                and 0 < len(name) <= _MAX_NAME
                and abs(value) < _MAX_VALUE
                and 0 <= seconds < _MAX_TIME
            ):
                return FinalMetric(name, float(value), round(seconds * 1000))
    return None
