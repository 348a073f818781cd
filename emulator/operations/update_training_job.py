"""UpdateTrainingJob."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.exceptions import ValidationException

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


# For docs/coverage.md, see emulator/coverage.py.
ACTS_ON = frozenset({"TrainingJobName"})
REFUSES = dict.fromkeys(("ProfilerConfig", "ProfilerRuleConfigurations"), "the profiler is not emulated")


def update_training_job(request: Request, context: Context) -> Response:
    """Change RemoteDebugConfig and ResourceConfig.KeepAlivePeriodInSeconds of a job that has not ended.

    Raises:
        ResourceNotFound: there is no such job.
        ValidationException: it has ended, or the request is about the profiler.
    """
    profiler = [name for name in REFUSES if name in request]
    if profiler:
        raise ValidationException(
            f"The profiler is not emulated: {' and '.join(profiler)} cannot be updated. Leave it out."
        )
    changes: dict[str, Any] = {
        name: request[name] for name in ("ResourceConfig", "RemoteDebugConfig") if name in request
    }
    job = context.jobs.training.update(context.region, request["TrainingJobName"], changes)
    return {"TrainingJobArn": context.jobs.training.describe(job)["TrainingJobArn"]}
