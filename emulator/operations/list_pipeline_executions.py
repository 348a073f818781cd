"""ListPipelineExecutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.exceptions import ValidationException
from emulator.jobs.records.descriptions import describe_pipeline_execution

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response

# For docs/coverage.md, see docs_site/coverage.py.
ACTS_ON = frozenset({"PipelineName", "CreatedAfter", "CreatedBefore", "SortBy", "SortOrder", "NextToken", "MaxResults"})
REFUSES = {"PipelineVersionAlias": "a pipeline has one version here"}


def list_pipeline_executions(request: Request, context: Context) -> Response:
    """One page of summaries of a pipeline's executions.

    Raises:
        ValidationException: a NextToken that is none, or a version.
    """
    if "PipelineVersionAlias" in request:
        raise ValidationException("PipelineVersionAlias cannot be given: a pipeline has one version here.")
    executions, next_token = context.jobs.pipelines.list_page(context.region, request)
    summaries = [describe_pipeline_execution(execution) for execution in executions]
    return {"PipelineExecutionSummaries": summaries, "NextToken": next_token}
