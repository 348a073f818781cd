"""UpdateTrainingJob."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.exceptions import ValidationException
from emulator.jobs.records.profiler_config import merge_update
from emulator.operations.create_training_job import check_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.operations.context import Context, Request, Response


# For docs/coverage.md, see docs_site/coverage.py.
ACTS_ON = frozenset({"TrainingJobName", "ProfilerConfig", "ProfilerRuleConfigurations"})


def update_training_job(request: Request, context: Context) -> Response:
    """Change the profiler, RemoteDebugConfig and ResourceConfig.KeepAlivePeriodInSeconds of a job that has not ended.

    Raises:
        ResourceNotFound: there is no such job.
        ResourceLimitExceeded: it would have too many rules.
        ValidationException: it has ended, or what it would become is no valid request.
    """

    def change(before: Mapping[str, Any]) -> Request:
        try:
            changed = merge_update(before, request)
        except ValueError as error:
            raise ValidationException(str(error)) from error
        for name in ("ResourceConfig", "RemoteDebugConfig"):
            if name in request:
                changed[name] = {**before.get(name, {}), **request[name]}
        check_rules(changed)
        return changed

    return {"TrainingJobArn": context.jobs.training.update(context.region, request["TrainingJobName"], change).arn}
