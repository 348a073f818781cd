"""What every run of a job works with, in one bundle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.jobs.runs.admission import Admission

if TYPE_CHECKING:
    from collections.abc import Callable

    from container_runtime.runtime import ContainerRuntime
    from emulator.jobs.records.database.ledger import Ledger
    from emulator.jobs.runs.containers.logs import LogWriter
    from emulator.jobs.runs.threads import RunThreads
    from emulator.moto_services.cloudwatch.metrics import Metrics
    from emulator.moto_services.s3.objects import ObjectStore
    from emulator.settings import Settings


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What every run of a job works with.

    Attributes:
        ledger: stores changes, then announces them.
        threads: drive the runs.
        runtime: the container back end.
        object_store_for: S3 of a region.
        log_writer: CloudWatch Logs.
        metrics_for: CloudWatch's metrics of a region.
        settings: the emulator's.
        endpoint_url: where a container reaches the emulator.
        rule_stop_grace_seconds: what rules get to judge the steps saved by a training that was stopped.
        admission: lets training jobs in, those of all accounts.
    """

    ledger: Ledger
    threads: RunThreads
    runtime: ContainerRuntime
    object_store_for: Callable[[str], ObjectStore]
    log_writer: LogWriter
    metrics_for: Callable[[str], Metrics]
    settings: Settings
    endpoint_url: str
    rule_stop_grace_seconds: float
    admission: Admission = field(default_factory=Admission)
