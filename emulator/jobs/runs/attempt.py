"""Attempts at a job: containers, network, log, and what measures them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from container_runtime.images.catalogue import parse_image_name
from container_runtime.spec import ContainerSpec, Mount
from emulator.jobs.model.failures import ContainerFailure
from emulator.jobs.runs.containers.container import HOST_LABEL, remove_network
from emulator.jobs.runs.containers.host_containers import HostContainers
from emulator.jobs.runs.job_log import JobLog
from emulator.jobs.runs.measuring.host_agent import HostAgent, MeasuredHost
from emulator.jobs.runs.measuring.volume import Volume, VolumeWatch, find_limit
from emulator.jobs.staging.hosts import Cluster
from emulator.jobs.staging.instance_types import GIB, count_gpus, find_cpus, find_memory_bytes
from emulator.jobs.staging.opt_ml import TARGET, locate_scratch
from emulator.security.trust import build_trust

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from container_runtime.runtime import Container, LogLine
    from emulator.jobs.runs.containers.host_containers import HostExit
    from emulator.jobs.runs.job_context import JobContext
    from emulator.jobs.runs.measuring.agent_thread import AgentThread
    from emulator.jobs.staging.hosts import Host
    from emulator.jobs.staging.job_files import JobFolder
    from emulator.jobs.staging.job_warnings import ReportedWarnings
    from emulator.settings import Settings


TRAINING_SHM_BYTES = 2 * GIB
"""Size of a training container's /dev/shm.

