"""Training, processing and tuning jobs, and pipeline executions.

Its packages, each importing only those after it: ``runs`` (what drives a job), ``uploads`` (what its containers write),
``staging`` (what they find when they start), ``store`` (SQLite) and ``model`` (the records and their transitions).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.jobs.experiment_jobs import ExperimentJobs
from emulator.jobs.model.pipeline_execution import PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.tuning_job import TuningJob
from emulator.jobs.pipeline_executions import PipelineExecutions
from emulator.jobs.processing_jobs import ProcessingJobs
from emulator.jobs.runs.admission import Admission
from emulator.jobs.runs.containers.logs import LogWriter
from emulator.jobs.runs.recovery import recover
from emulator.jobs.runs.remains import find_containers, find_logs
from emulator.jobs.runs.rule_job_run import STOP_GRACE_SECONDS
from emulator.jobs.runs.threads import RunThreads
from emulator.jobs.store.ledger import Ledger
from emulator.jobs.tags import Tags
from emulator.jobs.training_jobs import TrainingJobs
from emulator.jobs.tuning_jobs import TuningJobs
from emulator.moto_services.cloudwatch.logs import LogGroups, list_log_regions
from emulator.moto_services.cloudwatch.metrics import Metrics
from emulator.moto_services.s3.objects import ObjectStore
from emulator.services import Services

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from container_runtime.runtime import ContainerRuntime
    from emulator.events.publisher import Publisher
    from emulator.jobs.runs.remains import Remains
    from emulator.jobs.store.store import JobStore
    from emulator.settings import Settings

# Who ends the emulator waits: jobs get this long between SIGTERM and SIGKILL then, not StopTrainingJob's grace.
CLOSE_GRACE_SECONDS = 5.0


def build_services(
    settings: Settings,
    store: JobStore,
    runtime: ContainerRuntime,
    publisher: Publisher,
    endpoint_url: str,
    *,
    rule_stop_grace_seconds: float = STOP_GRACE_SECONDS,
    admission: Admission | None = None,
) -> Services:
    """Build the services of the account that ``settings`` name.

    Args:
        settings: account, folders, times.
        store: open; the account's.
        runtime: runs the containers.
        publisher: gets every event.
        endpoint_url: where containers reach the emulator.
        rule_stop_grace_seconds: how long a rule may go on with the steps of a training job that was stopped.
        admission: bounds how many training jobs run at once; None for no bound.
    """
    log_groups_for = partial(LogGroups, settings.account_id)
    return Services(
        settings=settings,
        store=store,
        ledger=Ledger(store, publisher),
        threads=RunThreads(),
        runtime=runtime,
        object_store_for=partial(ObjectStore, settings.account_id),
        log_groups_for=log_groups_for,
        metrics_for=partial(Metrics, settings.account_id),
        log_writer=LogWriter(log_groups_for),
        endpoint_url=endpoint_url,
        rule_stop_grace_seconds=rule_stop_grace_seconds,
        admission=admission or Admission(),
    )


class Jobs:
    """Every job of an account, by kind. Thread safe; no thread and no container of it is left after ``close``."""

    def __init__(self, services: Services) -> None:
        """Take the account's services; nothing starts before ``recover`` or the first job."""
        self.services = services
        self._store = services.store
        self.training = TrainingJobs(services)
        self.processing = ProcessingJobs(services, self.training)
        self.tuning = TuningJobs(services, self.training)
        self.pipelines = PipelineExecutions(services)
        self.experiments = ExperimentJobs(services)
        self.tags = Tags(services.store)

    def count_running(self) -> int:
        """Count the jobs and rule evaluations that have not ended."""
        kinds: Sequence[type[Any]] = (TrainingJob, RuleEvaluation, ProcessingJob, TuningJob, PipelineExecution)
        return sum(len(self._store.list_running_jobs(kind)) for kind in kinds)

    def list_active(self) -> set[str]:
        """List the names of the jobs and rule evaluations that have not ended, or still clean up."""
        kinds: Sequence[type[Any]] = (TrainingJob, ProcessingJob, RuleEvaluation)
        running = {job.name for kind in kinds for job in self._store.list_running_jobs(kind)}
        return running | self.services.threads.list_names()

    def find_remains(self) -> Iterator[Remains]:
        """Find the containers and the logs of jobs, those that run included.

        Raises:
            ContainerRuntimeError: the engine does not answer.
        """
        yield from find_containers(self._store.id, self.services.runtime)
        for region in list_log_regions(self.services.account_id):
            yield from find_logs(self.services.log_groups_for(region))

    def count(self, prefix: str = "") -> int:
        """Count the training and processing jobs whose names begin with ``prefix``, as ``reset`` does."""
        return self._store.by_prefix.count(prefix)

    def stop(self, prefix: str) -> None:
        """Stop the jobs whose names begin with ``prefix``, and wait for their ends."""
        grace_seconds = min(CLOSE_GRACE_SECONDS, self.services.settings.stop_grace_seconds)
        self.services.threads.stop(lambda: self._store.by_prefix.list_arns(prefix), grace_seconds)

    def reset(self, prefix: str) -> int:
        """Stop the jobs whose names begin with ``prefix``, wait for their ends, and forget them; return how many.

        The evaluations of their rules go with them; an empty prefix stands for every job.
        """
        self.stop(prefix)
        return self._store.by_prefix.forget(prefix)

    def recover(self) -> None:
        """Reattach the jobs of the last process; call it once, before the first request.

        Raises:
            ContainerRuntimeError: the engine does not answer.
        """
        self.experiments.recover()
        recover(self.services)
        self.tuning.recover()
        self.pipelines.recover()

    def close(self) -> None:
        """Stop every job and wait for its end: no container, thread or process is left."""
        self.services.threads.close(min(CLOSE_GRACE_SECONDS, self.services.settings.stop_grace_seconds))
        self.services.log_writer.close()
