"""Warm pools: instances reserved for KeepAlivePeriodInSeconds after a job.

What is kept is what a job starts from: a spare container, or a warm interpreter of its image. The back end keeps it
for the same time, so that the next job starts without its imports. What a client sees of it is AWS's: how long, and
which job had the instances next.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.jobs.model.training_job import TrainingJob

# What two jobs have in common where one may have the other's instances.
_MATCHED = ("RoleArn", "VpcConfig", "EnableInterContainerTrafficEncryption")
_MATCHED_RESOURCES = ("InstanceType", "InstanceCount", "InstanceGroups", "VolumeSizeInGB", "VolumeKmsKeyId")


def describe_warm_pool(job: TrainingJob, now_ms: int) -> dict[str, Any] | None:
    """WarmPoolStatus at a moment; None of a job that keeps no instances."""
    if not job.keep_alive_seconds:
        return None
    if not job.ended:
        return {"Status": "InUse"}
    # Only a job that completed leaves instances behind.
    if job.status != "Completed" or job.training_end_ms is None:
        return {"Status": "Terminated"}
    end_ms = job.training_end_ms + job.keep_alive_seconds * 1000
    if job.reused_by is not None and job.reused_ms is not None:
        pool = {"Status": "Reused", "ReusedByJob": job.reused_by}
        end_ms = job.reused_ms
    else:
        pool = {"Status": "Available" if now_ms < end_ms else "Terminated"}
    retained_ms = min(now_ms, end_ms) - job.training_end_ms
    return {**pool, "ResourceRetainedBillableTimeInSeconds": max(0, ceil(retained_ms / 1000))}


def has_status(job: TrainingJob, status: str, now_ms: int) -> bool:
    """Whether ``status`` is that of the job's warm pool at a moment."""
    pool = describe_warm_pool(job, now_ms)
    return pool is not None and pool["Status"] == status


def may_reuse(job: TrainingJob, request: Mapping[str, Any], now_ms: int) -> bool:
    """Whether a new job of ``request`` gets the instances that ``job`` has kept."""
    if not has_status(job, "Available", now_ms):
        return False
    resources, kept = request.get("ResourceConfig") or {}, job.request["ResourceConfig"]
    return all(request.get(member) == job.request.get(member) for member in _MATCHED) and all(
        resources.get(member) == kept.get(member) for member in _MATCHED_RESOURCES
    )
