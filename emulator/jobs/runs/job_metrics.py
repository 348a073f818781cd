"""A training job's metrics, published in CloudWatch."""

from collections import Counter
from threading import Lock

from emulator.jobs.model.training_job import FinalMetric
from emulator.jobs.runs.job_context import JobContext
from emulator.moto_services.cloudwatch.metrics import Datum


class JobMetrics:
    """Publishes the values that a job prints, or writes to its metrics files. Thread safe."""

    def __init__(self, job: JobContext, *, reattached: bool) -> None:
        """Prepare to publish.

        Args:
            job: Constants and services of the job.
            reattached: Whether the containers' logs and files are read a second time, from their beginning.
        """
        self._job = job
        self._reattached = reattached
        self._lock = Lock()
        self._stored: Counter[tuple[str, float, int]] | None = None

    def put(self, metric: FinalMetric) -> None:
        """Publish a value, unless it was published before the containers were reattached."""
        if self._reattached and self._is_stored(metric):
            return
        datum = Datum(metric.name, metric.value, metric.timestamp_ms, {"TrainingJobName": self._job.name})
        self._job.services.metrics_for(self._job.region).put(self._job.log_group, [datum])

    def _is_stored(self, metric: FinalMetric) -> bool:
        """Return whether a value is already stored. Each stored value matches only once, as values may repeat."""
        with self._lock:
            if self._stored is None:
                metrics = self._job.services.metrics_for(self._job.region)
                found = metrics.read(self._job.log_group, "TrainingJobName", self._job.name)
                self._stored = Counter((each.name, each.value, each.timestamp_ms) for each in found)
            key = metric.name, metric.value, metric.timestamp_ms
            if not self._stored[key]:
                return False
            self._stored[key] -= 1
            return True
