"""After a restart: jobs whose containers still run are taken up again, the others end, and nothing else is left."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.jobs.records.failures import RequestFailure
from emulator.jobs.records.processing_job import ProcessingJob
from emulator.jobs.runs.containers.container import HOST_LABEL, JOB_LABEL, STORE_LABEL, remove_container, remove_network
from emulator.jobs.runs.measuring.measures import finish_measures
from emulator.jobs.runs.processing import ProcessingRun, list_processing_hosts
from emulator.jobs.runs.rule import RuleRun
from emulator.jobs.runs.training import TrainingRun
from emulator.jobs.staging.hosts import list_hosts
from emulator.jobs.staging.job_files import describe_refused
from emulator.jobs.staging.opt_ml import find_measures, find_work_folder, locate_opt_ml, remove_work_folder
from emulator.jobs.uploads.folder import UploadError
from emulator.jobs.uploads.live import LiveUploads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from container_runtime.runtime import Container, ContainerRuntime
    from emulator.jobs.records.database.store import JobStore
    from emulator.jobs.records.rule_evaluation import RuleEvaluation
    from emulator.jobs.records.training_job import TrainingJob
    from emulator.jobs.runs.collaborators import Collaborators
    from emulator.jobs.staging.opt_ml import OptMl

logger = logging.getLogger(__name__)


def recover(collaborators: Collaborators) -> None:
    """Take up what the last process left; call it once, before the first request.

    Raises:
        ContainerRuntimeError: the engine does not answer.
    """
    ledger, threads = collaborators.ledger, collaborators.threads
    left = find_left_over(ledger.store, collaborators.runtime)
    published = ledger.publish_undelivered()
    if published or left.jobs or left.lost_jobs or left.restarted_jobs:
        logger.info(
            "Recovery: %d jobs taken up again, %d lost, %d events published again",
            len(left.jobs) + len(left.restarted_jobs),
            len(left.lost_jobs),
            published,
        )
    for job in left.lost_jobs:
        _lose_job(job, collaborators)
    restarted = [_restart_job(job, collaborators) for job in left.restarted_jobs]
    for evaluation in left.lost_evaluations:
        _lose_evaluation(evaluation, collaborators)
    for processing_job in left.lost_processing_jobs:
        _lose_processing_job(processing_job, collaborators)
    for evaluation, hosts in left.evaluations:
        training_job = ledger.store.find_training_job(evaluation.region, evaluation.training_job_name)
        assert training_job is not None
        run = RuleRun(evaluation, training_job, collaborators, hosts)
        if training_job.ended:
            run.limit(training_job, complete=training_job.status == "Completed")
        threads.start(run)
    for processing_job, hosts in left.processing_jobs:
        threads.start(ProcessingRun(processing_job, collaborators, hosts))
    # After the rules that run: a job taken up again starts those that do not.
    for job, container_ids in left.jobs:
        threads.start(TrainingRun(job, collaborators, container_ids))
    for job in restarted:
        threads.start(TrainingRun(job, collaborators))


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What the last process left.

    Attributes:
        restarted_jobs: those without containers that begin again: RetryStrategy lets them, or they wait for instances.
        jobs, evaluations, processing_jobs: those to take up again, each with its containers' ids by host.
        lost_jobs, lost_evaluations, lost_processing_jobs: those of which a container was never started or is gone. An
            evaluation that waits for a training that is taken up again is not lost.
    """

    jobs: Sequence[tuple[TrainingJob, Mapping[str, str]]]
    lost_jobs: Sequence[TrainingJob]
    restarted_jobs: Sequence[TrainingJob]
    evaluations: Sequence[tuple[RuleEvaluation, Mapping[str, str]]]
    lost_evaluations: Sequence[RuleEvaluation]
    processing_jobs: Sequence[tuple[ProcessingJob, Mapping[str, str]]]
    lost_processing_jobs: Sequence[ProcessingJob]


def find_left_over(store: JobStore, runtime: ContainerRuntime) -> LeftOver:
    """Match the store's unended jobs with the runtime's containers, and remove what belongs to no job that goes on.

    Those are containers and networks of jobs that have ended, and of jobs that lack the container of a host.

    Raises:
        ContainerRuntimeError: the engine does not answer.
    """
    found = runtime.find({STORE_LABEL: store.id})
    jobs = [(job, _find_hosts(job.arn, found)) for job in store.list_running_training_jobs()]
    taken_up = [(job, hosts) for job, hosts in jobs if len(hosts) == len(list_hosts(job.request))]
    complete = {job.arn for job, _ in taken_up}
    restarted = [job for job, _ in jobs if job.arn not in complete and job.may_begin_again]
    names = {(job.region, job.name) for job in [*(job for job, _ in taken_up), *restarted]}
    evaluations = [(each, _find_hosts(each.arn, found)) for each in store.list_running_rule_evaluations()]
    processing = [(each, _find_hosts(each.arn, found)) for each in store.list_running_jobs(ProcessingJob)]
    processing_on = [(job, hosts) for job, hosts in processing if len(hosts) == len(list_processing_hosts(job))]
    wanted = {job.arn for job, _ in taken_up} | {each.arn for each, _ in evaluations}
    wanted |= {job.arn for job, _ in processing_on}
    for container in found:
        if container.labels[JOB_LABEL] not in wanted:
            remove_container(runtime, container.id)
    for network in runtime.find_networks({STORE_LABEL: store.id}):
        if network.labels[JOB_LABEL] not in wanted:
            remove_network(runtime, network.name)
    return LeftOver(
        jobs=taken_up,
        restarted_jobs=restarted,
        lost_jobs=[job for job, _ in jobs if (job.region, job.name) not in names],
        evaluations=[(each, hosts) for each, hosts in evaluations if hosts],
        lost_evaluations=[each for each, hosts in evaluations if not hosts and not _still_waits(each, names)],
        processing_jobs=processing_on,
        lost_processing_jobs=[job for job, _ in processing if job.arn not in wanted],
    )


