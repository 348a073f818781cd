"""Container logs, written to CloudWatch Logs in batches as lines arrive."""

import logging
from collections import Counter
from collections.abc import Callable
from threading import Condition, Thread

from container_runtime.runtime import LogLine
from emulator.moto_services.cloudwatch.logs import Log, LogGroups, cut_message

logger = logging.getLogger(__name__)

TRAINING_GROUP = "/aws/sagemaker/TrainingJobs"
PROCESSING_GROUP = "/aws/sagemaker/ProcessingJobs"

FLUSH_SECONDS = 0.1
_PIPES_APART_MS = 1000


def build_stream_name(job_name: str, host: str, start_ms: int) -> str:
    """Build the stream name ``<job>/algo-1-<epoch seconds>``.

    The start time is stored, so the name stays the same after a restart of the emulator.
    """
    return f"{job_name}/{host}-{start_ms // 1000}"


class StoredLines:
    """The last lines in a log stream, to avoid duplicates when a container's log is read again after a restart."""

    def __init__(self, log: Log) -> None:
        first_ms: int | None = None
        self._lines: Counter[tuple[int, str]] = Counter()
        for _, line in log.read_back():
            # Lines come from two pipes, so a later line can have a slightly earlier time.
            first_ms = line.timestamp_ms - _PIPES_APART_MS if first_ms is None else first_ms
            if line.timestamp_ms < first_ms:
                break
            self._lines[line] += 1
        self._first_ms = first_ms

    def take(self, line: LogLine) -> bool:
        """Return whether a line is already stored. Each stored line matches only once, as lines may repeat."""
        if self._first_ms is None or line.timestamp_ms < self._first_ms:
            return self._first_ms is not None
        key = line.timestamp_ms, cut_message(line.text)
        if not self._lines[key]:  # a Counter keeps no key that is only read
            return False
        self._lines[key] -= 1
        return True


class LogWriter:
    """Writes the lines of all containers in one thread, as one batch every ``FLUSH_SECONDS``. Thread safe."""

    def __init__(self, log_groups_for: Callable[[str], LogGroups]) -> None:
        self._log_groups_for = log_groups_for
        self._pending: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
        self._queued = 0
        self._written = 0
        self._closed = False
        self._changed = Condition()
        self._thread: Thread | None = None

    def ensure_stream(self, region: str, group: str, stream: str) -> None:
        """Create the log stream, so that it exists before its first line."""
        self._log_groups_for(region).ensure_stream(group, stream)

    def append(self, region: str, group: str, stream: str, line: LogLine) -> None:
        """Queue a line for writing."""
        with self._changed:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="log-writer")
                self._thread.start()
            self._pending.setdefault((region, group, stream), []).append((line.timestamp_ms, line.text))
            self._queued += 1
            self._changed.notify_all()

    def find_stored(self, region: str, group: str, stream: str) -> StoredLines:
        """Return the stored lines of a log stream."""
        return StoredLines(self._log_groups_for(region).find(group, stream))

    def flush(self) -> None:
        """Wait until all lines queued so far are written."""
        with self._changed:
            queued = self._queued
            self._changed.wait_for(lambda: self._written >= queued)

    def close(self) -> None:
        """Write the remaining lines and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closed)
                if not self._pending:
                    return
                batches, self._pending = self._pending, {}
            for (region, group, stream), lines in batches.items():
                self._write(region, group, stream, lines)
            with self._changed:
                self._written += sum(len(lines) for lines in batches.values())
                self._changed.notify_all()
                # Lines that arrive during this pause go into the next batch.
                if not self._closed and not self._pending:
                    continue
                self._changed.wait_for(lambda: self._closed, timeout=FLUSH_SECONDS)

    def _write(self, region: str, group: str, stream: str, lines: list[tuple[int, str]]) -> None:
        try:
            self._log_groups_for(region).put(group, stream, lines)
        except Exception:  # an error of one log must not stop the others
            logger.exception("%d lines of the log stream %s %s were lost", len(lines), group, stream)
