"""Image files below a mount, copied into the mounted folder before a start."""

from __future__ import annotations

import os
import shutil
import tarfile
from contextlib import contextmanager
from functools import partial
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

import requests.exceptions

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status
from container_runtime.runtime import ContainerStartError, EngineUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import docker

    from container_runtime.docker.local_images import LocalImage
    from container_runtime.spec import ContainerSpec, Mount


def copy_image_files(
    api: docker.APIClient, spec: ContainerSpec, image: LocalImage, name: str, labels: Mapping[str, str]
) -> None:
    """Copy what the image has below the targets of mounts that do not hide it; see ``Mount.own``.

    The engine shows an image's files in a container only. The job's own has the mounts over them, so they are read in
    one without mounts, which never runs.

    Args:
        api: client of an engine that has the image.
        spec: of the container that is to start; its folders get the files.
        image: that it runs.
        name: by which the engine is told to run it; a tag may by now be that of a newer build.
        labels: of the container without mounts, by which it is removed where this process is killed.

    Raises:
        ContainerStartError: a folder cannot be written.
        EngineUnavailableError: the engine went away meanwhile.
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
    """Read a path of a container as a tar; None where it has no such path."""
    url = build_url(api, f"/containers/{container_id}/archive")
    # The engine would compress it, which the raw response does not undo.
    headers = {"Accept-Encoding": "identity"}
    with api.get(url, params={"path": path}, headers=headers, stream=True, timeout=REQUEST_SECONDS) as response:
        if response.status_code == 404 and "No such container" not in response.text:
            yield None
            return
        raise_for_status(response)
        yield cast("IO[bytes]", response.raw)


def _copy_into(mount: Mount, read: Callable[[str], Any]) -> bool:
    """Copy the image's files below a mount's target into its source; whether the image has the target.

    What an earlier start left is replaced: a container begins with the files of its image. No link is followed, since
    a container may have made it.
    """
    hidden = {PurePosixPath(each) for each in mount.own or ()}
    # A tar has a folder before what is in it: what is below a folder that is not taken is not taken either.
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
                    # Its first name may not be taken, and a file with two names is never read from a job's folder.
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
        # Containers of AWS are root, and write where the image lets its owner read only.
        folder.chmod(entry.mode & 0o777 | 0o700)


def _clear_path(path: Path) -> bool:
    """Remove what is at a path where a file is to be; a folder with something in it stays, and False is returned."""
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
    # Compiled Python files name the time of their source.
    os.utime(path, (entry.mtime, entry.mtime))
