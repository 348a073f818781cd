"""From a training job to the container that runs it: what is supported, and the container's description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from container_runtime.spec import ContainerSpec
from emulator.jobs.records.failures import RequestFailure
from emulator.jobs.runs.container import HOST_LABEL, JOB_LABEL, STORE_LABEL
from emulator.jobs.staging.channels import check_channels
from emulator.jobs.staging.instance_types import GIB, find_memory_bytes
from emulator.jobs.staging.opt_ml import build_environment

if TYPE_CHECKING:
    from emulator.jobs.records.training_job import TrainingJob
    from emulator.jobs.runs.collaborators import Collaborators
    from emulator.jobs.staging.hosts import Cluster, Host
    from emulator.jobs.staging.opt_ml import OptMl

# A training container's /dev/shm: data loaders pass batches through it, and Docker's 64 MiB are soon full.
_SHM_BYTES = 2 * GIB


def check_supported(job: TrainingJob) -> None:
    """Refuse requests that this service does not run yet.

    Raises:
        RequestFailure: says what, and what to ask for in its place.
    """
    if job.request["AlgorithmSpecification"].get("TrainingInputMode") == "Pipe":
        raise RequestFailure("TrainingInputMode is Pipe, which is not supported yet. Use File.")
    check_channels(job.request)


def note_on_profiler(job: TrainingJob) -> str | None:
    """What to tell a job that asks for profiler rules; None when it does not."""
    rules = job.request.get("ProfilerRuleConfigurations")
    if not rules:
        return None
    names = ", ".join(rule["RuleConfigurationName"] for rule in rules)
    return f"The profiler is not emulated: its rules ({names}) are not evaluated. DebugRuleConfigurations are."


def name_network(job: TrainingJob) -> str:
    """The network of a job's hosts: the same after a restart."""
    return f"smdebug-{job.name}-{job.id}"


def build_training_spec(
    job: TrainingJob, opt_ml: OptMl, cluster: Cluster, host: Host, collaborators: Collaborators
) -> ContainerSpec:
    """The container of one host: ``IMAGE train`` unless the request has an entry point or arguments of its own."""
    algorithm = job.request["AlgorithmSpecification"]
    entrypoint = algorithm.get("ContainerEntrypoint")
    default = () if entrypoint else ("train",)
    return ContainerSpec(
        name=f"smdebug-{job.name}-{job.id}-{host.name}",
        image=algorithm["TrainingImage"],
        command=tuple(algorithm.get("ContainerArguments") or default),
        entrypoint=tuple(entrypoint) if entrypoint else None,
        environment=build_environment(
            opt_ml,
            job,
            cluster,
            host,
            collaborators.settings,
            collaborators.endpoint_url,
            collaborators.runtime.path_in_container,
        ),
        mounts=(opt_ml.mount,),
        hostname=host.name,
        network=None if cluster.network is None else cluster.network.name,
        labels={STORE_LABEL: collaborators.ledger.store.id, JOB_LABEL: job.arn, HOST_LABEL: host.name},
        memory_bytes=find_memory_bytes(host.instance_type),
        shm_bytes=_SHM_BYTES,
    )
