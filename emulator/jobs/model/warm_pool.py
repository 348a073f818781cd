"""Warm pools: instances reserved for KeepAlivePeriodInSeconds after a job.

What is kept is what a job starts from: a spare container, or a warm interpreter of its image. The back end keeps it
for the same time, so that the next job starts without its imports. What a client sees of it is AWS's: how long, and
which job had the instances next.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from emulator.exceptions import ValidationException
from emulator.jobs.model.training_job import TrainingJob

# What two jobs have in common where one may have the other's instances.
_MATCHED = ("RoleArn", "VpcConfig", "EnableInterContainerTrafficEncryption", "EnableNetworkIsolation")
_MATCHED_RESOURCES = ("InstanceType", "InstanceCount", "InstanceGroups", "VolumeSizeInGB", "VolumeKmsKeyId")
_DEFAULTS = {"EnableInterContainerTrafficEncryption": False, "EnableNetworkIsolation": False}
# Failures that are no fault of the instances.
_FAILURES_OF_USERS = ("AlgorithmError", "ClientError")


def describe_warm_pool(job: TrainingJob, now_ms: int) -> dict[str, Any] | None:
    """WarmPoolStatus at a moment; None of a job that keeps no instances."""
    if not job.keep_alive_seconds and job.reused_ms is None:
        return None
    if not job.ended:
        return {"Status": "InUse"}
    if job.training_end_ms is None or not _leaves_instances(job):
        return {"Status": "Terminated"}
    end_ms = job.training_end_ms + job.keep_alive_seconds * 1000 if job.reused_ms is None else job.reused_ms
    if job.reused_by is not None:
        pool = {"Status": "Reused", "ReusedByJob": job.reused_by}
    else:
        pool = {"Status": "Available" if now_ms < end_ms else "Terminated"}
    retained_ms = min(now_ms, end_ms) - job.training_end_ms
    return {**pool, "ResourceRetainedBillableTimeInSeconds": max(0, ceil(retained_ms / 1000))}


def count_seconds_left(job: TrainingJob, now_ms: int) -> float:
    """Return for how long the job's warm pool will be Available; 0 if it is not."""
    if not has_status(job, "Available", now_ms):
        return 0.0
    assert job.training_end_ms is not None
    return (job.training_end_ms - now_ms) / 1000 + job.keep_alive_seconds


def change_period(job: TrainingJob, seconds: int, now_ms: int) -> TrainingJob:
    """Return an ended job with another keep-alive period; one that is over ends the warm pool now.

    Raises:
        ValidationException: the warm pool is not Available.
    """
    if not has_status(job, "Available", now_ms):
        pool = describe_warm_pool(job, now_ms)
        state = "it has none" if pool is None else f"its status is {pool['Status']}"
        raise ValidationException(
            f"The request was rejected because the training job is in status {job.status}, and its warm pool can be "
            f"changed only while that is Available: {state}."
        )
    resources = {**job.request["ResourceConfig"], "KeepAlivePeriodInSeconds": seconds}
    changed = replace(job, request={**job.request, "ResourceConfig": resources}, last_modified_ms=now_ms)
    return changed if has_status(changed, "Available", now_ms) else replace(changed, reused_ms=now_ms)


def has_status(job: TrainingJob, status: str, now_ms: int) -> bool:
    """Whether ``status`` is that of the job's warm pool at a moment."""
    pool = describe_warm_pool(job, now_ms)
    return pool is not None and pool["Status"] == status


def may_reuse(job: TrainingJob, request: Mapping[str, Any], now_ms: int) -> bool:
    """Whether a new job of ``request`` gets the instances that ``job`` has kept."""
    if not has_status(job, "Available", now_ms):
        return False
    resources, kept = request.get("ResourceConfig") or {}, job.request["ResourceConfig"]
    return all(_read(request, member) == _read(job.request, member) for member in _MATCHED) and all(
        resources.get(member) == kept.get(member) for member in _MATCHED_RESOURCES
    )


def _read(request: Mapping[str, Any], member: str) -> Any:
    return request.get(member, _DEFAULTS.get(member))


def _leaves_instances(job: TrainingJob) -> bool:
    """Whether the instances of an ended job were left healthy: it ended by itself, by a stop, or by a user's error."""
    return job.status != "Failed" or (job.failure_reason or "").startswith(_FAILURES_OF_USERS)
