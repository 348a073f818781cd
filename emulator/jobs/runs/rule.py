"""The life of a rule evaluation, to be read from top to bottom: one processing job beside the training it watches."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from container_runtime.runtime import NETWORK_CLOSED, EngineUnavailableError, LogLine
from container_runtime.spec import Mount
from emulator.jobs.records.failures import CLOSED, RequestFailure
from emulator.jobs.records.profiler_config import is_profiler_rule
from emulator.jobs.records.rule_evaluation import VERDICT_STATUSES, RuleEvaluation, RuleEvaluationStatus
from emulator.jobs.runs.containers.refused_writes import find_hint
from emulator.jobs.runs.processing import ContainersRun
from emulator.jobs.staging.hosts import INSTANCE_GROUP, Host
from emulator.jobs.staging.job_files import JobFolder, describe_refused
from emulator.jobs.staging.job_warnings import ReportedWarnings
from emulator.jobs.staging.opt_ml import (
    TARGET,
    WARNINGS,
    WARNINGS_PATH,
    build_aws_environment,
    issue_credentials,
)
from emulator.jobs.staging.rule_configuration import (
    build_rule_configuration,
    check_local_path,
    describe_limits,
    find_other_jobs,
    is_below,
    list_own_folders,
    locate_output,
)
from emulator.jobs.staging.s3_paths import build_rule_output_uri, require_bucket
from emulator.jobs.uploads.folder import FolderSync, FolderUpload, UploadError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from container_runtime.runtime import Container, Exit
    from emulator.jobs.records.training_job import TrainingJob
    from emulator.services import Services

logger = logging.getLogger(__name__)

# After StopTrainingJob a rule may still judge the steps that were saved: as long as smdebug's rules allow themselves
# (rule_stop_grace_time_secs).
STOP_GRACE_SECONDS = 60.0
# How often the verdict is looked for: a rule that fired is announced before its container has wound down.
VERDICT_POLL_SECONDS = 0.02
# What a container gets to exit by itself once it has given its verdict.
_EXIT_SECONDS = 10.0
_MAX_VERDICT_BYTES = 1 << 16

_CONFIGURATION = "config/ruleconfig.json"
_VERDICT = "output/verdict.json"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a rule evaluation ended."""

    status: RuleEvaluationStatus
    details: str | None


