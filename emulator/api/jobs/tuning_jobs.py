"""``/_emulator/tuning-jobs``: hyperparameter tuning jobs with their trials."""

from math import isfinite
from typing import Any

from flask import Blueprint, jsonify

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts
from emulator.api.jobs.job_filters import read_filter
from emulator.api.jobs.job_relations import find_execution
from emulator.exceptions import ResourceNotFound
from emulator.jobs import Jobs
from emulator.jobs.model.tuning_job import TunedJob, TuningJob

_JOBS = f"{PREFIX}tuning-jobs"


def build_tuning_jobs_pages(accounts: RequestAccounts) -> Blueprint:
    """Build the routes."""
    pages = Blueprint("tuning_jobs", __name__)

    @pages.get(_JOBS)
    def list_jobs() -> Any:
        jobs = accounts.find_jobs()
        listed, total = jobs.services.store.newest.list_tuning_jobs(read_filter())
        return jsonify(jobs=[_summarize(job, _read_tuned_jobs(jobs, job)) for job in listed], total=total)

    @pages.get(f"{_JOBS}/<region>/<name>")
    def describe_job(region: str, name: str) -> Any:
        jobs = accounts.find_jobs()
        return jsonify(_describe(jobs, _find(jobs, region, name)))

    @pages.post(f"{_JOBS}/<region>/<name>/stop")
    def stop_job(region: str, name: str) -> tuple[Any, int]:
        jobs = accounts.find_jobs()
        jobs.tuning.stop(region, _find(jobs, region, name).name)
        return jsonify(status=_find(jobs, region, name).status), 202

    return pages


def _find(jobs: Jobs, region: str, name: str) -> TuningJob:
    try:
        return jobs.tuning.get(region, name)
    except ResourceNotFound:
        raise ResourceNotFound(f"There is no tuning job {name[:80]} in {region[:40]}.", status=404) from None


def _read_tuned_jobs(jobs: Jobs, job: TuningJob) -> list[TunedJob]:
    return [job.read_tuned_job(each) for each in jobs.services.store.list_training_jobs_of(job)]


def _summarize(job: TuningJob, tuned: list[TunedJob]) -> dict[str, Any]:
    objective = job.find_objective(job.definitions[0])
    best = job.find_best(tuned)
    return {
        "name": job.name,
        "region": job.region,
        "status": job.status,
        "creationMs": job.creation_ms,
        "endMs": job.end_ms,
        "failureReason": job.failure_reason,
        "strategy": job.configuration["Strategy"],
        "objective": objective["MetricName"],
        "direction": objective["Type"],
        "trials": len(tuned),
        "mostTrials": job.configuration["ResourceLimits"].get("MaxNumberOfTrainingJobs"),
        "best": None if best is None else _keep_finite(best.value),
    }


def _describe(jobs: Jobs, job: TuningJob) -> dict[str, Any]:
    tuned = _read_tuned_jobs(jobs, job)
    best = job.find_best(tuned)
    return {
        **_summarize(job, tuned),
        "execution": find_execution(jobs.services, job.arn),
        "bestTrial": None if best is None else best.job.name,
        "trialJobs": [_describe_trial(each) for each in tuned],
        "description": jobs.tuning.describe(job),
    }


def _describe_trial(tuned: TunedJob) -> dict[str, Any]:
    job = tuned.job
    return {
        "name": job.name,
        "region": job.region,
        "status": job.status,
        "creationMs": job.creation_ms,
        "endMs": job.last_modified_ms if job.ended else None,
        "failureReason": job.failure_reason,
        "definition": tuned.definition.get("DefinitionName", ""),
        "parameters": dict(tuned.parameters),
        "objective": tuned.objective["MetricName"],
        "objectiveStatus": tuned.objective_status,
        "value": _keep_finite(tuned.value),
    }


def _keep_finite(value: float | None) -> float | None:
    """Return None in place of NaN and infinity, which JSON lacks."""
    return value if value is not None and isfinite(value) else None
