"""The services that the jobs, operations and API pages of one account work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from container_runtime.runtime import ContainerRuntime
    from emulator.jobs.runs.admission import Admission
    from emulator.jobs.runs.containers.logs import LogWriter
    from emulator.jobs.runs.threads import RunThreads
    from emulator.jobs.store.ledger import Ledger
    from emulator.jobs.store.store import JobStore
    from emulator.moto_services.cloudwatch.logs import LogGroups
    from emulator.moto_services.cloudwatch.metrics import Metrics
    from emulator.moto_services.s3.objects import ObjectStore
    from emulator.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """The services of one account; ``emulator.jobs.build_services`` makes them.

    Attributes:
        settings: the emulator's settings, with this account's id.
        store: stores the job records and the messages sent about them.
        ledger: changes records, then announces the change.
        threads: the threads that drive the account's jobs.
        runtime: the container back end, shared by all accounts.
        object_store_for: returns S3 of a region.
        log_groups_for: returns CloudWatch Logs of a region.
        metrics_for: returns CloudWatch metrics of a region.
        log_writer: writes containers' output to CloudWatch Logs.
        endpoint_url: the emulator's URL for containers.
        rule_stop_grace_seconds: how long a rule may continue to evaluate the steps of a stopped training job.
        admission: limits how many training jobs of all accounts run at once.
    """

    settings: Settings
    store: JobStore
    ledger: Ledger
    threads: RunThreads
    runtime: ContainerRuntime
    object_store_for: Callable[[str], ObjectStore]
    log_groups_for: Callable[[str], LogGroups]
    metrics_for: Callable[[str], Metrics]
    log_writer: LogWriter
    endpoint_url: str
    rule_stop_grace_seconds: float
    admission: Admission

    @property
    def account_id(self) -> str:
        """The account's 12-digit id."""
        return self.settings.account_id
