"""Metrics of a job: values that MetricDefinitions match in its log."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import regex

from container_runtime.runtime import LogLine
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.training_job import FinalMetric

logger = logging.getLogger(__name__)

# A regular expression that backtracks excessively must not block the log.
_TIMEOUT_SECONDS = 0.05


class MetricReader:
    """Finds metrics in log lines, and stores their values. Thread safe.

    Attributes:
        publish: Called with each value that is found.
    """

    def __init__(
        self, definitions: Sequence[Mapping[str, Any]], publish: Callable[[FinalMetric], object] = lambda _: None
    ) -> None:
        """Compile the metric definitions.

        Args:
            definitions: ``AlgorithmSpecification.MetricDefinitions`` of the request.
            publish: See the attribute.

        Raises:
            RequestFailure: a regular expression is invalid.
        """
        self._patterns: dict[str, Any] = {each["Name"]: _compile(each["Name"], each["Regex"]) for each in definitions}
        self._found: dict[str, FinalMetric] = {}
        self._history: dict[str, list[float]] = {}
        self.publish = publish
        self._lock = Lock()

    def read(self, line: LogLine) -> None:
        """Search a line for every metric. The value is the first group of the regular expression."""
        for name, pattern in list(self._patterns.items()):
            try:
                found = pattern.search(line.text, timeout=_TIMEOUT_SECONDS)
            except TimeoutError:
                logger.warning("The regular expression of the metric %s takes too long: it is given up.", name)
                self._patterns.pop(name, None)  # another host's thread may have removed it already
                continue
            value = _read_number(found)
            if value is not None:
                metric = FinalMetric(name, value, line.timestamp_ms)
                with self._lock:
                    self._found[name] = metric
                    self._history.setdefault(name, []).append(value)
                self.publish(metric)

    @property
    def final_metrics(self) -> tuple[FinalMetric, ...]:
        """The last value of each metric that was found, in the order in which they were first found."""
        with self._lock:
            return tuple(self._found.values())

    def list_values(self, name: str) -> list[float]:
        """List the values of a metric so far, oldest first."""
        with self._lock:
            return list(self._history.get(name, ()))


def _compile(name: str, pattern: str) -> Any:
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise RequestFailure(
            f"The Regex {pattern!r} of the metric {name!r} is not a regular expression: {error}."
        ) from error


def _read_number(found: Any) -> float | None:
    """Parse the first group as a number; return None if it is not a finite number, which JSON cannot represent."""
    if found is None or not found.re.groups or found.group(1) is None:
        return None
    try:
        value = float(found.group(1))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
