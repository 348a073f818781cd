"""After a restart: jobs whose containers still run are taken up again, the others end, and nothing else is left."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from emulator.jobs.records.failures import LOST_TOO_OFTEN, RequestFailure
from emulator.jobs.records.processing_job import ProcessingJob
from emulator.jobs.records.rule_evaluation import RuleEvaluation
from emulator.jobs.records.training_job import TrainingJob
from emulator.jobs.runs.containers.container import (
    JOB_LABEL,
    STORE_LABEL,
    find_hosts,
    remove_container,
    remove_network,
)
from emulator.jobs.runs.measuring.measures import finish_measures
from emulator.jobs.runs.processing import ProcessingRun, list_processing_hosts
from emulator.jobs.runs.rule import RuleRun
from emulator.jobs.runs.training import TrainingRun
from emulator.jobs.staging.channels import reads_pipe
from emulator.jobs.staging.hosts import list_hosts
from emulator.jobs.staging.job_files import describe_refused
from emulator.jobs.staging.opt_ml import (
    WORK_FOLDERS,
    find_measures,
    find_work_folder,
    locate_opt_ml,
    remove_work_folder,
)
from emulator.jobs.uploads.folder import UploadError
from emulator.jobs.uploads.live import LiveUploads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from container_runtime.runtime import Container, ContainerRuntime
    from emulator.jobs.records.database.store import JobStore
    from emulator.jobs.staging.opt_ml import OptMl
    from emulator.services import Services
    from emulator.settings import Settings

    EndedJob: TypeAlias = TrainingJob | ProcessingJob | RuleEvaluation

logger = logging.getLogger(__name__)


def recover(collaborators: Services) -> None:
    """Take up what the last process left; call it once, before the first request.

    Raises:
        ContainerRuntimeError: the engine does not answer.
    """
    ledger, threads = collaborators.ledger, collaborators.threads
    ended = list_ended_folders(ledger.store, collaborators.settings)
    left = find_left_over(ledger.store, collaborators.runtime, collaborators.settings, [job for job, _ in ended])
    published = ledger.publish_undelivered()
    if published or left.jobs or left.lost_jobs or left.restarted_jobs:
        logger.info(
            "Recovery: %d jobs taken up again, %d lost, %d events published again",
            len(left.jobs) + len(left.restarted_jobs),
            len(left.lost_jobs),
            published,
        )
    taken_up = {evaluation.arn for evaluation, _ in left.evaluations}
    for owner, folder in ended:
        if owner.arn not in taken_up:
            _finish_ended(owner, folder, collaborators)
    for job in left.lost_jobs:
        _lose_job(job, collaborators)
    restarted = [_restart_job(job, collaborators) for job in left.restarted_jobs]
    for evaluation, containers in left.evaluations:
        _take_up_evaluation(evaluation, containers, collaborators)
    for processing_job, containers in left.processing_jobs:
        threads.start(ProcessingRun(processing_job, collaborators, containers))
    # After the rules that run: a job taken up again starts those that do not.
    for job, containers in left.jobs:
        threads.start(TrainingRun(job, collaborators, containers))
    for job in restarted:
        threads.start(TrainingRun(job, collaborators))


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What the last process left.

    Attributes:
        restarted_jobs: those without all of their containers that begin again.
        lost_jobs: those without all of their containers that end: they were to stop, or have been lost too often.
        jobs, evaluations, processing_jobs: those to take up again, each with its containers by host: none where an
            evaluation or a processing job begins again. An evaluation that waits for its training is not among them,
            one that has its verdict is where its container is still there.
    """

    jobs: Sequence[tuple[TrainingJob, Mapping[str, Container]]]
    lost_jobs: Sequence[TrainingJob]
    restarted_jobs: Sequence[TrainingJob]
    evaluations: Sequence[tuple[RuleEvaluation, Mapping[str, Container]]]
    processing_jobs: Sequence[tuple[ProcessingJob, Mapping[str, Container]]]


def list_ended_folders(store: JobStore, settings: Settings) -> list[tuple[EndedJob, Path]]:
    """List the jobs that have ended and whose folders are there, but for folders that the FailureReason says are kept.

    The last process was killed between a job's end and its folder's, or could not upload what it holds.
    """
    found: list[tuple[EndedJob, Path]] = []
    regions = store.list_regions()
    for folder in (settings.state_dir.absolute() / WORK_FOLDERS).glob("*-*"):
        name, _, job_id = folder.name.rpartition("-")
        for region in regions:
            evaluation = store.find_rule_evaluation(region, name)
            if evaluation is not None:
                training_job = store.find_training_job(region, evaluation.training_job_name)
                if evaluation.ended and training_job is not None and training_job.id == job_id:
                    found.append((evaluation, folder))
            found += [
                (job, folder)
                for job in (store.find_training_job(region, name), store.find_job(ProcessingJob, region, name))
                if job is not None and job.ended and job.id == job_id and str(folder) not in (job.failure_reason or "")
            ]
    return found


