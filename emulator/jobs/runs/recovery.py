"""Recovery after a restart: running containers reattached, other jobs ended.

Other remains of a killed emulator are removed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL, find_hosts, remove_container, remove_network
from emulator.jobs.runs.processing_job_run import ProcessingJobRun, list_processing_hosts
from emulator.jobs.runs.rule_job_run import RuleJobRun
from emulator.jobs.runs.training_job_run import TrainingJobRun, can_reattach
from emulator.jobs.runs.warm_pools import keep_available_pools
from emulator.jobs.staging.hosts import list_hosts
from emulator.jobs.staging.opt_ml import find_work_folder, remove_work_folder
from emulator.jobs.staging.s3_paths import build_profiler_uri, build_tensors_uri
from emulator.jobs.uploads.tensors import is_end_announced
from emulator.state.folder import WORK_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from container_runtime.runtime import Container, ContainerRuntime
    from emulator.jobs.store.store import JobStore
    from emulator.services import Services
    from emulator.settings import Settings

    EndedJob: TypeAlias = TrainingJob | ProcessingJob | RuleEvaluation

logger = logging.getLogger(__name__)


def recover(services: Services) -> None:
    """Resume the jobs of the last process. Call this once, before the first request.

    Raises:
        ContainerRuntimeError: The engine does not answer.
    """
    ledger, threads = services.ledger, services.threads
    ended = list_ended_folders(ledger.store, services.settings)
    left = find_left_over(ledger.store, services.runtime, services.settings, [job for job, _ in ended])
    published = ledger.publish_undelivered()
    if published or left.jobs or left.lost_jobs or left.restarted_jobs:
        logger.info(
            "Recovery: %d jobs go on or begin again, %d are lost, %d events are published again",
            len(left.jobs) + len(left.restarted_jobs),
            len(left.lost_jobs),
            published,
        )
    going_on = {evaluation.arn for evaluation, _ in left.evaluations}
    for owner, folder in ended:
        if owner.arn not in going_on:
            _finish_ended(owner, folder, services)
    _keep_slots_and_turns(left, services)
    for evaluation, containers in left.evaluations:
        _recover_evaluation(evaluation, containers, services)
    for processing_job, containers in left.processing_jobs:
        threads.start(ProcessingJobRun(processing_job, services, containers))
    # After the running rules: the end of a job limits their time, and a job that continues starts the others.
    for job in left.lost_jobs:
        TrainingJobRun(job, services, {}).drive()
    for job, containers in left.jobs:
        threads.start(TrainingJobRun(job, services, containers))
    for job in left.restarted_jobs:
        threads.start(TrainingJobRun(job, services, {}))
    keep_available_pools(services)


def _keep_slots_and_turns(left: LeftOver, services: Services) -> None:
    """Before any job waits for slots: give those that go on theirs, and those that begin again their order."""
    for job, _ in left.jobs:
        services.admission.reattach(job.arn, len(list_hosts(job.request)))
    for job in left.restarted_jobs:
        restarted = services.ledger.change_job(TrainingJob, job.region, job.name, TrainingJob.restart)
        if restarted.secondary_status != "Interrupted":  # it waits for instances first
            services.admission.expect(job.arn, job.creation_ms)


class LeftOver(NamedTuple):
    """Unended jobs of the last process.

    Attributes:
        jobs: Training jobs to reattach, each with its containers by host.
        lost_jobs: Training jobs that lack containers and end, because they were stopping or were lost too often.
        restarted_jobs: Training jobs that lack containers and restart.
        evaluations: Rule evaluations to resume, each with its containers by host; without containers, it restarts.
            Evaluations that wait for a running training job are not included. Those that have their verdict are
            included if their container still exists.
        processing_jobs: Processing jobs to resume, each with its containers by host; without containers, it restarts.
    """

    jobs: Sequence[tuple[TrainingJob, Mapping[str, Container]]]
    lost_jobs: Sequence[TrainingJob]
    restarted_jobs: Sequence[TrainingJob]
    evaluations: Sequence[tuple[RuleEvaluation, Mapping[str, Container]]]
    processing_jobs: Sequence[tuple[ProcessingJob, Mapping[str, Container]]]


def list_ended_folders(store: JobStore, settings: Settings) -> list[tuple[EndedJob, Path]]:
    """List the ended jobs that still have a folder, except folders that are kept according to the FailureReason.

    The last process was killed before it removed such a folder, or could not upload the folder's content.
    """
    found: list[tuple[EndedJob, Path]] = []
    regions = store.list_regions(TrainingJob, ProcessingJob)
    for folder in (settings.state_dir.absolute() / WORK_FOLDERS).glob("*-*"):
        name, _, job_id = folder.name.rpartition("-")
        for region in regions:
            evaluation = store.find_job(RuleEvaluation, region, name)
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
    """Match the store's unended jobs with the runtime's containers, and remove all other containers and networks.

    Removed are those of ended jobs, and of jobs that lack the container of a host or their folder. A folder is missing
    if the state was copied from elsewhere; the output of such containers would be lost. Rules among the ``ended`` keep
    their containers, because reports that they write after their verdict are still to be uploaded.

    Raises:
        ContainerRuntimeError: The engine does not answer.
    """
    found = runtime.find({STORE_LABEL: store.id})

    def find_containers(arn: str, name: str, job_id: str) -> Mapping[str, Container]:
        has_folder = find_work_folder(settings, name, job_id).is_dir()
        return find_hosts(arn, found) if has_folder else {}

    def find_containers_of_rule(rule: RuleEvaluation) -> Mapping[str, Container]:
        job = store.find_training_job(rule.region, rule.training_job_name)
        return {} if job is None else find_containers(rule.arn, rule.name, job.id)

    jobs = [(job, find_containers(job.arn, job.name, job.id)) for job in store.list_running_jobs(TrainingJob)]
    attached = [(job, hosts) for job, hosts in jobs if len(hosts) == len(list_hosts(job.request)) and can_reattach(job)]
    wanted = {job.arn for job, _ in attached}
    without = [job for job, _ in jobs if job.arn not in wanted]
    running = {(job.region, job.name) for job, _ in jobs}
    evaluations = [(each, find_containers_of_rule(each)) for each in store.list_running_jobs(RuleEvaluation)]
    concluding = [(each, find_containers_of_rule(each)) for each in ended if isinstance(each, RuleEvaluation)]
    evaluations += [(each, hosts) for each, hosts in concluding if hosts]
    processing = [
        (each, hosts if len(hosts) == len(list_processing_hosts(each)) else {})
        for each in store.list_running_jobs(ProcessingJob)
        for hosts in [find_containers(each.arn, each.name, each.id)]
    ]
    wanted |= {each.arn for each, hosts in evaluations if hosts} | {each.arn for each, hosts in processing if hosts}
    for container in found:
        if container.labels[JOB_LABEL] not in wanted:
            remove_container(runtime, container.id)
    for network in runtime.find_networks({STORE_LABEL: store.id}):
        if network.labels[JOB_LABEL] not in wanted:
            remove_network(runtime, network.name)
    return LeftOver(
        jobs=attached,
        restarted_jobs=[job for job in without if job.may_restart],
        lost_jobs=[job for job in without if not job.may_restart],
        evaluations=[(each, hosts) for each, hosts in evaluations if hosts or not _still_waits(each, running)],
        processing_jobs=processing,
    )


def _still_waits(evaluation: RuleEvaluation, running: set[tuple[str, str]]) -> bool:
    is_new = evaluation.start_ms is None and evaluation.status == "InProgress"
    return is_new and (evaluation.region, evaluation.training_job_name) in running


def _recover_evaluation(evaluation: RuleEvaluation, containers: Mapping[str, Container], services: Services) -> None:
    """Resume or restart an evaluation; end one that never started and whose training job has ended."""
    ledger = services.ledger
    training_job = ledger.store.find_training_job(evaluation.region, evaluation.training_job_name)
    assert training_job is not None
    if evaluation.start_ms is None and not containers and training_job.ended:
        ledger.change_job(RuleEvaluation, evaluation.region, evaluation.name, RuleEvaluation.end_unstarted)
        return
    run = RuleJobRun(evaluation, training_job, services, containers)
    if training_job.ended:
        uri = f"{build_profiler_uri(training_job)}/system" if run.of_profiler else build_tensors_uri(training_job)
        saved = is_end_announced(run.context.object_store, uri)
        run.limit(training_job, complete=saved and training_job.status != "Stopped")
    services.threads.start(run)


def _finish_ended(owner: EndedJob, folder: Path, services: Services) -> None:
    if isinstance(owner, RuleEvaluation):
        training_job = services.ledger.store.find_training_job(owner.region, owner.training_job_name)
        assert training_job is not None
        RuleJobRun(owner, training_job, services).finish_ended()
    elif isinstance(owner, TrainingJob):
        TrainingJobRun(owner, services).finish_ended()
    else:
        remove_work_folder(folder)
