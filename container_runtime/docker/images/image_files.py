"""Image files below a mount, copied into the mounted folder before a start."""

import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import docker
import requests.exceptions

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status
from container_runtime.docker.images.local_images import LocalImage
from container_runtime.runtime import ContainerStartError, EngineUnavailableError
from container_runtime.spec import ContainerSpec, Mount


def copy_image_files(
    api: docker.APIClient, spec: ContainerSpec, image: LocalImage, name: str, labels: Mapping[str, str]
) -> None:
    """Copy the image's files below the targets of mounts that do not hide them; see ``Mount.own``.

    The engine gives access to an image's files only through a container. In the job's container the mounts cover them,
    so they are read from a second container that has no mounts and never runs.

    Args:
        api: client of an engine that has the image.
        spec: spec of the container that is to start. The files go to the source folders of its mounts.
        image: the image that the container runs.
        name: name by which the engine runs the image. A tag may by now name a newer build.
        labels: labels of the second container, by which it is removed later if this process is killed.

    Raises:
        ContainerStartError: a folder cannot be written.
        EngineUnavailableError: the engine stopped answering during the copy.
    """
    asked = [each for each in spec.mounts if each.own is not None]
    identity = api.inspect_image(name)["Id"] if asked else ""  # type: ignore[no-untyped-call]
    mounts = [each for each in asked if (identity, each.target) not in image.absent]
    if not mounts:
        return
    host_config = api.create_host_config(network_mode="none")
    created = api.create_container(identity, command=["true"], host_config=host_config, labels=dict(labels))
    try:
        for mount in mounts:
            if not _copy_into(mount, partial(_read_archive, api, created["Id"])):
                image.absent.add((identity, mount.target))
    except requests.exceptions.RequestException:
        raise
    except tarfile.TarError as exc:
        raise EngineUnavailableError(
            f"Container {spec.name}: the engine sent a part of its image's files: {exc}"
        ) from exc
    except OSError as exc:
        raise ContainerStartError(
            f"Container {spec.name}: the files that {spec.image} has below a mount cannot be copied: {exc}"
        ) from exc
    finally:
        api.remove_container(created["Id"], force=True, v=True)


@contextmanager
def _read_archive(api: docker.APIClient, container_id: str, path: str) -> Iterator[IO[bytes] | None]:
    """Open a path of a container as a tar stream; None if the container does not have the path."""
    url = build_url(api, f"/containers/{container_id}/archive")
    # Otherwise the engine compresses the stream, and the raw response is not decompressed.
    headers = {"Accept-Encoding": "identity"}
    with api.get(url, params={"path": path}, headers=headers, stream=True, timeout=REQUEST_SECONDS) as response:
        if response.status_code == 404 and "No such container" not in response.text:
            yield None
            return
        if response.status_code == 500 and "not a directory" in response.text:
            raise NotADirectoryError(f"in the image, {path.removesuffix('/.')} is a file")
        raise_for_status(response)
        yield cast("IO[bytes]", response.raw)


def _copy_into(mount: Mount, read: Callable[[str], Any]) -> bool:
    """Copy the image's files below a mount's target into its source, and return whether the image has the target.

    Files of an earlier start are replaced, because a container starts with the files of its image. Symbolic links are
    not followed, because a container may have created them.
    """
    hidden = {PurePosixPath(each) for each in mount.own or ()}
    # In the tar a folder comes before its content. If a folder is skipped, everything below it is skipped too.
    taken = {PurePosixPath()}
    with read(f"{mount.target}/.") as archive:
        if archive is None:
            return False
        with tarfile.open(fileobj=archive, mode="r|") as tar:
            for entry in tar:
                path = PurePosixPath(entry.name)
                if path in taken or path in hidden or path.parent not in taken or ".." in path.parts:
                    continue
                if entry.isdir():
                    _make_folder(mount.source / path, entry)
                    taken.add(path)
                elif entry.issym() and _clear_path(mount.source / path):
                    (mount.source / path).symlink_to(entry.linkname)
                elif entry.isreg() and _clear_path(mount.source / path):
                    _write_file(mount.source / path, entry, tar)
                elif entry.islnk() and _clear_path(mount.source / path):
                    # Copy a hard link as a separate file: its first name may be skipped, and the emulator never reads
                    # a file with two names from a job's folder.
                    _copy_alone(mount, path, read)
    return True


def _copy_alone(mount: Mount, path: PurePosixPath, read: Callable[[str], Any]) -> None:
    with read(f"{mount.target}/{path}") as archive, tarfile.open(fileobj=archive, mode="r|") as tar:
        for entry in tar:
            _write_file(mount.source / path, entry, tar)


def _make_folder(folder: Path, entry: tarfile.TarInfo) -> None:
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        folder.mkdir()
        # On AWS containers run as root, and can write to folders that are read-only for their owner.
        folder.chmod(entry.mode & 0o777 | 0o700)


def _clear_path(path: Path) -> bool:
    """Make a path free for a new file, and return whether it is free. A folder that is not empty is kept."""
    if path.is_dir() and not path.is_symlink():
        if any(path.iterdir()):
            return False
        path.rmdir()
    path.unlink(missing_ok=True)
    return True


def _write_file(path: Path, entry: tarfile.TarInfo, tar: tarfile.TarFile) -> None:
    content = tar.extractfile(entry)
    assert content is not None
    with path.open("xb") as file:
        shutil.copyfileobj(content, file)
        os.fchmod(file.fileno(), entry.mode & 0o777 | 0o600)
    # Keep the time: compiled Python files record the modification time of their source.
    os.utime(path, (entry.mtime, entry.mtime))