def find_left_over(
    store: JobStore, runtime: ContainerRuntime, settings: Settings, ended: Sequence[EndedJob] = ()
) -> LeftOver:
    """Match the store's unended jobs with the runtime's containers, and remove what belongs to no job that goes on.

    Those are containers and networks of jobs that have ended, and of jobs that lack the container of a host, or their
    folder, as where the state was taken from a copy: what such containers write, nobody would find. Rules
    among the ``ended`` keep theirs: what they write after their verdict, reports, is still to be uploaded.

    Raises:
        ContainerRuntimeError: the engine does not answer.
    """
    found = runtime.find({STORE_LABEL: store.id})

    def find_containers(arn: str, name: str, job_id: str) -> Mapping[str, Container]:
        has_folder = find_work_folder(settings, name, job_id).is_dir()
        return find_hosts(arn, found) if has_folder else {}

    def find_containers_of_rule(rule: RuleEvaluation) -> Mapping[str, Container]:
        job = store.find_training_job(rule.region, rule.training_job_name)
        return {} if job is None else find_containers(rule.arn, rule.name, job.id)

    jobs = [(job, find_containers(job.arn, job.name, job.id)) for job in store.list_running_training_jobs()]
    taken_up = [
        (job, hosts)
        for job, hosts in jobs
        if len(hosts) == len(list_hosts(job.request)) and not _has_pipes(job)  # their writer has ended
    ]
    complete = {job.arn for job, _ in taken_up}
    without = [job for job, _ in jobs if job.arn not in complete]
    restarted = [job for job in without if job.may_begin_again]
    going_on = {(job.region, job.name) for job in [*(job for job, _ in taken_up), *restarted]}
    evaluations = [(each, find_containers_of_rule(each)) for each in store.list_running_rule_evaluations()]
    concluding = [(each, find_containers_of_rule(each)) for each in ended if isinstance(each, RuleEvaluation)]
    evaluations += [(each, hosts) for each, hosts in concluding if hosts]
    processing = [
        (each, hosts if len(hosts) == len(list_processing_hosts(each)) else {})
        for each in store.list_running_jobs(ProcessingJob)
        for hosts in [find_containers(each.arn, each.name, each.id)]
    ]
    wanted = {job.arn for job, _ in taken_up}
    wanted |= {each.arn for each, hosts in evaluations if hosts} | {each.arn for each, hosts in processing if hosts}
    for container in found:
        if container.labels[JOB_LABEL] not in wanted:
            remove_container(runtime, container.id)
    for network in runtime.find_networks({STORE_LABEL: store.id}):
        if network.labels[JOB_LABEL] not in wanted:
            remove_network(runtime, network.name)
    return LeftOver(
        jobs=taken_up,
        restarted_jobs=restarted,
        lost_jobs=[job for job in without if not job.may_begin_again],
        evaluations=[(each, hosts) for each, hosts in evaluations if hosts or not _still_waits(each, going_on)],
        processing_jobs=processing,
    )


def _has_pipes(job: TrainingJob) -> bool:
    return any(reads_pipe(channel, job.request) for channel in job.request.get("InputDataConfig") or ())


def _still_waits(evaluation: RuleEvaluation, going_on: set[tuple[str, str]]) -> bool:
    return evaluation.start_ms is None and (evaluation.region, evaluation.training_job_name) in going_on


def _take_up_evaluation(
    evaluation: RuleEvaluation, containers: Mapping[str, Container], collaborators: Services
) -> None:
    """Take up an evaluation, or begin it again; one that never began and whose training has ended is over."""
    ledger = collaborators.ledger
    training_job = ledger.store.find_training_job(evaluation.region, evaluation.training_job_name)
    assert training_job is not None
    if evaluation.start_ms is None and not containers and training_job.ended:
        ledger.change_rule_evaluation(evaluation.region, evaluation.name, RuleEvaluation.end_unstarted)
        return
    run = RuleRun(evaluation, training_job, collaborators, containers)
    if training_job.ended:
        run.limit(training_job, complete=training_job.status == "Completed")
    collaborators.threads.start(run)


def _finish_ended(owner: EndedJob, folder: Path, collaborators: Services) -> None:
    """Upload what an ended job may not have uploaded, and remove its folder."""
    if isinstance(owner, RuleEvaluation):
        training_job = collaborators.ledger.store.find_training_job(owner.region, owner.training_job_name)
        assert training_job is not None
        RuleRun(owner, training_job, collaborators).finish_output()
    elif isinstance(owner, TrainingJob) and owner.status == "Failed":
        _salvage_tensors(owner, collaborators)
    else:
        remove_work_folder(folder)


def _lose_job(job: TrainingJob, collaborators: Services) -> None:
    """End a job that does not begin again, what it saved in S3: as Stopped where it was to stop."""
    _salvage_tensors(job, collaborators)

    def lose(each: TrainingJob, now_ms: int) -> TrainingJob:
        if each.status == "Stopping":
            return each.end_stop(now_ms)
        return each.fail(now_ms, f"InternalServerError: {LOST_TOO_OFTEN}")

    collaborators.ledger.change_training_job(job.region, job.name, lose)


def _restart_job(job: TrainingJob, collaborators: Services) -> TrainingJob:
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

    change = collaborators.ledger.change_training_job
    restarted = change(job.region, job.name, TrainingJob.begin_again)
    if restarted.secondary_status == "Starting":
        return restarted
    return change(job.region, job.name, lambda each, now_ms: each.transition("Starting", now_ms))


def _salvage_tensors(job: TrainingJob, collaborators: Services) -> None:
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


def _build_uploads(job: TrainingJob, opt_mls: Sequence[OptMl], collaborators: Services, folder: Path) -> LiveUploads:
    finish_measures(find_measures(folder))
    object_store = collaborators.object_store_for(job.region)
    poll_seconds = collaborators.settings.tensor_poll_seconds
    return LiveUploads(job, opt_mls, object_store, poll_seconds, find_measures(folder))
