"""Live uploads of a training: tensors, TensorBoard, checkpoints, profiles."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from emulator.jobs.model.profiler_config import is_profiled
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.warnings import JobWarning, build_warning
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.staging.opt_ml import OptMl
from emulator.jobs.staging.s3_paths import build_profiler_uri, build_tensorboard_uri, build_tensors_uri, require_bucket
from emulator.jobs.uploads.checkpoints import build_checkpoint_upload
from emulator.jobs.uploads.folder import FolderSync, FolderUpload, LiveUpload, join_key
from emulator.jobs.uploads.tensors import StepOwners, TensorUpload, announce_end
from emulator.moto_services.s3.objects import ObjectStore, S3Uri

# The names of the profiler's files have this suffix until they are complete.
UNFINISHED = ".tmp"


class LiveUploads:
    """The live uploads of a job's hosts, which share the same destinations."""

    def __init__(
        self,
        job: TrainingJob,
        opt_mls: Sequence[OptMl],
        object_store: ObjectStore,
        poll_seconds: float,
        measures: Path,
        warn: Callable[[JobWarning], None],
    ) -> None:
        """Prepare the uploads; ``start`` begins them.

        Args:
            job: The job, whose request defines what is uploaded.
            opt_mls: The /opt/ml of each host.
            object_store: S3 of the job's region.
            poll_seconds: Time between two checks for new tensors.
            measures: Folder with the measurements of the job's hosts.
            warn: Reports a warning to the job's user.

        Raises:
            RequestFailure: A bucket is missing.
        """
        request = job.request
        self._object_store = object_store
        self._opt_mls = opt_mls
        self._measures = measures
        self._started = self._finished = False
        self._tensors: list[TensorUpload] = []
        self._syncs: list[FolderSync] = []
        self._tensors_destination: S3Uri | None = None
        # Rules wait for the end marker of the tensors, even without a hook.
        if request.get("DebugHookConfig") or request.get("DebugRuleConfigurations"):
            destination = require_bucket(object_store, build_tensors_uri(job), "DebugHookConfig.S3OutputPath")
            self._tensors_destination = destination
            owners = StepOwners(partial(_warn_of_shared_worker, warn))
            for opt_ml in opt_mls:
                folder = opt_ml.files.below(opt_ml.tensors)
                claim = partial(owners.claim, opt_ml.root.name)
                self._tensors.append(TensorUpload(folder, object_store, destination, job.name, poll_seconds, claim))
        if request.get("TensorBoardOutputConfig"):
            uri = build_tensorboard_uri(job)
            destination = require_bucket(object_store, uri, "TensorBoardOutputConfig.S3OutputPath")
            for opt_ml in opt_mls:
                upload = FolderUpload(opt_ml.files.below(opt_ml.tensorboard), object_store, destination)
                self._syncs.append(FolderSync(upload, f"tensorboard-{job.name}"))
        if request.get("CheckpointConfig"):
            for opt_ml in opt_mls:
                upload = build_checkpoint_upload(job, opt_ml, object_store)
                self._syncs.append(FolderSync(upload, f"checkpoints-{job.name}"))
        self._profiler_destination: S3Uri | None = None
        self.follow_profiler(job)

    def follow_profiler(self, job: TrainingJob) -> None:
        """Begin to upload the profiler's output, if the job's current request asks for it.

        Raises:
            RequestFailure: The bucket is missing.
        """
        # Profiler rules need the end marker even if the profiler is off.
        wanted = is_profiled(job.request) or job.request.get("ProfilerRuleConfigurations")
        if not wanted or self._profiler_destination is not None:
            return
        destination = require_bucket(self._object_store, build_profiler_uri(job), "ProfilerConfig.S3OutputPath")
        self._profiler_destination = destination
        folders = [JobFolder(self._measures), *(opt_ml.files.below(opt_ml.profiler) for opt_ml in self._opt_mls)]
        for folder in folders:
            upload = FolderUpload(folder, self._object_store, destination, UNFINISHED)
            sync = FolderSync(upload, f"profiler-{job.name}")
            self._syncs.append(sync)
            if self._started:
                sync.start()

    @property
    def profiler_ended(self) -> bool:
        """Whether S3 has the end marker of the profiler's output."""
        return self._finished and self._profiler_destination is not None

    @property
    def tensors_ended(self) -> bool:
        """Whether S3 has the end marker of the tensors, which lets rules end by themselves."""
        return self._finished and self._tensors_destination is not None

    def start(self) -> None:
        """Begin the uploads while the containers run."""
        self._started = True
        for upload in self._all:
            upload.start()

    def finish(self) -> None:
        """Upload the rest after the containers have ended, then store the end markers.

        Does nothing once it has succeeded.

        Raises:
            UploadError: A file could not be stored.
        """
        if self._finished:
            return
        self.finish_attempt()
        self.announce_end()

    def announce_end(self) -> None:
        """Store the end markers of tensors and profiler in S3. Does nothing once it has succeeded.

        Raises:
            UploadError: A marker could not be stored.
        """
        if self._finished:
            return
        if self._tensors_destination is not None:
            announce_end(self._object_store, self._tensors_destination)
        if (profiler := self._profiler_destination) is not None:
            announce_end(self._object_store, profiler._replace(key=join_key(profiler.key, "system")))
        self._finished = True

    def finish_attempt(self) -> None:
        """Upload the rest of an attempt whose containers have ended, without end markers: another attempt may follow.

        Raises:
            UploadError: A file could not be stored.
        """
        for opt_ml in self._opt_mls:
            # All files are checked again, so that only refusals that persist are reported.
            opt_ml.refused.clear()
        for upload in self._all:
            upload.finish()

    def stop(self) -> None:
        """Stop all threads, without uploading the rest."""
        for upload in self._all:
            upload.stop()

    @property
    def _all(self) -> Sequence[LiveUpload]:
        return [*self._syncs, *self._tensors]


def _warn_of_shared_worker(warn: Callable[[JobWarning], None], first: str, second: str, worker: str) -> None:
    warn(build_warning("WorkerNotUnique", first=first, second=second, worker=worker))
