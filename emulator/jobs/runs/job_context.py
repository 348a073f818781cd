"""Constants of a job: names, hosts, folder, and the services that it works with."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL
from emulator.jobs.staging.hosts import Host
from emulator.jobs.staging.opt_ml import find_work_folder
from emulator.moto_services.s3.objects import ObjectStore
from emulator.services import Services


@dataclass(frozen=True)
class JobContext:
    """Constants of a job.

    Attributes:
        services: The account's services.
        arn: The job's ARN.
        name: The job's name.
        region: The job's region.
        id: Part of the names of the job's folder and containers.
        hosts: Hosts that the job runs on.
        log_group: Group of the job's log streams, and namespace of its hosts' metrics.
        volume_member: Request member with the size of each host's volume.
        volume_gb: Value of that member.
        isolated: Whether the containers reach only each other and the emulator.
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
        """The folder with the job's files."""
        return find_work_folder(self.services.settings, self.name, self.id)

    @cached_property
    def object_store(self) -> ObjectStore:
        """S3 of the job's region."""
        return self.services.object_store_for(self.region)

    @property
    def labels(self) -> dict[str, str]:
        """Labels by which the job's containers and network are found after a restart."""
        return {STORE_LABEL: self.services.ledger.store.id, JOB_LABEL: self.arn}

    @property
    def network_name(self) -> str:
        """Name of the network between the job's hosts; a restart does not change it."""
        return f"smdebug-{self.name}-{self.id}"
