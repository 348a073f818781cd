"""Pipeline executions: start, lookup, list and stop."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.jobs.jobs_of_a_kind import JobsOfAKind
from emulator.jobs.model.pipeline_definition import check_start
from emulator.jobs.model.pipeline_execution import PipelineExecution, copy_results
from emulator.jobs.runs.pipelines.pipeline_run import PipelineRun
from emulator.jobs.store.listing import cut_page


class PipelineExecutions(JobsOfAKind):
    """The executions of the pipelines of one account."""

    def start(self, region: str, request: Mapping[str, Any]) -> PipelineExecution:
        """Store an execution of a pipeline and start it; one that has the same ClientRequestToken is returned as it is.

        Args:
            region: of the request.
            request: StartPipelineExecution's members, with the pipeline's definition as ``PipelineDefinition``.

        Raises:
            ValidationException: a step that is not run here, a parameter that does not fit, or a selected step without
                what it needs; ResourceNotFound: the source of a selective execution; InternalFailure.
        """
        check_start(request["PipelineDefinition"], request.get("PipelineParameters", ()))
        for execution in self._store.pages.list_pipeline_executions(region, request["PipelineName"]):
            if execution.request["ClientRequestToken"] == request["ClientRequestToken"]:
                return execution
        name = uuid.uuid4().hex[:12]
        steps = copy_results(request, self._find_source(region, request), self._ledger.now_ms())
        return self._create(PipelineExecution, name, region, request, self._build_run, steps=steps)

    def _find_source(self, region: str, request: Mapping[str, Any]) -> PipelineExecution | None:
        arn = request.get("SelectiveExecutionConfig", {}).get("SourcePipelineExecutionArn")
        if arn is None:
            return None
        source = self.get(region, arn)
        if source.request["PipelineName"] != request["PipelineName"]:
            raise ValidationException(f"SourcePipelineExecutionArn: {arn} is of another pipeline.")
        return source

    def retry(
        self, region: str, arn: str, token: str, parallelism: Mapping[str, int] | None = None
    ) -> PipelineExecution:
        """Run the steps of an execution again that failed or were stopped, and those that were not reached.

        A second request with the same token changes nothing.

        Raises:
            ResourceNotFound: unknown.
            ConflictException: it has not ended, or it succeeded.
            InternalFailure: the emulator is shutting down.
        """
        execution = self.get(region, arn)
        if execution.request.get("RetryToken") == token:
            return execution
        if execution.ended:
            self._threads.wait_for_end(arn)  # its last run may still be closing

        def retry(found: PipelineExecution, now_ms: int) -> PipelineExecution:
            return found.retry(now_ms, token, parallelism)

        self._threads.start(
            self._build_run(retry(execution, self._ledger.now_ms())),
            lambda: self._ledger.change_job(PipelineExecution, region, execution.name, retry),
        )
        return execution

    def answer_callback(
        self, region: str, token: str, outputs: Sequence[Mapping[str, str]] | None, failure_reason: str | None = None
    ) -> PipelineExecution:
        """End the callback step with ``token``; see ``PipelineExecution.answer_callback``.

        Raises:
            ResourceNotFound: no step of an execution that runs has this token.
            ConflictException: the step has ended.
            ValidationException: the outputs are not those of the step.
        """
        running = self._store.list_running_jobs(PipelineExecution)
        found = next((each for each in running if each.region == region and each.find_callback(token)), None)
        if found is None:
            raise ResourceNotFound(f"No callback step with the token {token} is executing.")
        return self._ledger.change_job(
            PipelineExecution,
            region,
            found.name,
            lambda each, now_ms: each.answer_callback(now_ms, token, outputs, failure_reason),
        )

    def get(self, region: str, arn: str) -> PipelineExecution:
        """Find the execution.

        Raises:
            ResourceNotFound: unknown.
        """
        execution = self._store.find_job(PipelineExecution, region, arn.rpartition("/")[2])
        if execution is None or execution.arn != arn:
            raise ResourceNotFound(f"Pipeline execution with ARN {arn} does not exist.")
        return execution

    def find_last_by_version(self, region: str, name: str) -> dict[int, str]:
        """Find the ARN of the last execution of each version of a pipeline."""
        executions = self._store.pages.list_pipeline_executions(region, name)
        return {each.version_id: each.arn for each in executions if each.version_id is not None}

    def list_page(
        self, region: str, request: Mapping[str, Any], version_id: int | None = None
    ) -> tuple[Sequence[PipelineExecution], str | None]:
        """One page of a pipeline's executions, the newest first unless asked otherwise; and the next token.

        Args:
            region: of the request.
            request: ListPipelineExecutions' members.
            version_id: the version of the pipeline; None for all.

        Raises:
            ValidationException: a token that was not given.
        """
        executions = self._store.pages.list_pipeline_executions(region, request["PipelineName"])
        after, before = (request.get(name) for name in ("CreatedAfter", "CreatedBefore"))
        executions = [
            each
            for each in executions
            if version_id in (None, each.version_id)
            and (after is None or each.creation_ms > after.timestamp() * 1000)
            and (before is None or each.creation_ms < before.timestamp() * 1000)
        ]
        if request.get("SortBy") == "PipelineExecutionArn":
            executions.sort(key=lambda each: each.arn)
        if request.get("SortOrder") != "Ascending":
            executions.reverse()
        return cut_page(executions, request)

    def stop(self, region: str, arn: str) -> None:
        """Ask an execution, and with it the jobs of its steps, to stop; nothing happens to one that has ended.

        Raises:
            ResourceNotFound: unknown.
        """
        name = self.get(region, arn).name
        self._ledger.change_job(PipelineExecution, region, name, PipelineExecution.begin_stop)
        self._ask_stop(arn)

    def recover(self) -> None:
        """Resume the executions of the last process."""
        for execution in self._store.list_running_jobs(PipelineExecution):
            self._threads.start(self._build_run(execution))

    def _build_run(self, execution: PipelineExecution) -> PipelineRun:
        return PipelineRun(execution, self._services)
