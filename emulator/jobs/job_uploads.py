"""Everything a training container writes that goes to S3 while it runs: tensors, TensorBoard files, checkpoints."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from emulator.jobs.checkpoints import build_checkpoint_upload
from emulator.jobs.failures import RequestFailure
from emulator.jobs.folder_upload import FolderSync, FolderUpload, UploadError
from emulator.jobs.opt_ml import locate_opt_ml
from emulator.jobs.s3_paths import build_tensorboard_uri, build_tensors_uri, require_bucket
from emulator.jobs.tensor_upload import TensorUpload
from emulator.jobs.work_folder import find_work_folder, remove_work_folder

if TYPE_CHECKING:
    from emulator.jobs.collaborators import Collaborators
    from emulator.jobs.neighbours import ObjectStore
    from emulator.jobs.opt_ml import OptMl
    from emulator.jobs.training_job import TrainingJob

log = logging.getLogger(__name__)


class JobUploads:
    """The uploads of one job."""

    def __init__(
        self, job: TrainingJob, opt_ml: OptMl, object_store: ObjectStore, poll_seconds: float, *, restored: bool
    ) -> None:
        """Prepare them; nothing runs before ``start``.

        Args:
            job: whose request says what is to be uploaded.
            opt_ml: where it is written.
            object_store: where it goes.
            poll_seconds: how often new tensors are looked for.
            restored: the checkpoints that are there came from S3, and no container has run since.

        Raises:
            RequestFailure: a bucket is missing.
        """
        request, root = job.request, opt_ml.root
        self._finished = False
        self._tensors: TensorUpload | None = None
        self._syncs: list[FolderSync] = []
        # Rules without a hook need the end of the tensors too: it is what they wait for.
        if request.get("DebugHookConfig") or request.get("DebugRuleConfigurations"):
            destination = require_bucket(object_store, build_tensors_uri(job), "DebugHookConfig.S3OutputPath")
            self._tensors = TensorUpload(root / opt_ml.tensors, object_store, destination, job.name, poll_seconds)
        if request.get("TensorBoardOutputConfig"):
            uri = build_tensorboard_uri(job)
            destination = require_bucket(object_store, uri, "TensorBoardOutputConfig.S3OutputPath")
            upload = FolderUpload(root / opt_ml.tensorboard, object_store, destination)
            self._syncs.append(FolderSync(upload, f"tensorboard-{job.name}"))
        if request.get("CheckpointConfig"):
            upload = build_checkpoint_upload(job, root / opt_ml.checkpoints, object_store)
            if restored:
                upload.mark_uploaded()
            self._syncs.append(FolderSync(upload, f"checkpoints-{job.name}"))

    @property
    def tensors_ended(self) -> bool:
        """Whether S3 says that no more tensors come: rules can end by themselves."""
        return self._finished and self._tensors is not None

    def start(self) -> None:
        """Begin; the container is running."""
        if self._tensors is not None:
            self._tensors.start()
        for sync in self._syncs:
            sync.start()

    def finish(self) -> None:
        """Upload the rest; the container has ended. Does nothing once it has succeeded.

        Raises:
            UploadError: something could not be stored.
        """
        if self._finished:
            return
        for sync in self._syncs:
            sync.finish()
        if self._tensors is not None:
            self._tensors.finish()
        self._finished = True

    def stop(self) -> None:
        """End every thread, and leave what is not uploaded where it is."""
        if self._tensors is not None:
            self._tensors.stop()
        for sync in self._syncs:
            sync.stop()


def salvage_tensors(job: TrainingJob, collaborators: Collaborators) -> None:
    """Upload what a lost job's container has saved, say that no more comes, and remove the job's folder."""
    settings = collaborators.settings
    folder = find_work_folder(settings, job.name, job.id)
    try:
        opt_ml = locate_opt_ml(folder / "ml", job.request)
        object_store = collaborators.object_store_for(job.region)
        JobUploads(job, opt_ml, object_store, settings.tensor_poll_seconds, restored=False).finish()
    except (RequestFailure, UploadError) as error:
        log.warning("What the lost training job %s saved is kept in %s: %s", job.name, folder, error)
        return
    remove_work_folder(folder)
