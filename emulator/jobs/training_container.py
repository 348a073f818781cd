"""From a training job to the container that runs it: what is supported, and the container's description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from container_runtime.spec import ContainerSpec
from emulator.jobs.channels import check_channels
from emulator.jobs.failures import RequestFailure
from emulator.jobs.instance_types import GIB, find_memory_bytes
from emulator.jobs.job_container import JOB_LABEL, STORE_LABEL
from emulator.jobs.opt_ml import HOST, build_environment

if TYPE_CHECKING:
    from emulator.jobs.collaborators import Collaborators
    from emulator.jobs.opt_ml import OptMl
    from emulator.jobs.training_job import TrainingJob

# A training container's /dev/shm: data loaders pass batches through it, and Docker's 64 MiB are soon full.
_SHM_BYTES = 2 * GIB


def check_supported(job: TrainingJob) -> None:
    """Refuse requests that this service does not run yet.

    Raises:
        RequestFailure: says what, and what to ask for in its place.
    """
    resources = job.request.get("ResourceConfig") or {}
    count = resources.get("InstanceCount") or 1
    if count != 1 or resources.get("InstanceGroups"):
        raise RequestFailure(
            f"ResourceConfig asks for {'instance groups' if count == 1 else f'{count} instances'}, and training on "
            "more than one instance is not supported yet. Use InstanceCount 1."
        )
    if job.request["AlgorithmSpecification"].get("TrainingInputMode") == "Pipe":
        raise RequestFailure("TrainingInputMode is Pipe, which is not supported yet. Use File.")
    check_channels(job.request)


def build_training_spec(job: TrainingJob, opt_ml: OptMl, collaborators: Collaborators) -> ContainerSpec:
    """The container of ``job``: ``IMAGE train`` unless the request has an entry point or arguments of its own."""
    algorithm = job.request["AlgorithmSpecification"]
    entrypoint = algorithm.get("ContainerEntrypoint")
    default = () if entrypoint else ("train",)
    return ContainerSpec(
        name=f"smdebug-{job.name}-{job.id}",
        image=algorithm["TrainingImage"],
        command=tuple(algorithm.get("ContainerArguments") or default),
        entrypoint=tuple(entrypoint) if entrypoint else None,
        environment=build_environment(
            opt_ml, job, collaborators.settings, collaborators.endpoint_url, collaborators.runtime.path_in_container
        ),
        mounts=(opt_ml.mount,),
        hostname=HOST,
        labels={STORE_LABEL: collaborators.journal.store.id, JOB_LABEL: job.arn},
        memory_bytes=find_memory_bytes((job.request.get("ResourceConfig") or {}).get("InstanceType")),
        shm_bytes=_SHM_BYTES,
    )
