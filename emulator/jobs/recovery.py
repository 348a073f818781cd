"""After a restart: which containers belong to jobs that have not ended, and what becomes of the rest."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.jobs.job_container import JOB_LABEL, STORE_LABEL, remove_container

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from container_runtime.runtime import Container, ContainerRuntime
    from emulator.jobs.rule_evaluation import RuleEvaluation
    from emulator.jobs.store import JobStore
    from emulator.jobs.training_job import TrainingJob

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the last process left.

    Attributes:
        jobs, evaluations: those to take up again, each with its container's id.
        lost_jobs, lost_evaluations: those whose container was never started or is gone.
        waiting_evaluations: those whose training has not come to start them, in a job that is taken up again.
    """

    jobs: Sequence[tuple[TrainingJob, str]]
    lost_jobs: Sequence[TrainingJob]
    evaluations: Sequence[tuple[RuleEvaluation, str]]
    lost_evaluations: Sequence[RuleEvaluation]
    waiting_evaluations: Sequence[RuleEvaluation]


def find_left_over(store: JobStore, runtime: ContainerRuntime) -> Recovered:
    """Match the store's unended jobs with the runtime's containers, and remove containers of jobs that have ended.

    Raises:
        ContainerRuntimeError: the engine does not answer.
    """
    containers = {container.labels[JOB_LABEL]: container for container in runtime.find({STORE_LABEL: store.id})}
    jobs = store.list_running_training_jobs()
    evaluations = store.list_running_rule_evaluations()
    wanted = {job.arn for job in jobs} | {evaluation.arn for evaluation in evaluations}
    for arn, container in containers.items():
        if arn not in wanted:
            remove_container(runtime, container.id)
    taken_up = {(job.region, job.name) for job in jobs if job.arn in containers}
    waiting = [each for each in evaluations if each.arn not in containers and _still_waits(each, taken_up)]
    names = {each.name for each in waiting}
    return Recovered(
        jobs=[(job, containers[job.arn].id) for job in jobs if job.arn in containers],
        lost_jobs=[job for job in jobs if job.arn not in containers],
        evaluations=_with_containers(evaluations, containers),
        lost_evaluations=[each for each in evaluations if each.arn not in containers and each.name not in names],
        waiting_evaluations=waiting,
    )


def describe_lost_job(job: TrainingJob) -> str:
    """FailureReason of a job whose container is not there any more."""
    if job.container_start_ms is None:
        happened = "before its training container was started"
    else:
        happened = "and its training container was gone when it came back"
    return f"InternalServerError: The emulator was ended during {job.secondary_status}, {happened}. Send the job again."


def describe_lost_evaluation(evaluation: RuleEvaluation) -> str:
    """StatusDetails of an evaluation whose container is not there any more."""
    if evaluation.start_ms is None:
        return "InternalServerError: The emulator was ended before the rule's container was started."
    return "InternalServerError: The emulator was ended, and the rule's container was gone when it came back."


def _still_waits(evaluation: RuleEvaluation, taken_up: set[tuple[str, str]]) -> bool:
    return evaluation.start_ms is None and (evaluation.region, evaluation.training_job_name) in taken_up


def _with_containers(
    evaluations: Sequence[RuleEvaluation], containers: Mapping[str, Container]
) -> list[tuple[RuleEvaluation, str]]:
    return [(each, containers[each.arn].id) for each in evaluations if each.arn in containers]
