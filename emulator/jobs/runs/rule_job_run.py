"""Rule job run: a processing job beside the training job that it judges."""

import json
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, cast

from container_runtime.runtime import NETWORK_CLOSED, Container, EngineUnavailableError, Exit
from container_runtime.spec import Mount
from emulator.jobs.model.failures import CLOSED, RequestFailure
from emulator.jobs.model.profiler_config import is_profiler_rule
from emulator.jobs.model.rule_evaluation import VERDICT_STATUSES, RuleEvaluation, RuleEvaluationStatus
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.runs.attempt import Attempt
from emulator.jobs.runs.containers.logs import PROCESSING_GROUP
from emulator.jobs.runs.job_context import JobContext
from emulator.jobs.runs.job_run import Ended, Outcome
from emulator.jobs.runs.processing_job_run import AnyProcessingJobRun, name_processing_job
from emulator.jobs.staging.hosts import INSTANCE_GROUP, Host
from emulator.jobs.staging.job_files import JobFolder, describe_refused
from emulator.jobs.staging.job_warnings import ReportedWarnings
from emulator.jobs.staging.opt_ml import TARGET, WARNINGS, WARNINGS_PATH, build_aws_environment, issue_credentials
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
from emulator.services import Services

logger = logging.getLogger(__name__)

# After StopTrainingJob, a rule may still evaluate the saved steps for this long. The value is smdebug's
# rule_stop_grace_time_secs.
STOP_GRACE_SECONDS = 60.0
# How often the verdict file is read. A rule that fired is announced before its container has exited.
VERDICT_POLL_SECONDS = 0.02
# How long a container may take to exit by itself after its verdict.
_EXIT_SECONDS = 10.0
_MAX_VERDICT_BYTES = 1 << 16

_CONFIGURATION = "config/ruleconfig.json"
_VERDICT = "output/verdict.json"


class Verdict(NamedTuple):
    """How a rule evaluation ended."""

    status: RuleEvaluationStatus
    details: str | None


class RuleAttempt(Attempt):
    """Files, container and report of one attempt at a rule evaluation."""

    def __init__(
        self,
        context: JobContext,
        mount: Mount,
        output: Mount,
        containers: Mapping[str, Container] | None,
        log_start_ms: int,
    ) -> None:
        """Prepare an attempt; ``output`` is the folder of the rule's files, which may be below ``mount``."""
        super().__init__(context, containers, log_start_ms)
        self.files = JobFolder(mount.source)
        self.mounts = (mount,) if is_below(mount, output) else (mount, output)
        self.report: FolderSync | None = None
        if is_below(mount, output):
            self.output = self.files.below(str(output.source.relative_to(mount.source)))
        else:
            self.output = JobFolder(output.source, refused=self.files.refused)

    def find_files(self, host: Host) -> JobFolder:  # noqa: ARG002 - there is one
        """Return the files of the rule's /opt/ml."""
        return self.files

    def list_folders(self, host: Host) -> tuple[Path, ...]:
        """List the folders that count towards the size of the host's volume."""
        return (*super().list_folders(host), *(each.source for each in self.mounts[1:]))

    def read_message(self, host: Host) -> str:  # noqa: ARG002 - there is one
        """Return an empty message: a rule's only message is its verdict."""
        return ""

    def read_verdict(self) -> Verdict | None:
        """Read the verdict; return None until there is one."""
        content = self.files.read_small_file(_VERDICT, _MAX_VERDICT_BYTES)
        return None if content is None else parse_verdict(content)

    def stop_transfers(self) -> None:
        """Stop the thread that uploads reports. Idempotent."""
        if self.report is not None:
            self.report.stop()