Data loaders pass batches through it and soon fill Docker's default, 64 MiB.
"""
_REFUSAL = re.compile(
    r"read-only file ?system|permission denied|operation not permitted|\bE(ROFS|ACCES|PERM)\b", re.IGNORECASE
)
_REFUSAL_HINT = (
    "smdebug-emulator: Something was refused to the container. It may write to /opt/ml, /tmp and its home only, and "
    "is not root, as it would be on AWS. If the image needs more, start the emulator with --writable-root, or as root "
    "with --container-user root."
)


def build_typical_spec(image: str, settings: Settings) -> ContainerSpec:
    """Build the spec of a typical container of an image: that of a job with one instance, of a rule, or a function."""
    if parse_image_name(image).repository == "lambda":
        folder = settings.state_dir.absolute()
        return ContainerSpec(
            name="typical",
            image=image,
            mounts=(Mount(folder, "/var/task", read_only=True, exclusive=True), Mount(folder, "/tmp")),  # noqa: S108
            read_only_root=True,
        )
    is_rule = image.startswith("sagemaker-debugger-rule")
    return ContainerSpec(
        name="typical",
        image=image,
        command=() if is_rule else ("train",),
        mounts=(Mount(settings.state_dir.absolute(), TARGET),),
        hostname="algo-1",
        read_only_root=not settings.writable_root,
        scratch=settings.state_dir.absolute(),
        shm_bytes=None if is_rule else TRAINING_SHM_BYTES,
    )


class Attempt(ABC):
    """Containers, network, logs and measurements of one attempt at a job. Each attempt has its own object."""

    def __init__(
        self, context: JobContext, containers: Mapping[str, Container] | None = None, log_start_ms: int | None = None
    ) -> None:
        """Prepare an attempt.

        Args:
            context: Constants and services of the job.
            containers: None for a new attempt. For one that a restart of the emulator or the engine has interrupted,
                the containers by host that were found.
            log_start_ms: See ``JobLog``.
        """
        self.context = context
        self.found = containers
        # The engine's error, for the job's log; empty where the emulator itself was restarted.
        self.cut_off_by = ""
        self.containers = HostContainers(context.services.runtime, context.name, containers or {})
        self.log = JobLog(context, log_start_ms, reattached=bool(containers))
        self.cluster = Cluster(context.hosts)
        self.volumes: dict[Host, VolumeWatch] = {}

    @property
    def is_complete(self) -> bool:
        """Whether a container of every host was found, so that the attempt can continue."""
        return self.found is not None and len(self.found) == len(self.context.hosts)

    @property
    def ended_unattended(self) -> bool:
        """Whether a container ended while the emulator was away.

        Such a container may have failed only because its requests to the emulator got no answer.
        """
        return any(not each.running for each in (self.found or {}).values())

    @property
    def all_ended_unattended(self) -> bool:
        """Whether all containers ended while the emulator was away."""
        return bool(self.found) and not any(each.running for each in (self.found or {}).values())

    @abstractmethod
    def find_files(self, host: Host) -> JobFolder:
        """Return the job's folder for a host."""

    @abstractmethod
    def read_message(self, host: Host) -> str:
        """Read the message that a host's container left about its failure."""

    def find_warnings(self, host: Host) -> ReportedWarnings | None:  # noqa: ARG002 - overridden
        """Return the warnings that a host's container reports; None for a kind of job that has no warnings."""
        return None

    def list_folders(self, host: Host) -> tuple[Path, ...]:
        """List the folders that count towards the size of the host's volume."""
        root = self.find_files(host).root
        return root, locate_scratch(root)

    @abstractmethod
    def stop_transfers(self) -> None:
        """Stop all threads that transfer files. Idempotent."""

    def connect(self) -> None:
        """Create the network of a job with several hosts.

        A single host needs none, and an engine has address ranges for only about thirty networks.
        """
        context = self.context
        if len(context.hosts) > 1:
            names = [host.name for host in context.hosts]
            create_network = context.services.runtime.create_network
            network = create_network(context.network_name, names, context.labels, isolated=context.isolated)
            self.cluster = Cluster(context.hosts, network)

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
        """Build the spec of a host's container.

        Args:
            host: The host.
            suffix: End of the container's name.
            image: The container's image.
            environment: The job's environment variables.
            mounts: The job's mounts.
            **members: Members of ``ContainerSpec`` that only this kind of job sets.
        """
        context, settings, network = self.context, self.context.services.settings, self.cluster.network
        variables, trusted = build_trust(settings.ca_bundle, context.services.runtime.path_in_container)
        return ContainerSpec(
            name=f"smdebug-{context.name}-{context.id}{suffix}",
            image=image,
            environment={**environment, **variables},
            mounts=mounts + trusted,
            hostname=host.name,
            network=None if network is None else network.name,
            isolated=context.isolated,
            labels=context.labels | {HOST_LABEL: host.name},
            memory_bytes=find_memory_bytes(host.instance_type),
            cpus=find_cpus(host.instance_type),
            gpus=count_gpus(host.instance_type),
            niceness=settings.job_niceness,
            read_only_root=not settings.writable_root,
            scratch=locate_scratch(self.find_files(host).root),
            **members,
        )

    def follow(self) -> None:
        """Begin to read the logs of the started containers, to measure them and to wait for their exits."""
        self.containers.follow(self.context.hosts, self.read_line, self.build_agents)

    def read_line(self, host: Host, line: LogLine) -> None:
        """Copy a line that a container printed to the job's log."""
        self.log.copy(host, line)

    def build_agents(self, host: Host, **metrics_files: Any) -> tuple[AgentThread, ...]:
        """Build the agents that watch a host's container; ``metrics_files`` is passed to ``HostAgent``."""
        context, name = self.context, f"{self.context.name}/{host.name}"
        volume = Volume(self.list_folders(host), context.volume_member, find_limit(context.volume_gb))
        watch = self.volumes[host] = VolumeWatch(name, volume, context.services.settings.disk)
        measured = MeasuredHost(name, self.find_files(host), host.instance_type, watch, self.find_warnings(host))
        metrics = context.services.metrics_for(context.region)
        return watch, HostAgent(measured, metrics, context.log_group, **metrics_files)

    def collect_failures(self, exits: Sequence[HostExit]) -> list[ContainerFailure]:
        """Return the failures of containers, and write hints about their causes to the log."""
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
        """Return why the emulator ended a container; empty if it did not end it.

        A container that failed by itself gets a hint in the log, if its last lines contain a permission error. A local
        process gets none, because it has all permissions of the emulator's user.
        """
        cause = self.volumes[host].reason or ""
        last_lines = self.containers.read_to_end(host)
        if not cause and self.context.services.runtime.name != "process" and any(map(_REFUSAL.search, last_lines)):
            self.log.write(host, _REFUSAL_HINT)
        return cause

    def detach(self) -> None:
        """Stop all threads that work for the containers, but leave the containers themselves in the engine."""
        self.containers.let_go()
        self.stop_transfers()
        # The next attempt compares the lines that it reads with the stored ones.
        self.log.flush()

    def close(self) -> None:
        """Remove the containers and the network, and stop all threads."""
        self.containers.close()
        if len(self.context.hosts) > 1:
            remove_network(self.context.services.runtime, self.context.network_name)
        self.stop_transfers()