class RuleRun(ContainersRun):
    """The run of one rule evaluation; others may also limit its time."""

    kind = "Rule evaluation"
    volume_member = "VolumeSizeInGB"

    def __init__(
        self,
        evaluation: RuleEvaluation,
        job: TrainingJob,
        collaborators: Services,
        containers: Mapping[str, Container] | None = None,
    ) -> None:
        """Prepare a run; ``job`` is the training job that is judged, for the rest see ``ContainersRun``."""
        host = Host("algo-1", INSTANCE_GROUP, evaluation.configuration.get("InstanceType"))
        super().__init__(evaluation, job.id, (host,), collaborators, containers)
        self._evaluation = evaluation
        self._job = job
        self._host = host
        self.of_profiler = is_profiler_rule(job.request, evaluation.rule_configuration_name)
        self._stop_details: str | None = None
        # Monotonic time at which an evaluation that still runs is stopped.
        self._deadline: float | None = None
        self._deadline_details = ""
        self._reached: Verdict | None = None
        self._mount = Mount(self._folder / "ml", TARGET, own=list_own_folders(evaluation))
        # As the container sees the folder of the rule's files.
        self._output = locate_output(self._mount, self._folder / "rule-output", evaluation)
        self._own_files = JobFolder(self._mount.source)
        self._files = {host: self._own_files}
        self._folders = () if is_below(self._mount, self._output) else (self._output.source,)
        self._volume_gb = evaluation.configuration.get("VolumeSizeInGB")

    def _prepare(self) -> None:
        """Write the rule's configuration into its /opt/ml."""
        check_local_path(self._evaluation)
        for folder in (self._mount.source / "config", self._mount.source / "output", self._output.source):
            folder.mkdir(parents=True, exist_ok=True)
        path_in_container = self._with.runtime.path_in_container
        content = build_rule_configuration(
            self._evaluation,
            self._job,
            find_other_jobs(self._with.ledger.store, self._evaluation),
            output_path=path_in_container(self._output, "").rstrip("/"),
            verdict_path=path_in_container(self._mount, _VERDICT),
        )
        (self._mount.source / _CONFIGURATION).write_text(json.dumps(content, indent=1))

    def _start_containers(self) -> None:
        """Start the rule's container."""
        image = self._evaluation.configuration["RuleEvaluatorImage"]
        self._open_log(image, *describe_limits(self._evaluation.configuration))
        spec = self._build_spec(
            self._host,
            image=image,
            environment={
                **build_aws_environment(self._region, self._issue_credentials(), self._with.endpoint_url),
                "SMDEBUG_RULE_CONFIG_PATH": self._with.runtime.path_in_container(self._mount, _CONFIGURATION),
                WARNINGS_PATH: self._with.runtime.path_in_container(self._mount, WARNINGS),
            },
            mounts=(self._mount,) if is_below(self._mount, self._output) else (self._mount, self._output),
        )
        self._containers.start({self._host: spec}, self._check_stop)

    def _issue_credentials(self) -> Mapping[str, str]:
        """Issue those of the role of the rule's training job; it may wait for that job for as long as that runs."""
        session = self._evaluation.configuration["RuleConfigurationName"]
        return issue_credentials(self._with.settings, {"RoleArn": self._job.request.get("RoleArn")}, session)

    def _has_begun(self) -> bool:
        return self._evaluation.start_ms is not None

    def _begin(self) -> None:
        if not self._has_begun():
            self._change(RuleEvaluation.start)

    def _conclude(self) -> None:
        # A rule of the profiler writes its report anew as the training goes on, for people who look at it meanwhile.
        report = self._build_upload() if self.of_profiler else None
        sync = report and FolderSync(report, f"report-{self.name}")
        if sync:
            sync.start()
        try:
            verdict = self._wait_for_verdict()
            ReportedWarnings(self._own_files, self._job.arn, self._with.ledger).read()
            self._record(verdict)
        finally:
            if sync:
                sync.stop()
        self._upload_output()

    def _wait_for_verdict(self) -> Verdict:
        """Wait for the verdict file, or for a container that ends without one."""
        while True:
            exits = self._containers.wait(VERDICT_POLL_SECONDS)
            verdict = self._read_verdict()
            if verdict is not None:
                return verdict
            if exits is not None:
                if not self._evaluation.ended:
                    self._check_loss(exits)
                return self._judge_exit(exits[0].exit, self._containers.read_to_end(self._host))
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._deadline = None
                self._begin_stop(self._with.settings.stop_grace_seconds, self._deadline_details)

    def _read_verdict(self) -> Verdict | None:
        content = self._own_files.read_small_file(_VERDICT, _MAX_VERDICT_BYTES)
        return None if content is None else parse_verdict(content)

    def _judge_exit(self, exit_status: Exit, last_lines: list[str]) -> Verdict:
        if self._stop_grace is not None:
            return Verdict("Stopped", self._stop_details)
        cause = self._volumes[self._host].reason
        if not cause and (hint := find_hint(self._with.runtime, last_lines)):
            self._write_line(self._host, LogLine(self._with.ledger.now_ms(), hint))
        return Verdict("Error", cause or describe_exit_without_verdict(exit_status, last_lines))

    def _record(self, verdict: Verdict) -> None:
        """Store the evaluation's final status, unless it has one."""
        self._reached = self._reached or verdict
        self._change(lambda evaluation, now_ms: evaluation.end(verdict.status, now_ms, verdict.details))

    def _end_unstarted(self) -> None:
        self._record(Verdict("Stopped", self._stop_details))

    def _fail(self, reason: str) -> None:
        self._record(Verdict("Error", reason))

    def _fail_at_last(self, reason: str) -> None:
        """Store the first final status that there was, which could not be stored; an error where it never can be."""
        lost = Verdict("Error", reason)
        try:
            self._record(self._reached or lost)
        except Exception:  # noqa: BLE001 - why was said when it was tried first
            self._record(lost)

    def _upload_output(self) -> None:
        """Wait for the container's end, then upload what the rule wrote.

        The status is final by then: a failure here is said in the log and changes nothing.
        """
        with suppress(EngineUnavailableError):  # it has taken the container with it
            if self._containers.wait(_EXIT_SECONDS) is None:
                self._containers.ask_stop(0.0)
                self._containers.wait()
        self._containers.read_to_end(self._host)
        self._with.log_writer.flush()
        self._sweep_output()

    def finish_output(self) -> None:
        """Upload what an evaluation wrote that has ended, and whose container is gone; remove its folder."""
        with self._failing_alone():
            self._sweep_output()

    def _sweep_output(self) -> None:
        try:
            self._build_upload().sweep()
        except (RequestFailure, UploadError) as error:
            self._keep_folder = True
            logger.warning("The output of the rule evaluation %s is kept in %s: %s", self.name, self._folder, error)
        if self._own_files.refused:
            self._write_note(self._host, describe_refused(self._own_files.refused))

    def _build_upload(self) -> FolderUpload:
        uri = build_rule_output_uri(self._job, self._evaluation)
        destination = require_bucket(self._object_store, uri, "The rule's S3OutputPath")
        return FolderUpload(self._find_output(), self._object_store, destination)

    def _find_output(self) -> JobFolder:
        if is_below(self._mount, self._output):
            return self._own_files.below(str(self._output.source.relative_to(self._mount.source)))
        return JobFolder(self._output.source, refused=self._own_files.refused)

    def ask_stop(self, grace_seconds: float, details: str | None = None) -> None:
        """Stop the evaluation; returns at once. Any thread may call it, more than once."""
        self._stop_details = details or self._stop_details
        super().ask_stop(grace_seconds)

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the evaluation is stopping and ask it to, because the emulator ends."""
        self._begin_stop(grace_seconds, "The emulator was shut down before the evaluation ended.")

    def limit(self, job: TrainingJob, *, complete: bool) -> None:
        """Give the evaluation its last time, as its training has ended: short where not every step was saved.

        Where ``complete``, it gets as long as the training had, for a rule that never ends.
        """
        seconds = job.max_runtime_seconds if complete else self._with.rule_stop_grace_seconds
        self._deadline_details = (
            f"The rule still ran {seconds} s (MaxRuntimeInSeconds) after the training job had ended."
            if complete
            else "The training job ended before every step was evaluated."
        )
        self._deadline = time.monotonic() + seconds

    def turn_off(self) -> None:
        """Store that the evaluation is stopping and ask it to, because the profiler was disabled."""
        self._begin_stop(
            self._with.settings.stop_grace_seconds, "The profiler was disabled while the job was training."
        )

    def _begin_stop(self, grace_seconds: float, details: str) -> None:
        self._with.ledger.change_rule_evaluation(self._region, self.name, RuleEvaluation.begin_stop)
        self.ask_stop(grace_seconds, details)

    def _change(self, change: Callable[[RuleEvaluation, int], RuleEvaluation]) -> None:
        self._evaluation = self._with.ledger.change_rule_evaluation(self._region, self.name, change)


def parse_verdict(content: bytes) -> Verdict:
    """Read verdict.json; one that breaks the contract is an Error that says so."""
    try:
        verdict = json.loads(content)
    except ValueError:
        verdict = None
    match verdict:
        case {"RuleEvaluationStatus": str() as status, **rest} if status in VERDICT_STATUSES:
            # What a rule said may hold characters that no store takes: halves of such as JSON writes in two.
            details = str(rest.get("StatusDetails") or "").encode(errors="backslashreplace").decode()
            return Verdict(cast("RuleEvaluationStatus", status), details or None)
        case _:
            text = content[:200].decode(errors="replace")
            return Verdict("Error", f"AlgorithmError: The rule container's verdict cannot be read: {text}")


def describe_exit_without_verdict(exit_status: Exit, last_lines: list[str]) -> str:
    """StatusDetails of a rule container that ended without saying what it found."""
    own = [line.strip() for line in last_lines if line.strip() and not line.startswith(NETWORK_CLOSED)]
    closed = CLOSED if any(line.startswith(NETWORK_CLOSED) for line in last_lines) else ""
    cause = "ran out of memory and was killed" if exit_status.out_of_memory else "ended without a verdict"
    # The text has to fit 1,024 characters with its exit code.
    said = f" Its last line was: {own[-1][:750]}" if own else " It printed nothing."
    return f"AlgorithmError: The rule container {cause}.{said}{closed}, exit code: {exit_status.code}"
