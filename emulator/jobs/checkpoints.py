"""Checkpoints: what S3 holds is there when training starts, what training writes gets to S3 while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.jobs.folder_upload import FolderUpload
from emulator.jobs.s3_paths import require_bucket, resolve_relative_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from emulator.jobs.neighbours import ObjectStore
    from emulator.jobs.training_job import TrainingJob


def restore_checkpoints(
    job: TrainingJob, folder: Path, object_store: ObjectStore, check_stop: Callable[[], None]
) -> None:
    """Download everything below CheckpointConfig.S3Uri into ``folder``; nothing there is fine.

    Raises:
        RequestFailure: the bucket is missing, or a key cannot be a file.
    """
    location = require_bucket(object_store, job.request["CheckpointConfig"]["S3Uri"], "CheckpointConfig.S3Uri")
    prefix = location.key.rstrip("/") + "/" if location.key.rstrip("/") else ""
    for entry in object_store.list(location.bucket, prefix):
        if entry.key.endswith("/"):
            continue
        check_stop()
        path = resolve_relative_key(folder, entry.key[len(prefix) :])
        path.parent.mkdir(parents=True, exist_ok=True)
        object_store.download(location.bucket, entry.key, path)


def build_checkpoint_upload(job: TrainingJob, folder: Path, object_store: ObjectStore) -> FolderUpload:
    """The upload of ``folder`` to CheckpointConfig.S3Uri.

    Raises:
        RequestFailure: the bucket is missing.
    """
    location = require_bucket(object_store, job.request["CheckpointConfig"]["S3Uri"], "CheckpointConfig.S3Uri")
    return FolderUpload(folder, object_store, location)
