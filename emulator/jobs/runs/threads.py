"""The jobs that run now: one thread for each training job and each rule evaluation."""

from __future__ import annotations

import logging
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING

from sqlalchemy.exc import DatabaseError

from emulator.exceptions import InternalFailure
from emulator.jobs.runs.rule import RuleRun, begin_stopping, run_rule_evaluation
from emulator.jobs.runs.training import TrainingRun, fail_with
from emulator.jobs.runs.training_runner import run_training_job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.jobs.records.rule_evaluation import RuleEvaluation
    from emulator.jobs.records.training_job import TrainingJob
    from emulator.jobs.runs.collaborators import Collaborators

logger = logging.getLogger(__name__)

# Who ends the emulator waits: jobs get this long between SIGTERM and SIGKILL then, not StopTrainingJob's grace.
CLOSE_GRACE_SECONDS = 5.0
# Between two attempts to store how something ended, while the store takes nothing.
_STORE_AGAIN_SECONDS = 1.0


class RunningJobs:
    """Starts the threads, knows what each drives, and joins them. Thread safe.

    The lock is held over storing a job and registering its run, and over looking a run up: whoever finds a job stored
    as Stopping without a run knows that there is nothing to stop.
    """

    def __init__(self, collaborators: Collaborators, rule_stop_grace_seconds: float) -> None:
        self._with = collaborators
        self._ledger = collaborators.ledger
        self._rule_stop_grace_seconds = rule_stop_grace_seconds
        self._lock = RLock()
        self._closing = Event()
        self._runs: dict[tuple[str, str], TrainingRun] = {}
        self._rule_runs: dict[tuple[str, str], RuleRun] = {}
        self._threads: list[Thread] = []

    def create_job(
        self, job: TrainingJob, evaluations: Sequence[RuleEvaluation], tags: Sequence[Mapping[str, str]]
    ) -> None:
        """Store a new job and start it.

        Raises:
            ResourceInUse, InternalFailure: the emulator is closing.
        """
        with self._lock:
            if self._closing.is_set():
                raise InternalFailure("The emulator is shutting down and starts no more jobs.")
            self._ledger.create_training_job(job, evaluations, tags)
            self.start_job(job)

    def start_job(self, job: TrainingJob, container_ids: Mapping[str, str] | None = None) -> None:
        """Drive a stored job; ``container_ids`` are those of the containers it had before a restart, by host."""
        run = TrainingRun(job, self._with, self._start_rules, container_ids)
        with self._lock:
            self._runs[job.region, job.name] = run
            self._start_thread(f"training-job-{job.name}", lambda: self._drive(run))

    def take_up_rule(self, evaluation: RuleEvaluation, job: TrainingJob, container_id: str) -> None:
        """Drive a rule evaluation whose container was started before a restart."""
        run = RuleRun(evaluation, job, self._with, container_id)
        if job.ended:
            self._limit_rule(run, job, complete=job.status == "Completed")
        with self._lock:
            self._start_rule(run)

    def ask_stop(self, job: TrainingJob) -> None:
        """Let a job that is stored as Stopping stop."""
        with self._lock:
            if (run := self._runs.get((job.region, job.name))) is not None:
                run.ask_stop(self._with.settings.stop_grace_seconds)

    def ask_stop_rule(self, evaluation: RuleEvaluation) -> RuleEvaluation:
        """Let an evaluation that is stored as Stopping stop; one that waits for its training has stopped then."""
        with self._lock:
            run = self._rule_runs.get((evaluation.region, evaluation.name))
            if run is None:
                return self._ledger.change_rule_evaluation(evaluation.region, evaluation.name, _stop_unstarted)
            run.ask_stop(self._with.settings.stop_grace_seconds)
        return evaluation

    def close(self) -> None:
        """Stop everything and join every thread."""
        grace = min(CLOSE_GRACE_SECONDS, self._with.settings.stop_grace_seconds)
        with self._lock:
            self._closing.set()
            for run in self._runs.values():
                self._ledger.change_training_job(run.region, run.name, begin_stop)
                run.ask_stop(grace)
            for rule_run in self._rule_runs.values():
                self._ledger.change_rule_evaluation(rule_run.region, rule_run.name, begin_stopping)
                rule_run.ask_stop(grace, "The emulator was shut down before the evaluation ended.")
            threads, self._threads = self._threads, []
        # Nothing starts a thread any more: ``create_job`` and ``_start_rules`` refuse.
        for thread in threads:
            thread.join()

    def _drive(self, run: TrainingRun) -> None:
        try:
            run_training_job(run)
        except Exception as error:  # the store itself failed
            logger.exception("The state of the training job %s could not be stored", run.name)
            reason = f"InternalServerError: The job's state could not be stored: {error}"
            self._store_at_last(lambda: self._ledger.change_training_job(run.region, run.name, fail_with(reason)))
        finally:
            with self._lock:
                del self._runs[run.region, run.name]
                self._end_rules(run)

    def _start_rules(self, job: TrainingJob) -> None:
        """Start each rule evaluation of ``job`` that waits for its training."""
        with self._lock:
            if self._closing.is_set():
                return
            for evaluation in self._ledger.store.list_rule_evaluations_of(job):
                running = (evaluation.region, evaluation.name) in self._rule_runs
                if evaluation.status == "InProgress" and evaluation.start_ms is None and not running:
                    self._start_rule(RuleRun(evaluation, job, self._with))

    def _start_rule(self, run: RuleRun) -> None:
        self._rule_runs[run.region, run.name] = run
        self._start_thread(f"rule-{run.name}", lambda: self._drive_rule(run))

    def _drive_rule(self, run: RuleRun) -> None:
        try:
            run_rule_evaluation(run)
        except Exception as error:  # as in _drive
            logger.exception("The state of the rule evaluation %s could not be stored", run.name)
            reason = f"InternalServerError: The evaluation's state could not be stored: {error}"
            self._store_at_last(lambda: run.record_at_last(reason))
        finally:
            with self._lock:
                del self._rule_runs[run.region, run.name]

    def _store_at_last(self, store: Callable[[], object]) -> None:
        """Store an end that the store refused: a disk has room again when the run's files, or another's, are gone."""
        while True:
            try:
                store()
            except (OSError, DatabaseError):
                # What is wrong was said when it was refused first.
                if self._closing.wait(_STORE_AGAIN_SECONDS):
                    logger.exception("It could not be stored until the emulator ended")
                    return
            else:
                return

    def _end_rules(self, run: TrainingRun) -> None:
        """After the training's end: rules that never started stop, those that run finish what was saved."""
        store = self._ledger.store
        job = store.find_training_job(run.region, run.name)
        assert job is not None
        for evaluation in store.list_rule_evaluations_of(job):
            rule_run = self._rule_runs.get((evaluation.region, evaluation.name))
            if rule_run is None:
                self._ledger.change_rule_evaluation(evaluation.region, evaluation.name, _stop_unstarted)
            else:
                self._limit_rule(rule_run, job, complete=job.status != "Stopped" and run.tensors_ended)

    def _limit_rule(self, run: RuleRun, job: TrainingJob, *, complete: bool) -> None:
        """Give a rule its last time: short after a stop; else what the training had, for a rule that never ends."""
        if not complete:
            run.limit(self._rule_stop_grace_seconds, "The training job ended before every step was evaluated.")
            return
        seconds = job.max_runtime_seconds
        run.limit(seconds, f"The rule still ran {seconds} s (MaxRuntimeInSeconds) after the training job had ended.")

    def _start_thread(self, name: str, target: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = Thread(target=target, name=name)
        self._threads.append(thread)
        thread.start()


def begin_stop(job: TrainingJob, now_ms: int) -> TrainingJob:
    """The job as Stopping, or as it is when it has ended or is stopping already."""
    if job.ended or job.status == "Stopping":
        return job
    return job.transition("Stopping", now_ms, stop_cause="StopTrainingJob")


def _stop_unstarted(evaluation: RuleEvaluation, now_ms: int) -> RuleEvaluation:
    if evaluation.ended:
        return evaluation
    return evaluation.transition("Stopped", now_ms, status_details="The evaluation ended before its container started.")
