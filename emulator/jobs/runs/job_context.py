"""Constants of a job: names, hosts, folder, and the services that it works with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL
from emulator.jobs.staging.opt_ml import find_work_folder

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.jobs.staging.hosts import Host
    from emulator.moto_services.s3.objects import ObjectStore
    from emulator.services import Services


@dataclass(frozen=True)
class JobContext:
    """What never changes while a job runs.

    Attributes:
        services: what it works with.
        arn, name, region: the job's.
        id: part of the names of its folder and its containers.
        hosts: that it runs on.
        log_group: of its log streams; also the namespace of its hosts' metrics.
        volume_member: the request's member that says how large the volume of each host is.
        volume_gb: what it says.
        isolated: whether its containers reach nothing but each other and the emulator.
    """

    services: Services
    arn: str
    name: str
    region: str
    id: str
    hosts: tuple[Host, ...]
    log_group: str
    volume_member: str
    volume_gb: int | None
    isolated: bool = False

    @cached_property
    def folder(self) -> Path:
        """The job's files."""
        return find_work_folder(self.services.settings, self.name, self.id)

    @cached_property
    def object_store(self) -> ObjectStore:
        """S3 of the job's region."""
        return self.services.object_store_for(self.region)

    @property
    def labels(self) -> dict[str, str]:
        """By which its containers and its network are found again after a restart."""
        return {STORE_LABEL: self.services.ledger.store.id, JOB_LABEL: self.arn}

    @property
    def network_name(self) -> str:
        """Name of the network of several hosts, the same after a restart."""
        return f"smdebug-{self.name}-{self.id}"
