"""What a job leaves in S3 at its end: model.tar.gz, output.tar.gz."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from emulator.jobs.staging.container_files import read_small_file
from emulator.jobs.staging.s3_paths import build_output_uri, join_uri
from emulator.jobs.uploads.folder import FolderUpload, UploadError, put_object
from emulator.moto_services.s3 import parse_s3_uri

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.jobs.records.training_job import TrainingJob
    from emulator.jobs.staging.opt_ml import OptMl
    from emulator.moto_services.s3 import ObjectStore

MAX_FAILURE_CHARACTERS = 1024
# Weights hardly compress: the fastest level gives nearly the size of the slowest in a fraction of its time.
_COMPRESS_LEVEL = 1


def upload_model(job: TrainingJob, opt_mls: Sequence[OptMl], object_store: ObjectStore, work_dir: Path) -> str:
    """Upload /opt/ml/model of all hosts as one and return the URI for ModelArtifacts.

    Where two hosts have a file of the same name, the first host's counts.

    Raises:
        UploadError: S3 refused, or the archive could not be written to ``work_dir``.
    """
    return _upload_folders(job, [opt_ml.model for opt_ml in opt_mls], "model", object_store, work_dir)


def upload_output_data(
    job: TrainingJob, opt_mls: Sequence[OptMl], object_store: ObjectStore, work_dir: Path
) -> str | None:
    """Upload /opt/ml/output/data, unless it is empty on all hosts; see ``upload_model``."""
    folders = [opt_ml.output_data for opt_ml in opt_mls if opt_ml.output_data.is_dir()]
    if not any(any(folder.iterdir()) for folder in folders):
        return None
    return _upload_folders(job, folders, "output", object_store, work_dir)


def read_failure(opt_ml: OptMl) -> str:
    """Read the first 1,024 characters of /opt/ml/output/failure, or nothing."""
    # UTF-8 takes up to four bytes for a character.
    content = read_small_file(opt_ml.failure, MAX_FAILURE_CHARACTERS * 4) or b""
    return content.decode(errors="replace")[:MAX_FAILURE_CHARACTERS]


def _upload_folders(
    job: TrainingJob, folders: Sequence[Path], name: str, object_store: ObjectStore, work_dir: Path
) -> str:
    if job.request["OutputDataConfig"].get("CompressionType") == "NONE":
        uri = join_uri(build_output_uri(job), name) + "/"
        # The first host's files last: they stay.
        for folder in reversed(folders):
            FolderUpload(folder, object_store, parse_s3_uri(uri)).sweep()
        return uri
    uri = join_uri(build_output_uri(job), f"{name}.tar.gz")
    archive = work_dir / f"{name}.tar.gz"
    try:
        write_archive(folders, archive)
    except (OSError, tarfile.TarError) as error:
        raise UploadError(f"{archive} for {uri} could not be written: {error}") from error
    put_object(object_store, archive, parse_s3_uri(uri))
    archive.unlink()
    return uri


def write_archive(folders: Sequence[Path], archive: Path) -> None:
    """Pack what is in ``folders``, under relative names, without holding any of it in memory.

    Links stay links; what is neither file, folder nor link (a socket, a pipe) is left out. A name that several folders
    have is packed from the first of them only.

    Raises:
        OSError, tarfile.TarError.
    """
    packed: dict[str, bool] = {}  # by name, whether it is a folder

    def choose(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        # A folder is gone into again: what another host has in it is packed, too.
        if entry.name in packed and not (entry.isdir() and packed[entry.name]):
            return None
        packed[entry.name] = entry.isdir()
        return _plain_entry(entry)

    with tarfile.open(archive, "w:gz", compresslevel=_COMPRESS_LEVEL) as tar:
        for folder in folders:
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                tar.add(path, arcname=path.name, filter=choose)


def _plain_entry(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    # Who ran the emulator is nobody's business in an artifact.
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