class RuleJobRun(AnyProcessingJobRun[RuleEvaluation, RuleAttempt]):
    """Drives one rule evaluation to its end. Other threads may also limit its time."""

    record = RuleEvaluation
    kind = "Rule evaluation"

    def __init__(
        self,
        evaluation: RuleEvaluation,
        training_job: TrainingJob,
        services: Services,
        containers: Mapping[str, Container] | None = None,
    ) -> None:
        """Prepare the run of an evaluation of ``training_job``; see ``Attempt`` for ``containers``."""
        configuration = evaluation.configuration
        context = JobContext(
            services,
            evaluation.arn,
            evaluation.name,
            evaluation.region,
            training_job.id,
            (Host("algo-1", INSTANCE_GROUP, configuration.get("InstanceType")),),
            PROCESSING_GROUP,
            "VolumeSizeInGB",
            configuration.get("VolumeSizeInGB"),
        )
        self.of_profiler = is_profiler_rule(training_job.request, evaluation.rule_configuration_name)
        self._training_job = training_job
        self._mount = Mount(context.folder / "ml", TARGET, own=list_own_folders(evaluation))
        # Mount of the folder for the rule's output files.
        self._output = locate_output(self._mount, context.folder / "rule-output", evaluation)
        self._stop_details: str | None = None
        # Monotonic time at which a running evaluation is stopped, and its StatusDetails in that case.
        self._deadline: tuple[float, str] | None = None
        self._reached: Verdict | None = None
        attempt = RuleAttempt(context, self._mount, self._output, containers, evaluation.creation_ms)
        super().__init__(context, attempt, stopping=evaluation.status == "Stopping")

    def _make_attempt(self, containers: Mapping[str, Container] | None) -> RuleAttempt:
        return RuleAttempt(self.context, self._mount, self._output, containers, self.job.creation_ms)

    def _prepare(self) -> None:
        evaluation, services = self.job, self.context.services
        check_local_path(evaluation)
        for folder in (self._mount.source / "config", self._mount.source / "output", self._output.source):
            folder.mkdir(parents=True, exist_ok=True)
        path_in_container = services.runtime.path_in_container
        content = build_rule_configuration(
            evaluation,
            self._training_job,
            find_other_jobs(services.ledger.store, evaluation),
            output_path=path_in_container(self._output, "").rstrip("/"),
            verdict_path=path_in_container(self._mount, _VERDICT),
        )
        (self._mount.source / _CONFIGURATION).write_text(json.dumps(content, indent=1))

    def _start_containers(self) -> None:
        configuration, services, (host,) = self.job.configuration, self.context.services, self.context.hosts
        image = configuration["RuleEvaluatorImage"]
        self._open_log(image, *describe_limits(configuration))
        # Credentials of the training job's role. The rule may run as long as that job.
        role = {"RoleArn": self._training_job.request.get("RoleArn")}
        credentials = issue_credentials(services.settings, role, configuration["RuleConfigurationName"])
        spec = self._attempt.build_spec(
            host,
            image=image,
            environment={
                **build_aws_environment(self.context.region, credentials, services.endpoint_url),
                **name_processing_job(self.name, self.arn),
                "SMDEBUG_RULE_CONFIG_PATH": services.runtime.path_in_container(self._mount, _CONFIGURATION),
                WARNINGS_PATH: services.runtime.path_in_container(self._mount, WARNINGS),
            },
            mounts=self._attempt.mounts,
        )
        self._attempt.containers.start({host: spec}, self._stop.check)

    def _begin(self) -> None:
        self._change(lambda job, now_ms: job if job.start_ms is not None else job.start(now_ms))

    def _conclude(self) -> Outcome:
        # A profiler rule rewrites its report during the training, so that users can read it before the end.
        if self.of_profiler:
            self._attempt.report = FolderSync(self._build_upload(), f"report-{self.name}")
            self._attempt.report.start()
        try:
            verdict = self._wait_for_verdict()
            if verdict is None:
                return self._give_up_lost_attempt()
            warnings = ReportedWarnings(
                JobFolder(self._mount.source), self._training_job.arn, self.context.services.ledger
            )
            warnings.read()
            self._record(verdict)
        finally:
            self._attempt.stop_transfers()
        self._upload_output()
        return Ended()

    def _wait_for_verdict(self) -> Verdict | None:
        """Wait for the verdict file, or for a container that exits without one.

        Returns:
            The verdict; None if the container may have failed because the emulator was away.
        """
        while True:
            exits = self._attempt.containers.wait(VERDICT_POLL_SECONDS)
            verdict = self._attempt.read_verdict()
            if verdict is not None:
                return verdict
            if exits is not None:
                if self._was_cut_off(exits) and not self.job.ended:
                    return None
                return self._judge_exit(exits[0].exit)
            if self._deadline is not None and time.monotonic() > self._deadline[0] and not self._stop.is_set():
                self._begin_stop(self.context.services.settings.stop_grace_seconds, self._deadline[1])

    def _judge_exit(self, exit_status: Exit) -> Verdict:
        (host,) = self.context.hosts
        last_lines = self._attempt.containers.read_to_end(host)
        if self._stop.is_set():
            return Verdict("Stopped", self._stop_details)
        cause = self._attempt.explain_failure(host)
        return Verdict("Error", cause or describe_exit_without_verdict(exit_status, last_lines))

    def _record(self, verdict: Verdict) -> None:
        """Store the evaluation's final status, if it has none yet."""
        self._reached = self._reached or verdict
        self._change(lambda evaluation, now_ms: evaluation.end(verdict.status, now_ms, verdict.details))

    def _end_stopped(self) -> None:
        self._record(Verdict("Stopped", self._stop_details))

    def _fail(self, reason: str) -> None:
        self._record(Verdict("Error", reason))

    def _fail_at_last(self, reason: str) -> None:
        """Store the first final status that the evaluation reached, or an error if that cannot be stored."""
        lost = Verdict("Error", reason)
        try:
            self._record(self._reached or lost)
        except Exception:  # noqa: BLE001 - why was said when it was tried first
            self._record(lost)

    def _upload_output(self) -> None:
        """Wait for the container's end, then upload the rule's output.

        The status is final by then. A failure is only logged.
        """
        containers = self._attempt.containers
        with suppress(EngineUnavailableError):  # its containers ended with it
            if containers.wait(_EXIT_SECONDS) is None:
                containers.ask_stop(0.0)
                containers.wait()
        containers.read_to_end(self.context.hosts[0])
        self._attempt.log.flush()
        self._sweep_output()

    def finish_ended(self) -> None:
        """Upload the output of an ended evaluation without a container, and remove its folder."""
        with self._reporting_failures():
            self._sweep_output()

    def _sweep_output(self) -> None:
        try:
            self._build_upload().sweep()
        except (RequestFailure, UploadError) as error:
            self._keep_folder = True
            folder = self.context.folder
            logger.warning("The output of the rule evaluation %s is kept in %s: %s", self.name, folder, error)
        if self._attempt.files.refused:
            self._attempt.log.note(describe_refused(self._attempt.files.refused))

    def _build_upload(self) -> FolderUpload:
        uri = build_rule_output_uri(self._training_job, self.job)
        destination = require_bucket(self.context.object_store, uri, "The rule's S3OutputPath")
        return FolderUpload(self._attempt.output, self.context.object_store, destination)

    def limit(self, job: TrainingJob, *, complete: bool) -> None:
        """Limit the evaluation's remaining time after the end of its training job.

        Args:
            job: The training job.
            complete: Whether all steps were saved. If so, the limit is the job's MaxRuntimeInSeconds, for rules that
                never end by themselves; otherwise it is the short grace time.
        """
        seconds = job.max_runtime_seconds if complete else self.context.services.rule_stop_grace_seconds
        details = (
            f"The rule still ran {seconds} s (MaxRuntimeInSeconds) after the training job had ended."
            if complete
            else "The training job ended before every step was evaluated."
        )
        self._deadline = time.monotonic() + seconds, details

    def turn_off(self) -> None:
        """Store that the evaluation is stopping and stop it, because the profiler was disabled."""
        grace_seconds = self.context.services.settings.stop_grace_seconds
        self._begin_stop(grace_seconds, "The profiler was disabled while the job was training.")

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the evaluation is stopping and stop it, because the emulator shuts down."""
        self._begin_stop(grace_seconds, "The emulator was shut down before the evaluation ended.")

    def _begin_stop(self, grace_seconds: float, details: str) -> None:
        self._change(RuleEvaluation.begin_stop)
        self._stop_details = details
        self.ask_stop(grace_seconds)


def parse_verdict(content: bytes) -> Verdict:
    """Parse verdict.json; content that breaks the contract becomes an Error."""
    try:
        verdict = json.loads(content)
    except ValueError:
        verdict = None
    match verdict:
        case {"RuleEvaluationStatus": str() as status, **rest} if status in VERDICT_STATUSES:
            # JSON can contain unpaired surrogates, which the store cannot encode.
            details = str(rest.get("StatusDetails") or "").encode(errors="backslashreplace").decode()
            return Verdict(cast("RuleEvaluationStatus", status), details or None)
        case _:
            text = content[:200].decode(errors="replace")
            return Verdict("Error", f"AlgorithmError: The rule container's verdict cannot be read: {text}")


def describe_exit_without_verdict(exit_status: Exit, last_lines: list[str]) -> str:
    """Build the StatusDetails of a rule container that ended without a verdict."""
    own = [line.strip() for line in last_lines if line.strip() and not line.startswith(NETWORK_CLOSED)]
    closed = CLOSED if any(line.startswith(NETWORK_CLOSED) for line in last_lines) else ""
    cause = "ran out of memory and was killed" if exit_status.out_of_memory else "ended without a verdict"
    # The text with its exit code has to fit into 1,024 characters.
    said = f" Its last line was: {own[-1][:750]}" if own else " It printed nothing."
    return f"AlgorithmError: The rule container {cause}.{said}{closed}, exit code: {exit_status.code}"
