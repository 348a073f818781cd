"""Quotas of instances: refusal of jobs that would use more than an account may."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from emulator.exceptions import ResourceLimitExceeded
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.staging.hosts import list_hosts
from emulator.quotas import PROCESSING, SPOT, TRAINING, WARM_POOL, name_quota, read_quotas


class InstanceQuotas:
    """The quotas of one account for jobs of one kind, in each region. Thread safe."""

    def __init__(
        self, file: Path | None, list_running: Callable[[], Sequence[TrainingJob] | Sequence[ProcessingJob]]
    ) -> None:
        """Read the quotas.

        Args:
            file: Holds the quotas; None for no limits.
            list_running: Lists the jobs that have not ended.
        """
        self._quotas = {} if file is None else read_quotas(file)
        self._list_running = list_running
        self._lock = Lock()

    @contextmanager
    def admit(self, region: str, request: Mapping[str, Any]) -> Iterator[None]:
        """Check a new job, which is stored inside the ``with`` block, against the jobs that have not ended.

        Raises:
            ResourceLimitExceeded: The job would use too many instances.
        """
        if not self._quotas:
            yield
            return
        with self._lock:  # so that of two jobs at once the second counts the first
            self.check(region, request)
            yield

    def check(self, region: str, request: Mapping[str, Any], jobs: int = 1) -> None:
        """Check ``jobs`` new jobs of a request.

        Raises:
            ResourceLimitExceeded: They would use too many instances; in AWS's words.
        """
        asked = _count_instances(request)
        if not self._quotas.keys() & asked.keys():
            return
        used: Counter[str] = Counter()
        for job in self._list_running():
            if job.region == region:
                used += _count_instances(job.request)
        for name, count in asked.items():
            if name in self._quotas and used[name] + count * jobs > self._quotas[name]:
                raise ResourceLimitExceeded(
                    f"The account-level service limit '{name}' is {self._quotas[name]} Instances, with current "
                    f"utilization of {used[name]} Instances and a request delta of {count * jobs} Instances. Please "
                    "use AWS Service Quotas to request an increase for this quota. If AWS Service Quotas is not "
                    "available, contact AWS support to request an increase for this quota."
                )


def _count_instances(request: Mapping[str, Any]) -> Counter[str]:
    """Count the instances of a request for a training job or a processing job, by the names of their quotas."""
    if "ProcessingResources" in request:
        cluster = request["ProcessingResources"]["ClusterConfig"]
        if "InstanceType" not in cluster:
            return Counter()
        return Counter({name_quota(cluster["InstanceType"], PROCESSING): cluster.get("InstanceCount", 1)})
    uses = [SPOT if request.get("EnableManagedSpotTraining") else TRAINING]
    if (request.get("ResourceConfig") or {}).get("KeepAlivePeriodInSeconds"):
        uses.append(WARM_POOL)
    types = [host.instance_type for host in list_hosts(request) if host.instance_type is not None]
    return Counter(name_quota(each, use) for each in types for use in uses)
