"""Training, processing and tuning jobs, and executions of pipelines: stored, driven through their lives, announced.

Here are the kinds of jobs, a file each, as operations ask for them. The packages, each knowing those after it: ``runs``
(a job's life), ``uploads`` (what its containers write), ``staging`` (what they find when they start), ``records`` (what
is known of jobs, and the moves they may make).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.jobs.pipeline_executions import PipelineExecutions
from emulator.jobs.processing_jobs import ProcessingJobs
from emulator.jobs.records.database.ledger import Ledger
from emulator.jobs.records.pipeline_execution import PipelineExecution
from emulator.jobs.records.processing_job import ProcessingJob
from emulator.jobs.records.rule_evaluation import RuleEvaluation
from emulator.jobs.records.training_job import TrainingJob
from emulator.jobs.records.tuning_job import TuningJob
from emulator.jobs.runs.admission import Admission
from emulator.jobs.runs.collaborators import Collaborators
from emulator.jobs.runs.containers.logs import LogWriter
from emulator.jobs.runs.recovery import recover
from emulator.jobs.runs.remains import find_containers, find_logs
from emulator.jobs.runs.rule_job_run import STOP_GRACE_SECONDS
from emulator.jobs.runs.threads import RunThreads
from emulator.jobs.tags import Tags
from emulator.jobs.training_jobs import TrainingJobs
from emulator.jobs.tuning_jobs import TuningJobs
from emulator.moto_services.cloudwatch.logs import list_log_regions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from container_runtime.runtime import ContainerRuntime
    from emulator.events.publisher import Publisher
    from emulator.jobs.records.database.store import JobStore
    from emulator.jobs.runs.remains import Remains
    from emulator.moto_services.cloudwatch.logs import LogGroups
    from emulator.moto_services.cloudwatch.metrics import Metrics
    from emulator.moto_services.s3.objects import ObjectStore
    from emulator.settings import Settings

# Who ends the emulator waits: jobs get this long between SIGTERM and SIGKILL then, not StopTrainingJob's grace.
CLOSE_GRACE_SECONDS = 5.0


class Jobs:
    """Every job of an account, by kind. Thread safe; no thread and no container of it is left after ``close``."""

    def __init__(
        self,
        store: JobStore,
        runtime: ContainerRuntime,
        publisher: Publisher,
        object_store_for: Callable[[str], ObjectStore],
        log_groups_for: Callable[[str], LogGroups],
        metrics_for: Callable[[str], Metrics],
        settings: Settings,
        endpoint_url: str,
        rule_stop_grace_seconds: float = STOP_GRACE_SECONDS,
        admission: Admission | None = None,
    ) -> None:
        """Put the room together; nothing starts before ``recover`` or the first job.

        Args:
            store: open.
            runtime: runs the containers.
            publisher: gets every event.
            object_store_for: S3 by region.
            log_groups_for: CloudWatch Logs by region.
            metrics_for: CloudWatch's metrics by region.
            settings: account, folders, times.
            endpoint_url: where containers reach the emulator.
            rule_stop_grace_seconds: what rules get to judge the steps saved by a training that was stopped.
            admission: lets training jobs in; None for all that come.
        """
        self._store = store
        self._settings = settings
        self._ledger = Ledger(store, publisher)
        self._threads = RunThreads()
        self._log_groups_for = log_groups_for
        self._log_writer = LogWriter(log_groups_for)
        self._with = collaborators = Collaborators(
            self._ledger,
            self._threads,
            runtime,
            object_store_for,
            self._log_writer,
            metrics_for,
            settings,
            endpoint_url,
            rule_stop_grace_seconds,
            admission or Admission(),
        )
        self.training = TrainingJobs(store, collaborators)
        self.processing = ProcessingJobs(store, collaborators, self.training)
        self.tuning = TuningJobs(store, collaborators, self.training)
        self.pipelines = PipelineExecutions(store, collaborators)
        self.tags = Tags(store)

    def count_running(self) -> int:
        """Count the jobs and rule evaluations that have not ended."""
        list_running = self._store.list_running_jobs
        return (
            len(list_running(TrainingJob))
            + len(list_running(RuleEvaluation))
            + len(list_running(ProcessingJob))
            + len(list_running(TuningJob))
            + len(list_running(PipelineExecution))
        )

    def list_active(self) -> set[str]:
        """List the names of the jobs and rule evaluations that have not ended, or still clean up."""
        store = self._store
        return {
            *(job.name for job in store.list_running_jobs(TrainingJob)),
            *(job.name for job in store.list_running_jobs(ProcessingJob)),
            *(evaluation.name for evaluation in store.list_running_jobs(RuleEvaluation)),
            *self._threads.list_names(),
        }

    def find_remains(self) -> Iterator[Remains]:
        """Find the containers and the logs of jobs, those that run included.

        Raises:
            ContainerRuntimeError: the engine does not answer.
        """
        yield from find_containers(self._store.id, self._with.runtime)
        for region in list_log_regions(self._settings.account_id):
            yield from find_logs(self._log_groups_for(region))

    def reset(self, prefix: str) -> int:
        """Stop the jobs whose names begin with ``prefix``, wait for their ends, and forget them; return how many.

        The evaluations of their rules go with them; an empty prefix stands for every job.
        """
        grace_seconds = min(CLOSE_GRACE_SECONDS, self._settings.stop_grace_seconds)
        self._threads.stop(lambda: self._store.list_arns(prefix), grace_seconds)
        return self._store.forget(prefix)

    def recover(self) -> None:
        """Take up what the last process left; call it once, before the first request.

        Raises:
            ContainerRuntimeError: the engine does not answer.
        """
        recover(self._with)
        self.tuning.recover()
        self.pipelines.recover()

    def close(self) -> None:
        """Stop every job and wait for its end: no container, thread or process is left."""
        self._threads.close(min(CLOSE_GRACE_SECONDS, self._settings.stop_grace_seconds))
        self._log_writer.close()
