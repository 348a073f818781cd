"""Spare container: created ahead, with its imports done, given away once."""

import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from container_runtime.docker.scratch import give_folders
from container_runtime.docker.spares.spare_shape import PYTHON, Shape, locate_program
from container_runtime.images.catalogue import ImageDefinition
from container_runtime.images.own_packages import FOLDER
from container_runtime.runtime import Usage
from container_runtime.spec import ContainerSpec, Mount
from container_runtime.warm import FOLDER as WARM

SPARE_LABEL = "smdebug-emulator.spare"
"""Label of every container that was created as a spare one; its value is the name that it was created with."""

_PROGRAM = "spare_program.py"
_CONTROL = "/run/smdebug-emulator"
_SOCKET = "socket"
_SCRATCH = "scratch"
# Longer than the imports of the slowest framework take on a busy machine.
LONGEST_IMPORTS_SECONDS = 120.0
_ANSWER_SECONDS = 30.0
# Between two looks whether a container still runs whose program has not begun.
_LOOK_SECONDS = 0.5


class SpareLostError(Exception):
    """The spare container has ended, or does not answer; the message says why."""


class Spare:
    """A spare container. One thread at a time uses it.

    Args:
        folder: folder for its files, on the disk of the containers' own folders.
        shape: what it is created as.
        definition: its image.
    """

    def __init__(self, folder: Path, shape: Shape, definition: ImageDefinition) -> None:
        self.shape = shape
        self.definition = definition
        self.name = f"smdebug-spare-{uuid.uuid4().hex[:12]}"
        self.container_id = ""
        self.memory_bytes = 0
        self.is_awaited = False
        self._folder = folder / self.name
        self._lines: Any = None
        self._connection: socket.socket | None = None

    def start(self, start: Callable[[ContainerSpec], str], read_usage: Callable[[str], Usage | None]) -> None:
        """Create and start the container; return when it begins its imports.

        Args:
            start: starts a new container.
            read_usage: measures a container; of one that has ended there is nothing to measure.

        Raises:
            ContainerRuntimeError, OSError, SpareLostError.
        """
        control = self._folder / "control"
        control.mkdir(parents=True, mode=0o700)
        for number in range(len(self.shape.targets)):
            (self._folder / str(number)).mkdir()
        for program in WARM.glob("*.py"):
            shutil.copyfile(program, control / program.name)
        request = {
            "modules": self.definition.warm_modules,
            "variables": self.definition.warm_variables,
            "hook": self.definition.warm_hook,
            "script_starters": [*self.definition.script_starters, *map(locate_program, self.definition.commands)],
        }
        (control / "request.json").write_text(json.dumps(request), encoding="utf-8")
        with _listen(control) as listener:
            self.container_id = start(self._build_spec(control))
            self._connection = self._accept(listener, read_usage)
        self._lines = self._connection.makefile("rw", encoding="utf-8")

    def wait_for_imports(self) -> None:
        """Return when the imports are done.

        Raises:
            SpareLostError: they failed; the message is what they printed.
        """
        assert self._connection is not None
        self._connection.settimeout(LONGEST_IMPORTS_SECONDS)
        try:
            self._read()
        except SpareLostError as error:
            said = ""
            with suppress(OSError):
                said = (self._folder / "control" / "imports.log").read_text(encoding="utf-8", errors="replace").strip()
            raise SpareLostError(said or str(error)) from error
        self._connection.settimeout(_ANSWER_SECONDS)

    def fill(self, spec: ContainerSpec, user: tuple[int, int]) -> None:
        """Make the folders that the container has mounted those of ``spec``, with their content.

        The container sees the folders that were created for it, wherever they are moved. So the content of each of the
        spec's folders moves into one of these, which then takes its place.

        Raises:
            OSError: a folder cannot be moved.
        """
        for number, mount in enumerate(spec.mounts):
            replace_folder(mount.source, self._folder / str(number))
        if spec.scratch is not None:
            spec.scratch.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(spec.scratch / FOLDER, ignore_errors=True)
            for staged in sorted((self._folder / _SCRATCH).iterdir()):
                replace_folder(spec.scratch / staged.name, staged)
        give_folders(spec, user)

    def begin(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Let the container's program begin. It is not a spare container from then on.

        Raises:
            SpareLostError: it has ended before.
        """
        self._write(json.dumps({"argv": list(argv), "environment": dict(environment)}))
        if self._read() != "begun\n":
            raise SpareLostError("it has ended")
        self.close()

    def close(self) -> None:
        """Remove its own files. Its program ends, unless it has begun."""
        if self._connection is not None:
            # Writes what is left, which a program that has ended does not take.
            with suppress(OSError):
                self._lines.close()
            self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def shares_disk(self, spec: ContainerSpec) -> bool:
        """Return whether the spec's folders can be exchanged for those of this container."""
        folders = [mount.source for mount in spec.mounts] + ([] if spec.scratch is None else [spec.scratch.parent])
        own = self._folder.stat().st_dev
        return all(folder.stat().st_dev == own for folder in folders)

    def _build_spec(self, control: Path) -> ContainerSpec:
        shape = self.shape
        folders = [
            Mount(self._folder / str(number), target, read_only=target in shape.read_only)
            for number, target in enumerate(shape.targets)
        ]
        return ContainerSpec(
            name=self.name,
            image=shape.image,
            entrypoint=(PYTHON, f"{_CONTROL}/{_PROGRAM}"),
            mounts=(Mount(control, _CONTROL), *folders),
            hostname=shape.hostname,
            read_only_root=shape.read_only_root,
            scratch=self._folder / _SCRATCH if shape.has_scratch else None,
            shm_bytes=shape.shm_bytes,
            labels={SPARE_LABEL: self.name},
        )

    def _accept(self, listener: socket.socket, read_usage: Callable[[str], Usage | None]) -> socket.socket:
        listener.settimeout(_LOOK_SECONDS)
        deadline = time.monotonic() + _ANSWER_SECONDS
        while time.monotonic() < deadline:
            with suppress(TimeoutError):
                return listener.accept()[0]
            if read_usage(self.container_id) is None:
                raise SpareLostError("it has ended before its program began")
        raise SpareLostError("its program did not begin")

    def _write(self, line: str) -> None:
        try:
            self._lines.write(f"{line}\n")
            self._lines.flush()
        except OSError as error:
            raise SpareLostError(f"it has ended ({error})") from error

    def _read(self) -> str:
        try:
            line: str = self._lines.readline()
        except OSError as error:
            raise SpareLostError(f"it does not answer ({error})") from error
        if not line:
            raise SpareLostError("it has ended")
        return line


def has_begun(folder: Path, name: str) -> bool:
    """Return whether a spare container's program had begun, whose files an earlier process has left."""
    return not os.path.lexists(folder / name / "control" / _SOCKET)


def replace_folder(folder: Path, staged: Path) -> None:
    """Move the content of a folder into another one, which then takes its place.

    Raises:
        OSError: the folders are on different disks, or a file has the same name in both.
    """
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):  # noqa: PTH208 - names
            os.rename(folder / name, staged / name)  # noqa: PTH104 - a pair of rename(2)
        shutil.copystat(folder, staged)
        folder.rmdir()
    staged.rename(folder)


def _listen(folder: Path) -> socket.socket:
    # The address of a Unix socket holds 107 bytes, and the path of the folder may be longer.
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"/proc/self/fd/{handle}/{_SOCKET}")
        listener.listen(1)
    finally:
        os.close(handle)
    return listener
