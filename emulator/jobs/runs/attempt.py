"""Attempts at a job: containers, network, log, and what measures them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from container_runtime.spec import ContainerSpec
from emulator.jobs.model.failures import ContainerFailure
from emulator.jobs.runs.containers.container import HOST_LABEL, remove_network
from emulator.jobs.runs.containers.host_containers import HostContainers
from emulator.jobs.runs.containers.refused_writes import find_hint
from emulator.jobs.runs.job_log import JobLog
from emulator.jobs.runs.measuring.host_agent import HostAgent, MeasuredHost
from emulator.jobs.runs.measuring.volume import Volume, VolumeWatch, find_limit
from emulator.jobs.staging.hosts import Cluster
from emulator.jobs.staging.instance_types import find_cpus, find_memory_bytes
from emulator.jobs.staging.opt_ml import locate_scratch
from emulator.security.trust import build_trust

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from container_runtime.runtime import Container, LogLine
    from container_runtime.spec import Mount
    from emulator.jobs.runs.containers.container import Agent
    from emulator.jobs.runs.containers.host_containers import HostExit
    from emulator.jobs.runs.job_context import JobContext
    from emulator.jobs.staging.hosts import Host
    from emulator.jobs.staging.job_files import JobFolder
    from emulator.jobs.staging.job_warnings import ReportedWarnings


class Attempt(ABC):
    """What one attempt at a job has. It is made for each attempt and never used for another."""

    def __init__(
        self, job: JobContext, containers: Mapping[str, Container] | None = None, log_start_ms: int | None = None
    ) -> None:
        """Prepare an attempt.

        Args:
            job: that is attempted.
            containers: None for a new attempt; else those, by host, that were found of one which a restart of the
                emulator or of the engine has cut off.
            log_start_ms: see ``JobLog``.
        """
        self.job = job
        self.found = containers
        # The engine's error, for the job's log; empty where the emulator itself was restarted.
        self.cut_off_by = ""
        self.containers = HostContainers(job.services.runtime, job.name, containers or {})
        self.log = JobLog(job, log_start_ms, reattached=bool(containers))
        self.cluster = Cluster(job.hosts)
        self.volumes: dict[Host, VolumeWatch] = {}

    @property
    def is_complete(self) -> bool:
        """Whether a container was found of each host, so that the attempt can go on."""
        return self.found is not None and len(self.found) == len(self.job.hosts)

    @property
    def ended_unattended(self) -> bool:
        """Whether a container ended while nobody answered what it asked for, which is no fault of its own."""
        return any(not each.running for each in (self.found or {}).values())

    @abstractmethod
    def find_files(self, host: Host) -> JobFolder:
        """Find what the job writes on a host."""

    @abstractmethod
    def read_message(self, host: Host) -> str:
        """Read what a container says itself about its end."""

    def find_warnings(self, host: Host) -> ReportedWarnings | None:  # noqa: ARG002 - overridden
        """Find the warnings that a host's container reports; None for a job that has no list of them."""
        return None

    def list_folders(self, host: Host) -> tuple[Path, ...]:
        """List the folders that share the host's volume."""
        root = self.find_files(host).root
        return root, locate_scratch(root)

    @abstractmethod
    def stop_transfers(self) -> None:
        """End every thread that sends or receives files. Idempotent."""

    def connect(self) -> None:
        """Create the hosts' network. One host needs none, and an engine has address ranges for some thirty only."""
        job = self.job
        if len(job.hosts) > 1:
            names = [host.name for host in job.hosts]
            create_network = job.services.runtime.create_network
            network = create_network(job.network_name, names, job.labels, isolated=job.isolated)
            self.cluster = Cluster(job.hosts, network)

    def build_spec(
        self,
        host: Host,
        suffix: str = "",
        *,
        image: str,
        environment: Mapping[str, str],
        mounts: tuple[Mount, ...],
        **members: Any,
    ) -> ContainerSpec:
        """Build the spec of a host's container from what that of every job has, and its own ``members``."""
        job, settings, network = self.job, self.job.services.settings, self.cluster.network
        variables, trusted = build_trust(settings.ca_bundle, job.services.runtime.path_in_container)
        return ContainerSpec(
            name=f"smdebug-{job.name}-{job.id}{suffix}",
            image=image,
            environment={**environment, **variables},
            mounts=mounts + trusted,
            hostname=host.name,
            network=None if network is None else network.name,
            isolated=job.isolated,
            labels=job.labels | {HOST_LABEL: host.name},
            memory_bytes=find_memory_bytes(host.instance_type),
            cpus=find_cpus(host.instance_type),
            niceness=settings.job_niceness,
            read_only_root=not settings.writable_root,
            scratch=locate_scratch(self.find_files(host).root),
            **members,
        )

    def follow(self) -> None:
        """Read the logs of the containers, which were started, measure them and wait for their ends."""
        self.containers.follow(self.job.hosts, self.read_line, self.build_agents)

    def read_line(self, host: Host, line: LogLine) -> None:
        """Take over a line that a container printed."""
        self.log.copy(host, line)

    def build_agents(self, host: Host, **metrics_files: Any) -> tuple[Agent, ...]:
        """Build what works beside a host's container; ``metrics_files`` is for ``HostAgent``."""
        job, name = self.job, f"{self.job.name}/{host.name}"
        volume = Volume(self.list_folders(host), job.volume_member, find_limit(job.volume_gb))
        watch = self.volumes[host] = VolumeWatch(name, volume, job.services.settings.disk)
        measured = MeasuredHost(name, self.find_files(host), host.instance_type, watch, self.find_warnings(host))
        metrics = job.services.metrics_for(job.region)
        return watch, HostAgent(measured, metrics, job.log_group, **metrics_files)

    def collect_failures(self, exits: Sequence[HostExit]) -> list[ContainerFailure]:
        """Collect why containers failed, and write a hint into the log where there is one."""
        return [
            ContainerFailure(
                each.host.name,
                each.exit,
                self.read_message(each.host),
                self.containers.read_to_end(each.host),
                self.explain_failure(each.host),
            )
            for each in exits
            if each.failed
        ]

    def explain_failure(self, host: Host) -> str:
        """Say why the emulator ended a container; where it did not, write a hint into the log if there is one."""
        cause = self.volumes[host].reason or ""
        last_lines = self.containers.read_to_end(host)
        if not cause and (hint := find_hint(self.job.services.runtime, last_lines)):
            self.log.write(host, hint)
        return cause

    def detach(self) -> None:
        """End every thread that works for the containers, and leave these, which the engine has lost sight of."""
        self.containers.let_go()
        self.stop_transfers()
        # Another attempt will compare the lines that it reads with those that are stored.
        self.log.flush()

    def close(self) -> None:
        """Leave no container, no network and no thread."""
        self.containers.close()
        if len(self.job.hosts) > 1:
            remove_network(self.job.services.runtime, self.job.network_name)
        self.stop_transfers()
