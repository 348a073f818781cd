"""Start and end of the rule evaluations of a training job."""

from emulator.jobs.model.profiler_config import is_disabled, is_profiler_rule
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.runs.rule_job_run import RuleJobRun
from emulator.jobs.uploads.live import LiveUploads
from emulator.services import Services


def start_rules(job: TrainingJob, services: Services) -> None:
    """Start the evaluations that wait for the training job; stop those of a disabled profiler.

    The caller holds the lock of ``RunThreads``.
    """
    ledger, threads = services.ledger, services.threads
    for evaluation in ledger.store.list_rule_evaluations_of(job):
        run = threads.find(evaluation.arn)
        off = is_profiler_rule(job.request, evaluation.rule_configuration_name) and is_disabled(job.request)
        if isinstance(run, RuleJobRun) and off:
            run.turn_off()
        elif evaluation.status == "InProgress" and evaluation.start_ms is None and run is None:
            if off:
                ledger.change_job(RuleEvaluation, evaluation.region, evaluation.name, RuleEvaluation.end_unstarted)
            else:
                threads.start(RuleJobRun(evaluation, job, services))


def end_rules(job: TrainingJob, uploads: LiveUploads | None, services: Services) -> None:
    """End evaluations that never started, and limit the time of those that run.

    The caller holds the lock of ``RunThreads``.

    Args:
        job: The training job, which has ended.
        uploads: Uploads of its last attempt, if there were any.
        services: The account's services.
    """
    ledger = services.ledger
    for evaluation in ledger.store.list_rule_evaluations_of(job):
        if isinstance(rule := services.threads.find(evaluation.arn), RuleJobRun):
            saved = uploads and (uploads.profiler_ended if rule.of_profiler else uploads.tensors_ended)
            rule.limit(job, complete=bool(saved) and job.status != "Stopped")
        else:
            ledger.change_job(RuleEvaluation, evaluation.region, evaluation.name, RuleEvaluation.end_unstarted)
