"""The stages of a training job's life, one method each, and what they share."""

from __future__ import annotations

import logging
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from container_runtime.runtime import ContainerRuntimeError, Exit, LogLine
from emulator.jobs.artifacts import read_failure, upload_model, upload_output_data
from emulator.jobs.channels import download_channels
from emulator.jobs.checkpoints import restore_checkpoints
from emulator.jobs.failures import StopAsked, describe_algorithm_error
from emulator.jobs.folder_upload import UploadError
from emulator.jobs.job_container import JobContainer, remove_container
from emulator.jobs.job_uploads import JobUploads
from emulator.jobs.logs import TRAINING_GROUP, build_stream_name
from emulator.jobs.metrics import MetricReader
from emulator.jobs.opt_ml import OptMl, locate_opt_ml, stage_opt_ml
from emulator.jobs.s3_paths import require_bucket
from emulator.jobs.training_container import build_training_spec, check_supported
from emulator.jobs.work_folder import find_work_folder, remove_work_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.jobs.collaborators import Collaborators
    from emulator.jobs.neighbours import ObjectStore
    from emulator.jobs.training_job import SecondaryStatus, TrainingJob

log = logging.getLogger(__name__)

_STAGES: tuple[SecondaryStatus, ...] = ("Starting", "Downloading", "Training", "Uploading")
# How long a killed container may take to be gone before its tensors are gathered all the same.
_KILL_SECONDS = 10.0