def _still_waits(evaluation: RuleEvaluation, taken_up: set[tuple[str, str]]) -> bool:
    return evaluation.start_ms is None and (evaluation.region, evaluation.training_job_name) in taken_up


def _find_hosts(arn: str, containers: Sequence[Container]) -> dict[str, str]:
    return {each.labels[HOST_LABEL]: each.id for each in containers if each.labels[JOB_LABEL] == arn}


def _lose_job(job: TrainingJob, collaborators: Collaborators) -> None:
    """End a job of which a container is not there any more, what it saved in S3."""
    several = len(list_hosts(job.request)) > 1
    containers = "its training containers were" if several else "its training container was"
    if job.container_start_ms is None:
        happened = f"before {containers} started"
    else:
        happened = f"and {containers} {'not all there' if several else 'gone'} when it came back"
    reason = f"The emulator was ended during {job.secondary_status}, {happened}. Send the job again."
    _salvage_tensors(job, collaborators)
    collaborators.ledger.change_training_job(
        job.region, job.name, lambda each, now_ms: each.fail(now_ms, f"InternalServerError: {reason}")
    )


def _restart_job(job: TrainingJob, collaborators: Collaborators) -> TrainingJob:
    """Send what a job that begins again has saved so far to S3, and put it back to Starting; a waiting one waits on."""
    if job.secondary_status == "Pending":
        return job
    folder = find_work_folder(collaborators.settings, job.name, job.id)
    try:
        opt_mls = [locate_opt_ml(folder / host.name, job.request) for host in list_hosts(job.request)]
        _build_uploads(job, opt_mls, collaborators, folder).finish_attempt()
    except (RequestFailure, UploadError) as error:
        logger.warning("What the restarted training job %s has saved is lost in part: %s", job.name, error)
    remove_work_folder(folder)

    def restart(each: TrainingJob, now_ms: int) -> TrainingJob:
        waits = each.secondary_status in ("Interrupted", "Restarting")
        return (each if waits else each.transition("Restarting", now_ms)).transition("Starting", now_ms)

    return collaborators.ledger.change_training_job(job.region, job.name, restart)


def _salvage_tensors(job: TrainingJob, collaborators: Collaborators) -> None:
    """Upload what a lost job's containers have saved, say that no more comes, and remove the job's folder."""
    folder = find_work_folder(collaborators.settings, job.name, job.id)
    try:
        opt_mls = [locate_opt_ml(folder / host.name, job.request) for host in list_hosts(job.request)]
        _build_uploads(job, opt_mls, collaborators, folder).finish()
    except (RequestFailure, UploadError) as error:
        logger.warning("What the lost training job %s saved is kept in %s: %s", job.name, folder, error)
        return
    for opt_ml in opt_mls:
        if opt_ml.refused:
            logger.warning("The lost training job %s: %s", job.name, describe_refused(opt_ml.refused))
    remove_work_folder(folder)


def _build_uploads(
    job: TrainingJob, opt_mls: Sequence[OptMl], collaborators: Collaborators, folder: Path
) -> LiveUploads:
    finish_measures(find_measures(folder))
    object_store = collaborators.object_store_for(job.region)
    poll_seconds = collaborators.settings.tensor_poll_seconds
    return LiveUploads(job, opt_mls, object_store, poll_seconds, find_measures(folder))


def _lose_processing_job(job: ProcessingJob, collaborators: Collaborators) -> None:
    """End a processing job of which a container is not there any more."""
    happened = "before" if job.start_ms is None else "and not all of"
    reason = (
        f"InternalServerError: The emulator was ended {happened} its containers "
        f"{'were started' if job.start_ms is None else 'were there when it came back'}. Send the job again."
    )
    remove_work_folder(find_work_folder(collaborators.settings, job.name, job.id))
    collaborators.ledger.change_job(ProcessingJob, job.region, job.name, lambda each, now_ms: each.fail(now_ms, reason))


def _lose_evaluation(evaluation: RuleEvaluation, collaborators: Collaborators) -> None:
    """End an evaluation whose container is not there any more."""
    happened = " before the rule's container was started."
    if evaluation.start_ms is not None:
        happened = ", and the rule's container was gone when it came back."
    details = f"InternalServerError: The emulator was ended{happened}"
    collaborators.ledger.change_rule_evaluation(
        evaluation.region, evaluation.name, lambda each, now_ms: each.end("Error", now_ms, details)
    )
