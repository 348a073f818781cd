"""After a restart: which containers belong to jobs that have not ended, and what becomes of the rest."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.jobs.runs.container import HOST_LABEL, JOB_LABEL, STORE_LABEL, remove_container, remove_network
from emulator.jobs.staging.hosts import list_hosts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from container_runtime.runtime import Container, ContainerRuntime
    from emulator.jobs.records.rule_evaluation import RuleEvaluation
    from emulator.jobs.records.store import JobStore
    from emulator.jobs.records.training_job import TrainingJob

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the last process left.

    Attributes:
        jobs: those to take up again, each with its containers' ids by host.
        evaluations: those to take up again, each with its container's id.
        lost_jobs, lost_evaluations: those of which a container was never started or is gone.
        waiting_evaluations: those whose training has not come to start them, in a job that is taken up again.
    """

    jobs: Sequence[tuple[TrainingJob, Mapping[str, str]]]
    lost_jobs: Sequence[TrainingJob]
    evaluations: Sequence[tuple[RuleEvaluation, str]]
    lost_evaluations: Sequence[RuleEvaluation]
    waiting_evaluations: Sequence[RuleEvaluation]


def find_left_over(store: JobStore, runtime: ContainerRuntime) -> Recovered:
    """Match the store's unended jobs with the runtime's containers, and remove what belongs to no job that goes on.

    Those are containers and networks of jobs that have ended, and of jobs that lack the container of a host.

    Raises:
        ContainerRuntimeError: the engine does not answer.
    """
    found = runtime.find({STORE_LABEL: store.id})
    jobs = [(job, _find_hosts(job, found)) for job in store.list_running_training_jobs()]
    taken_up = [(job, hosts) for job, hosts in jobs if len(hosts) == len(list_hosts(job.request))]
    names = {(job.region, job.name) for job, _ in taken_up}
    containers = {container.labels[JOB_LABEL]: container for container in found}
    evaluations = store.list_running_rule_evaluations()
    wanted = {job.arn for job, _ in taken_up} | {evaluation.arn for evaluation in evaluations}
    for container in found:
        if container.labels[JOB_LABEL] not in wanted:
            remove_container(runtime, container.id)
    for network in runtime.find_networks({STORE_LABEL: store.id}):
        if network.labels[JOB_LABEL] not in wanted:
            remove_network(runtime, network.name)
    waiting = [each for each in evaluations if each.arn not in containers and _still_waits(each, names)]
    return Recovered(
        jobs=taken_up,
        lost_jobs=[job for job, _ in jobs if (job.region, job.name) not in names],
        evaluations=[(each, containers[each.arn].id) for each in evaluations if each.arn in containers],
        lost_evaluations=[each for each in evaluations if each.arn not in containers and each not in waiting],
        waiting_evaluations=waiting,
    )


def describe_lost_job(job: TrainingJob) -> str:
    """FailureReason of a job of which a container is not there any more."""
    several = len(list_hosts(job.request)) > 1
    containers = "its training containers were" if several else "its training container was"
    if job.container_start_ms is None:
        happened = f"before {containers} started"
    else:
        happened = f"and {containers} {'not all there' if several else 'gone'} when it came back"
    return f"InternalServerError: The emulator was ended during {job.secondary_status}, {happened}. Send the job again."


def describe_lost_evaluation(evaluation: RuleEvaluation) -> str:
    """StatusDetails of an evaluation whose container is not there any more."""
    if evaluation.start_ms is None:
        return "InternalServerError: The emulator was ended before the rule's container was started."
    return "InternalServerError: The emulator was ended, and the rule's container was gone when it came back."


def _still_waits(evaluation: RuleEvaluation, taken_up: set[tuple[str, str]]) -> bool:
    return evaluation.start_ms is None and (evaluation.region, evaluation.training_job_name) in taken_up


def _find_hosts(job: TrainingJob, containers: Sequence[Container]) -> dict[str, str]:
    return {each.labels[HOST_LABEL]: each.id for each in containers if each.labels[JOB_LABEL] == job.arn}
