"""Tuning job run: concurrent training jobs until the search is exhausted."""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import Any

from emulator.exceptions import AwsError, ResourceLimitExceeded
from emulator.jobs.model.tuning_job import TunedJob, TuningJob, build_tuning_job_arn
from emulator.jobs.runs.training_job_run import TrainingJobRun
from emulator.jobs.runs.tuning.hyperparameters import Trial, is_hopeless, suggest
from emulator.services import Services

logger = logging.getLogger(__name__)

# Time between two reads of the metrics of running training jobs. The end of a training job is noticed at once.
_POLL_SECONDS = 0.5
# A tuning job ends if this many training jobs failed and none succeeded.
_FAILURES = 5
_NO_SUCCESS = (
    "No training job succeeded after {} attempts. For additional details, please take a look at the training job "
    "failures by listing training jobs for the hyperparameter tuning job."
)


class TuningJobRun:
    """Drives one tuning job to its end. The job's own thread calls ``drive``; other threads may ask it to stop."""

    def __init__(
        self,
        job: TuningJob,
        services: Services,
        create_training_job: Callable[[str, Mapping[str, Any]], object],
        stop_training_job: Callable[[str, str], object],
    ) -> None:
        """Prepare a run, of a new job or of one that ran before a restart.

        Args:
            job: The job as stored.
            services: The account's services.
            create_training_job: Creates a training job; takes region and request.
            stop_training_job: Stops a training job; takes region and name.
        """
        self.arn, self.name = job.arn, job.name
        self._job = job
        self._services = services
        self._create_training_job = create_training_job
        self._stop_training_job = stop_training_job
        self._stop_asked = Event()
        if job.status == "Stopping":
            self._stop_asked.set()
        # Objective values that were read during each training job, by job name.
        self._values: dict[str, list[float]] = {}
        # Number of these values that early stopping has judged, by job name.
        self._judged: dict[str, int] = {}

    def drive(self) -> None:
        """Drive the job from its current phase to its end."""
        try:
            tuned = self._tune()
            self._end(tuned)
        except Exception as error:
            logger.exception("Tuning job %s failed by a defect of the emulator", self.name)
            reason = f"InternalServerError: {type(error).__name__}: {error}."
            self._services.threads.store_at_last(lambda: self._change(lambda job, now_ms: job.fail(now_ms, reason)))

    def _tune(self) -> Sequence[TunedJob]:
        """Run training jobs until the search is complete; return their results."""
        while True:
            tuned = self._read_tuned_jobs()
            running = [each for each in tuned if not each.job.ended]
            if self._stop_asked.is_set() or self._is_complete(tuned):
                self._stop(running)
            elif self._launch(tuned, len(running)):
                continue
            else:
                self._stop(self._find_hopeless(tuned))
            if not running:
                return tuned
            self._services.threads.wait_for_news(_POLL_SECONDS)

    def _read_tuned_jobs(self) -> list[TunedJob]:
        jobs = self._services.ledger.store.list_training_jobs_of(self._job)
        tuned = [self._job.read_tuned_job(job) for job in jobs]
        for each in tuned:
            if isinstance(run := self._services.threads.find(each.job.arn), TrainingJobRun):
                self._values[each.job.name] = run.list_metric_values(each.objective["MetricName"])
        return tuned

    def _launch(self, tuned: Sequence[TunedJob], running: int) -> bool:
        """Start the next training job if the limits allow it and values are left to try.

        Returns:
            False if nothing was started; True otherwise, even if creating the job failed.
        """
        limits = self._job.configuration["ResourceLimits"]
        most = limits.get("MaxNumberOfTrainingJobs")
        if running >= limits["MaxParallelTrainingJobs"] or (most is not None and len(tuned) >= most):
            return False
        definitions = self._job.definitions
        for turn in range(len(definitions)):
            definition = definitions[(len(tuned) + turn) % len(definitions)]
            own = [each for each in tuned if each.definition is definition]
            parameters = suggest(self._job, definition, self._list_trials(definition, own))
            if parameters is not None:
                break
        else:
            return False
        name = f"{self.name}-{len(tuned) + 1:03d}-{uuid.uuid4().hex[:8]}"
        tags = self._services.ledger.store.list_tags(self.arn)
        request = self._job.build_training_request(definition, name, parameters, tags)
        try:
            self._create_training_job(self._job.region, request)
        except ResourceLimitExceeded as error:
            # Other jobs use the instances of a quota.
            logger.info("Tuning job %s waits: %s", self.name, error)
            self._services.threads.wait_for_news(_POLL_SECONDS)
        except AwsError as error:
            # The emulator is shutting down, or a resource in the request was removed after the tuning job's creation.
            logger.warning("Tuning job %s starts no more training jobs: %s", self.name, error)
            reason = f"ClientError: {error}"
            if not self._services.threads.closing:
                self._change(lambda job, now_ms: job.fail(now_ms, reason))
            self._stop_asked.set()
        return True

    def _list_trials(self, definition: Mapping[str, Any], tuned: Sequence[TunedJob]) -> list[Trial]:
        """List the trials of the definition's ranges: those of parent jobs, then those of this job."""
        parents = [] if self._job.configuration["Strategy"] == "Grid" else self._read_parents()
        names = self._job.list_ranges(definition).keys()
        return [
            Trial(each.parameters, not each.job.ended, each.value, self._list_values(each))
            for each in [*parents, *tuned]
            if names <= each.parameters.keys()
        ]

    def _list_values(self, tuned: TunedJob) -> Sequence[float]:
        """List the objective's values during the training; only the last one if none were read during it."""
        last = () if tuned.value is None else (tuned.value,)
        return self._values.get(tuned.job.name) or last

    def _read_parents(self) -> list[TunedJob]:
        tuned = []
        for each in (self._job.request.get("WarmStartConfig") or {}).get("ParentHyperParameterTuningJobs", ()):
            store = self._services.ledger.store
            name = each["HyperParameterTuningJobName"]
            parent = store.find_by_arn(TuningJob, build_tuning_job_arn(self._job.account_id, self._job.region, name))
            if parent is not None:
                tuned += [parent.read_tuned_job(job) for job in store.list_training_jobs_of(parent) if job.ended]
        return tuned

    def _find_hopeless(self, tuned: Sequence[TunedJob]) -> list[TunedJob]:
        """Find the training jobs that early stopping ends."""
        configuration = self._job.configuration
        if configuration["Strategy"] != "Hyperband" and configuration.get("TrainingJobEarlyStoppingType") != "Auto":
            return []
        hopeless = []
        for definition in self._job.definitions:
            own = [each for each in tuned if each.definition is definition]
            trials = self._list_trials(definition, own)
            before = len(trials) - len(own)
            for at, each in enumerate(own, start=before):
                known = len(trials[at].values)
                if each.job.ended or self._judged.get(each.job.name) == known:
                    continue
                self._judged[each.job.name] = known
                if is_hopeless(self._job, definition, trials, at):
                    hopeless.append(each)
        return hopeless

    def _is_complete(self, tuned: Sequence[TunedJob]) -> bool:
        """Whether the search ends even if the limits allow more training jobs."""
        ended = [each for each in tuned if each.job.ended]
        valued = [each for each in ended if each.value is not None]
        if len(ended) >= _FAILURES and not valued:
            return True
        configuration = self._job.configuration
        limit = configuration["ResourceLimits"].get("MaxRuntimeInSeconds")
        if limit is not None and self._services.ledger.now_ms() - self._job.creation_ms >= limit * 1000:
            return True
        criteria = configuration.get("TuningJobCompletionCriteria", {})
        best = self._job.find_best(valued)
        target = criteria.get("TargetObjectiveMetricValue")
        if best is None:
            return False
        if target is not None and best.score >= (target if best.objective["Type"] == "Maximize" else -target):
            return True
        patience = criteria.get("BestObjectiveNotImproving", {}).get("MaxNumberOfTrainingJobsNotImproving")
        return patience is not None and len(ended) - 1 - ended.index(best) >= patience

    def _stop(self, tuned: Sequence[TunedJob]) -> None:
        for each in tuned:
            if each.job.status == "InProgress":
                with suppress(AwsError):  # it has just ended
                    self._stop_training_job(self._job.region, each.job.name)

    def _end(self, tuned: Sequence[TunedJob]) -> None:
        succeeded = any(each.objective_status == "Succeeded" for each in tuned)

        def conclude(job: TuningJob, now_ms: int) -> TuningJob:
            if job.ended:
                return job
            if job.status == "Stopping":
                return job.transition("Stopped", now_ms)
            if not succeeded:
                return job.fail(now_ms, _NO_SUCCESS.format(len(tuned)))
            return job.transition("Completed", now_ms)

        self._change(conclude)

    def ask_stop(self, grace_seconds: float) -> None:  # noqa: ARG002 - that of each training job counts
        """Stop the job and its training jobs without waiting for their ends. Thread safe and idempotent."""
        self._stop_asked.set()

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and stop it, because the emulator shuts down."""
        self._services.ledger.change_job(TuningJob, self._job.region, self.name, TuningJob.begin_stop)
        self.ask_stop(grace_seconds)

    def _change(self, change: Callable[[TuningJob, int], TuningJob]) -> None:
        self._job = self._services.ledger.change_job(TuningJob, self._job.region, self.name, change)
