"""Log streams of one attempt at a job, one for each of its hosts."""

from container_runtime.runtime import LogLine
from emulator.jobs.runs.containers.logs import StoredLines, build_stream_name
from emulator.jobs.runs.job_context import JobContext
from emulator.jobs.staging.hosts import Host


class JobLog:
    """Writes what containers print, and notes of the emulator, to CloudWatch Logs. Thread safe."""

    def __init__(self, job: JobContext, start_ms: int | None, *, reattached: bool) -> None:
        """Prepare the log.

        Args:
            job: Constants and services of the job.
            start_ms: Time in the names of the streams, in epoch milliseconds. If None, ``open`` sets it, and lines
                before that are dropped.
            reattached: Whether the containers' logs are read a second time, from their first line.
        """
        self._job = job
        self._writer = job.services.log_writer
        self._start_ms = start_ms
        self._reattached = reattached
        self._stored_lines: dict[Host, StoredLines] = {}

    def open(self, start_ms: int) -> None:
        """Create the streams; ``start_ms`` is part of their names."""
        self._start_ms = start_ms
        for host in self._job.hosts:
            self._writer.ensure_stream(self._job.region, self._job.log_group, self._name_stream(host, start_ms))

    def note(self, text: str, host: Host | None = None) -> None:
        """Write a note of the emulator to the streams of all hosts, or of one."""
        for each in self._job.hosts if host is None else (host,):
            self.write(each, f"smdebug-emulator: {text}")

    def write(self, host: Host, text: str) -> None:
        """Write a line of the emulator to a host's stream."""
        self._append(host, LogLine(self._job.services.ledger.now_ms(), text))

    def copy(self, host: Host, line: LogLine) -> None:
        """Write a line that a container printed, unless it was written before the container was reattached."""
        if self._reattached and self._start_ms is not None:
            if host not in self._stored_lines:
                stream = self._name_stream(host, self._start_ms)
                self._stored_lines[host] = self._writer.find_stored(self._job.region, self._job.log_group, stream)
            if self._stored_lines[host].take(line):
                return
        self._append(host, line)

    def flush(self) -> None:
        """Wait until all earlier lines are written."""
        self._writer.flush()

    def _append(self, host: Host, line: LogLine) -> None:
        if self._start_ms is not None:
            stream = self._name_stream(host, self._start_ms)
            self._writer.append(self._job.region, self._job.log_group, stream, line)

    def _name_stream(self, host: Host, start_ms: int) -> str:
        return build_stream_name(self._job.name, host.name, start_ms)
