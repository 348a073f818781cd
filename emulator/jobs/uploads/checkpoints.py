"""Checkpoints: restored from S3 before training, uploaded during it."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.staging.opt_ml import OptMl
from emulator.jobs.staging.s3_paths import require_bucket, resolve_relative_key
from emulator.jobs.uploads.folder import FileState, FolderUpload, read_states
from emulator.moto_services.s3.objects import ObjectStore


def restore_checkpoints(
    job: TrainingJob, opt_ml: OptMl, object_store: ObjectStore, check_stop: Callable[[], None]
) -> None:
    """Download everything below CheckpointConfig.S3Uri for one host; nothing there is fine.

    What came from S3 is written down beside the host's folder, to last beyond a restart: sent back later, it could
    overwrite what another host has saved since.

    Raises:
        RequestFailure: the bucket is missing, or a key cannot be a file.
    """
    location = require_bucket(object_store, job.request["CheckpointConfig"]["S3Uri"], "CheckpointConfig.S3Uri")
    prefix = location.key.rstrip("/") + "/" if location.key.rstrip("/") else ""
    for entry in object_store.list(location.bucket, prefix):
        if entry.key.endswith("/"):
            continue
        check_stop()
        path = resolve_relative_key(opt_ml.root / opt_ml.checkpoints, entry.key[len(prefix) :])
        path.parent.mkdir(parents=True, exist_ok=True)
        object_store.download(location.bucket, entry.key, path)
    record = _find_record(opt_ml)
    unfinished = record.with_suffix(".new")
    unfinished.write_text(json.dumps(read_states(opt_ml.files.below(opt_ml.checkpoints))), encoding="utf-8")
    unfinished.replace(record)


def build_checkpoint_upload(job: TrainingJob, opt_ml: OptMl, object_store: ObjectStore) -> FolderUpload:
    """Build the upload of one host's checkpoints to CheckpointConfig.S3Uri, without those that came from there.

    Raises:
        RequestFailure: the bucket is missing.
    """
    location = require_bucket(object_store, job.request["CheckpointConfig"]["S3Uri"], "CheckpointConfig.S3Uri")
    upload = FolderUpload(opt_ml.files.below(opt_ml.checkpoints), object_store, location)
    with suppress(FileNotFoundError):  # a job that was lost before its download ended has none
        restored = json.loads(_find_record(opt_ml).read_text(encoding="utf-8"))
        upload.mark_uploaded({path: FileState(*state) for path, state in restored.items()})
    return upload


def _find_record(opt_ml: OptMl) -> Path:
    return opt_ml.root.with_name(f"restored-{opt_ml.root.name}.json")
