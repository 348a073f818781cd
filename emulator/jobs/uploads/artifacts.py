"""Final job artifacts in S3: model.tar.gz and output.tar.gz."""

import os
import stat
import tarfile
from collections.abc import Sequence
from pathlib import Path

from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.staging.opt_ml import OptMl
from emulator.jobs.staging.s3_paths import build_output_uri, join_uri
from emulator.jobs.uploads.folder import FolderUpload, UploadError, put_object, reporting_unreadable
from emulator.moto_services.s3.objects import ObjectStore, parse_s3_uri

MAX_FAILURE_CHARACTERS = 1024
# Weights hardly compress: the fastest level gives nearly the size of the slowest in a fraction of its time.
_COMPRESS_LEVEL = 1


def upload_model(job: TrainingJob, opt_mls: Sequence[OptMl], object_store: ObjectStore, work_dir: Path) -> str:
    """Upload /opt/ml/model of all hosts as one and return the URI for ModelArtifacts.

    Where two hosts have a file of the same name, the first host's counts.

    Raises:
        RefusedError: something of it is not a folder or file of the job's own: a model in part would be none.
        UploadError: S3 refused, or the archive could not be written to ``work_dir``.
    """
    return _upload_folders(job, [opt_ml.files.below("model") for opt_ml in opt_mls], "model", object_store, work_dir)


def upload_output_data(
    job: TrainingJob, opt_mls: Sequence[OptMl], object_store: ObjectStore, work_dir: Path
) -> str | None:
    """Upload /opt/ml/output/data, unless it is empty on all hosts; see ``upload_model``."""
    folders = [opt_ml.files.below("output/data") for opt_ml in opt_mls]
    for folder in folders:
        with reporting_unreadable(folder, parse_s3_uri(build_output_uri(job))):
            if any(folder.walk(whole=True)):
                break
    else:
        return None
    return _upload_folders(job, folders, "output", object_store, work_dir)


def read_failure(opt_ml: OptMl) -> str:
    """Read the first 1,024 characters of /opt/ml/output/failure, or nothing."""
    # UTF-8 takes up to four bytes for a character.
    content = opt_ml.files.read_small_file("output/failure", MAX_FAILURE_CHARACTERS * 4) or b""
    return content.decode(errors="replace")[:MAX_FAILURE_CHARACTERS]


def _upload_folders(
    job: TrainingJob, folders: Sequence[JobFolder], name: str, object_store: ObjectStore, work_dir: Path
) -> str:
    if job.request["OutputDataConfig"].get("CompressionType") == "NONE":
        # AWS's guide ("Uncompressed model output") names no keys. The SDK's Estimator.model_data takes S3ModelArtifacts
        # for a prefix that ends in a slash, so this is the archive's place with a folder in place of the archive.
        uri = join_uri(build_output_uri(job), name) + "/"
        # The first host's files last: they stay.
        for folder in reversed(folders):
            FolderUpload(folder, object_store, parse_s3_uri(uri)).sweep(whole=True)
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


def write_archive(folders: Sequence[JobFolder], archive: Path) -> None:
    """Pack what is in ``folders``, under relative names, without holding any of it in memory.

    Links stay links; what is neither file, folder nor link (a socket, a pipe) is left out. A name that several folders
    have is packed from the first of them only.

    Raises:
        RefusedError: a folder is none of the job's own, or a file has several names.
        OSError, tarfile.TarError.
    """
    packed = {"": True}  # by name, whether it is a folder
    with tarfile.open(archive, "w:gz", compresslevel=_COMPRESS_LEVEL) as tar:
        for folder in folders:
            for path, found in folder.walk(whole=True):
                # What another host has in the same folder is packed, too.
                if path not in packed and packed.get(path.rpartition("/")[0]):
                    packed[path] = stat.S_ISDIR(found.st_mode)
                    _pack(tar, folder, path, found)


def _pack(tar: tarfile.TarFile, folder: JobFolder, path: str, found: os.stat_result) -> None:
    entry = tarfile.TarInfo(path)
    entry.mode, entry.mtime = stat.S_IMODE(found.st_mode), found.st_mtime
    # Who ran the emulator is nobody's business in an artifact.
    entry.uname = entry.gname = "root"
    match stat.S_IFMT(found.st_mode):
        case stat.S_IFREG:
            with folder.open_file(path) as file:
                entry.size = os.fstat(file.fileno()).st_size
                tar.addfile(entry, file)
        case stat.S_IFDIR:
            entry.type = tarfile.DIRTYPE
            tar.addfile(entry)
        case stat.S_IFLNK:
            entry.type, entry.linkname = tarfile.SYMTYPE, folder.read_link(path)
            tar.addfile(entry)
        case _:
            folder.leave_out(path, found)