class TrainingRun:
    """What the stages of one job share, and what other threads may ask of it."""

    def __init__(
        self,
        job: TrainingJob,
        collaborators: Collaborators,
        start_rules: Callable[[TrainingJob], None],
        container_id: str | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            job: as stored.
            collaborators: the other rooms.
            start_rules: called once the training container runs; returns at once.
            container_id: of the container that the job had before a restart.
        """
        self.region, self.name = job.region, job.name
        self.folder = find_work_folder(collaborators.settings, job.name, job.id)
        self.taken_up = container_id is not None
        self._job = job
        self._with = collaborators
        self._object_store: ObjectStore = collaborators.object_store_for(job.region)
        self._start_rules = start_rules
        self._container_id = container_id
        self._container: JobContainer | None = None
        self._lock = Lock()
        # Taken up again on its way out, a job is stopped again.
        self._stop_grace = collaborators.settings.stop_grace_seconds if job.status == "Stopping" else None
        self._uploads: JobUploads | None = None
        self._keep_folder = False
        self._metrics = MetricReader(())
        self._opt_ml = OptMl(self.folder / "ml")
        self._model_uri: str | None = None

    def ask_stop(self, grace_seconds: float) -> None:
        """Stop what runs; returns at once. Any thread may call it, more than once."""
        with self._lock:
            self._stop_grace = grace_seconds
            if self._container is not None:
                self._container.ask_stop(grace_seconds)

    @property
    def tensors_ended(self) -> bool:
        """Whether S3 says that no more tensors come: rules can end by themselves."""
        return self._uploads is not None and self._uploads.tensors_ended

    def check_stop(self) -> None:
        """Raise StopAsked if the job is to stop and no container runs yet."""
        if self._stop_grace is not None:
            raise StopAsked

    def prepare(self) -> None:
        """Refuse what cannot run, write /opt/ml."""
        request = self._job.request
        check_supported(self._job)
        self._locate()
        stage_opt_ml(self._opt_ml, self._job, self._with.runtime.path_in_container)
        for member in ("OutputDataConfig", "DebugHookConfig", "TensorBoardOutputConfig"):
            if request.get(member):
                require_bucket(self._object_store, request[member]["S3OutputPath"], f"{member}.S3OutputPath")

    def enter(self, stage: SecondaryStatus) -> None:
        """Store the next stage; a job that is Stopping stays that, one taken up again may be there already."""

        def advance(job: TrainingJob, now_ms: int) -> TrainingJob:
            stopping = job.status == "Stopping"
            if stopping or _STAGES.index(job.secondary_status) >= _STAGES.index(stage):
                return job
            return job.transition(stage, now_ms)

        self._job = self._with.journal.change_training_job(self.region, self.name, advance)

    def download(self) -> None:
        """Input channels and checkpoints."""
        self.check_stop()
        resolved = self._with.runtime.resolve_image(self._job.request["AlgorithmSpecification"]["TrainingImage"])
        self._with.log_writer.ensure_stream(self.region, TRAINING_GROUP, self._stream)
        if resolved.note:
            self._write_line(LogLine(self._with.journal.now_ms(), f"smdebug-emulator: {resolved.note}"))
        download_channels(self._job.request, self._object_store, self._opt_ml.input_data, self.check_stop)
        if self._job.request.get("CheckpointConfig"):
            folder = self._opt_ml.root / self._opt_ml.checkpoints
            restore_checkpoints(self._job, folder, self._object_store, self.check_stop)
        self._uploads = self._build_uploads(restored=True)

    def start_container(self) -> None:
        """Start the training container."""
        self.check_stop()
        self._container_id = self._with.runtime.start(build_training_spec(self._job, self._opt_ml, self._with))

    def follow_container(self) -> None:
        """Begin to upload what it saves, read its log and wait for its end."""
        assert self._container_id is not None
        if self.taken_up:
            self._locate()
        container = JobContainer(self._with.runtime, self._container_id, self.name, self._read_line)
        with self._lock:
            self._container = container
            container.follow()
            if self._stop_grace is not None:
                container.ask_stop(self._stop_grace)
        if self._uploads is None:
            self._uploads = self._build_uploads(restored=False)
        self._uploads.start()

    def start_rules(self) -> None:
        """Start the rule evaluations beside the training."""
        if self._stop_grace is None:
            self._start_rules(self._job)

    def wait_for_exit(self) -> Exit:
        """Wait for the container's end, by itself, by a stop or because its time is up."""
        assert self._container is not None
        exit_status = self._container.wait(self._remaining_seconds())
        if exit_status is None:
            self._with.journal.change_training_job(self.region, self.name, _exceed_max_runtime)
            self._container.ask_stop(self._with.settings.stop_grace_seconds)
            exit_status = self._container.wait()
        assert exit_status is not None
        self._container.read_to_end()
        self._with.log_writer.flush()
        return exit_status

    def upload_results(self, exit_status: Exit) -> None:
        """The last tensors, then the artifacts: a model only of a training that succeeded or was stopped."""
        assert self._uploads is not None
        self._uploads.finish()
        upload_output_data(self._job, self._opt_ml, self._object_store, self.folder)
        if exit_status.code == 0 or self._job.status == "Stopping":
            self._model_uri = upload_model(self._job, self._opt_ml, self._object_store, self.folder)

    def end(self, exit_status: Exit) -> None:
        """Store how the job ended."""
        assert self._container is not None
        failure_text, last_lines = read_failure(self._opt_ml), self._container.read_to_end()

        def conclude(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.status == "Stopping":
                ended = job.transition(_end_of_stop(job), now_ms)
            elif exit_status.code == 0:
                ended = job.transition("Completed", now_ms)
            else:
                reason = describe_algorithm_error(exit_status, failure_text, last_lines)
                ended = job.transition("Failed", now_ms, failure_reason=reason)
            return replace(ended, model_artifacts=self._model_uri, final_metrics=self._metrics.final_metrics)

        self._job = self._with.journal.change_training_job(self.region, self.name, conclude)

    def end_stopped(self) -> None:
        """Store the end of a job that was stopped before its container ran."""
        self._job = self._with.journal.change_training_job(
            self.region, self.name, lambda job, now_ms: job.transition(_end_of_stop(job), now_ms)
        )

    def fail(self, failure_reason: str, *, keep_folder: bool = False) -> None:
        """Store that the job failed, its tensors so far kept."""
        self._keep_folder = keep_folder
        try:
            if self._container is not None and self._uploads is not None and not keep_folder:
                self._container.ask_stop(0.0)
                self._container.wait(_KILL_SECONDS)
                self._uploads.finish()
        except (UploadError, ContainerRuntimeError, OSError) as error:
            log.warning("Tensors of the failed training job %s: %s", self.name, error)
            self._keep_folder = True
        self._job = self._with.journal.change_training_job(
            self.region,
            self.name,
            lambda job, now_ms: job if job.ended else job.transition("Failed", now_ms, failure_reason=failure_reason),
        )

    def clean_up(self) -> None:
        """Leave no container, no thread and no file that is not needed."""
        if self._container is not None:
            self._container.close()
        elif self._container_id is not None:
            remove_container(self._with.runtime, self._container_id)
        if self._uploads is not None:
            self._uploads.stop()
        if not self._keep_folder:
            remove_work_folder(self.folder)

    def _locate(self) -> None:
        self._opt_ml = locate_opt_ml(self.folder / "ml", self._job.request)
        self._metrics = MetricReader(self._job.request["AlgorithmSpecification"].get("MetricDefinitions") or ())

    def _build_uploads(self, *, restored: bool) -> JobUploads:
        poll_seconds = self._with.settings.tensor_poll_seconds
        return JobUploads(self._job, self._opt_ml, self._object_store, poll_seconds, restored=restored)

    def _remaining_seconds(self) -> float:
        start_ms = self._job.container_start_ms
        ran = 0.0 if start_ms is None else (self._with.journal.now_ms() - start_ms) / 1000
        return max(0.0, self._job.max_runtime_seconds - ran)

    @property
    def _stream(self) -> str:
        return build_stream_name(self.name, self._job.training_start_ms or self._job.creation_ms)

    def _read_line(self, line: LogLine) -> None:
        self._write_line(line)
        self._metrics.read(line)

    def _write_line(self, line: LogLine) -> None:
        self._with.log_writer.append(self.region, TRAINING_GROUP, self._stream, line)


def _exceed_max_runtime(job: TrainingJob, now_ms: int) -> TrainingJob:
    if job.status == "Stopping":
        return job
    return job.transition("Stopping", now_ms, stop_cause="MaxRuntimeExceeded")


def _end_of_stop(job: TrainingJob) -> SecondaryStatus:
    return "MaxRuntimeExceeded" if job.stop_cause == "MaxRuntimeExceeded" else "Stopped"
