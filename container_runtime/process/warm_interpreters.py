"""Warm interpreters of images: started, asked for forks, and replaced.

A warm interpreter (``warm_interpreter.py``) has imported what the jobs of an image need. A container whose command runs
a module with that interpreter becomes a fork of it, where the fork cannot be told from a new interpreter.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.process.environments import locate_own_environment
from container_runtime.process.supervised import append_log, spawn_supervisor
from container_runtime.warm import warm_interpreter
from container_runtime.warm.warm_interpreter import SPACE_VARIABLE, find_changed_variable

_PROGRAM = Path(warm_interpreter.__file__)
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IDLE_SECONDS = 600.0
# Space for the variables of a container's processes, which /proc shows; the most that Linux allows one variable.
_SPACE_BYTES = 120 * 1024
_READY = b"ready"
# Longer than the imports of the slowest framework take on a busy machine.
_LONGEST_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.2
_NEVER = float("inf")


class WarmOptions(NamedTuple):
    """How the process back end keeps warm interpreters.

    Attributes:
        ahead: names of images whose interpreters start with the back end, and do not end because they are idle.
        idle_seconds: an interpreter that is asked for no fork for so long ends.
    """

    ahead: tuple[str, ...] = ()
    idle_seconds: float = IDLE_SECONDS


class WarmInterpreter:
    """One warm interpreter: a child process that ends when this process does."""

    def __init__(
        self, definition: ImageDefinition, python: Path, variables: Mapping[str, str], folder: Path, idle: float | None
    ) -> None:
        """Start it. It is ready when its imports are done.

        Args:
            definition: the image.
            python: the interpreter.
            variables: its environment variables, but for those that each container has its own values of.
            folder: folder for its files.
            idle: seconds without a fork after which it ends; None for never.
        """
        self._folder = Path(tempfile.mkdtemp(prefix=f"{definition.name}-", dir=folder))
        for name in ("home", "tmp"):
            (self._folder / name).mkdir()
        private = {"HOME": "home", "TMPDIR": "tmp"}
        request = {
            "modules": definition.warm_modules,
            "variables": definition.warm_variables,
            "hook": definition.warm_hook,
            "script_starters": definition.script_starters,
            "idle_seconds": idle,
        }
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)  # noqa: FBT003 - the socket's own signature
        with theirs:
            self.process = subprocess.Popen(
                [python, _PROGRAM, json.dumps(request), str(theirs.fileno())],
                env={
                    **variables,
                    **{name: str(self._folder / place) for name, place in private.items()},
                    SPACE_VARIABLE: "x" * _SPACE_BYTES,
                },
                cwd=self._folder / "home",
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._ready = False
        self._kept_until = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether it has finished its imports."""
        if not self._ready:
            with suppress(BlockingIOError, ConnectionError):
                self._ready = self._socket.recv(len(_READY)) == _READY
        return self._ready

    def keep(self, seconds: float | None, idle: float) -> None:
        """Let it wait for a request for at least some seconds, or, if None, without an end."""
        until = _NEVER if seconds is None else time.monotonic() + seconds
        if until <= self._kept_until:
            return
        self._kept_until = until
        with suppress(OSError):  # it has ended
            self._socket.send(json.dumps(None if seconds is None else max(seconds, idle)).encode())

    def wait(self, seconds: float) -> None:
        """Wait until it is ready, until it has ended, or for some seconds."""
        with suppress(OSError, ValueError):  # closed by another thread
            select.select([self._socket], [], [], seconds)

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None

    @property
    def was_killed(self) -> bool:
        """Whether the process was killed from outside."""
        return self.process.poll() == -signal.SIGKILL

    def describe_end(self) -> str:
        """Return what the ended process has printed, or that it was killed."""
        assert self.process.stdout is not None
        said = self.process.stdout.read().decode(errors="replace").strip()
        return "it was killed during its imports" if self.was_killed else said

    def ask(self, folder: Path, lock: int) -> str | None:
        """Let it fork the supervisor of a container, and wait until the container's process runs.

        Returns:
            The error of the container's start, or an empty string; None if the interpreter has ended instead.
        """
        read_end, write_end = os.pipe()
        try:
            socket.send_fds(self._socket, [os.fsencode(folder)], [lock, write_end])
        except OSError:
            os.close(read_end)
            return None
        finally:
            os.close(write_end)
        with os.fdopen(read_end, "rb") as reader:
            handshake = reader.read().decode(errors="replace")
        if not handshake:
            return None
        return "" if handshake == "started" else handshake.removeprefix("error: ")

    def end(self) -> None:
        """End the process, but none that it has forked, and remove its folder."""
        self._socket.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class WarmInterpreters:
    """The warm interpreters of a back end, at most one for each image.

    Args:
        folder: folder for their files. What it contains is removed.
        cache: folder of the images' environments.
        options: how they are kept. None for no warm interpreters.
    """

    def __init__(self, folder: Path, cache: Path, options: WarmOptions | None) -> None:
        self._folder = folder
        self._cache = cache
        self._options = options
        self._lock = threading.Lock()
        # By the name of an image; others for which the same interpreter would be started share it.
        self._interpreters: dict[str, WarmInterpreter] = {}
        self._names: dict[tuple[object, ...], str] = {}
        # Images whose interpreter could not do its imports; another try would end in the same way.
        self._failed: dict[str, str] = {}
        # Images whose interpreter was killed once during its imports.
        self._killed: set[str] = set()
        self._closed = False
        shutil.rmtree(folder, ignore_errors=True)
        if options is not None:
            # It may be there: an interpreter of a killed emulator still writes its files as long as it imports.
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)

    def start_ahead(self, catalogue: ImageCatalogue) -> None:
        """Start the interpreters of the images that the options name.

        Raises:
            ContainerRuntimeError: there is no image of such a name.
        """
        ahead = () if self._options is None else self._options.ahead
        for definition in catalogue.select(ahead) if ahead else ():
            described = self._describe(definition)
            # A missing environment is built by the first container that needs it.
            if described is not None:
                with self._lock:
                    self._find(definition, *described)

    def keep(self, definition: ImageDefinition, seconds: float | None) -> bool:
        """Keep an image's interpreter for at least some seconds or, if None, until this back end is closed.

        Returns:
            Whether the image can have one.
        """
        described = self._describe(definition)
        if described is None or self._options is None:
            return False
        with self._lock:
            if self._closed or self._find_name(definition, *described) in self._failed:
                return False
            self._find(definition, *described).keep(seconds, self._options.idle_seconds)
        return True

    def has_ready(self, definition: ImageDefinition) -> bool:
        """Return whether the image has an interpreter that has finished its imports."""
        described = self._describe(definition)
        if described is None:
            return False
        with self._lock:
            found = self._interpreters.get(self._find_name(definition, *described))
            return found is not None and found.is_ready and not found.has_ended

    def start_supervisor(
        self,
        definition: ImageDefinition,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        lock: int,
    ) -> tuple[int | None, str]:
        """Start a container's supervisor, as a fork of the image's warm interpreter if that is possible.

        Args:
            definition: the image.
            argv: the container's command.
            environment: the variables that the container has in addition to those of its image.
            folder: the container's folder, with its ``process.json``.
            lock: file descriptor of the container's locked file.

        Returns:
            The pid of the supervisor if it is a child of this process, and the error or an empty string.
        """
        described = self._describe(definition)
        if described is not None and _is_module_start(argv, str(described[0])):
            error, reason = self._fork(definition, *described, environment, folder, lock)
            if error is not None:
                return None, error
            if reason is not None:
                append_log(folder, f"smdebug-emulator: started without a warm interpreter: {reason}")
        return spawn_supervisor(folder, lock)

    def close(self) -> None:
        """End all interpreters. The containers that were forked from them go on."""
        with self._lock:
            self._closed = True
            for interpreter in self._interpreters.values():
                interpreter.end()
            self._interpreters.clear()

    def _fork(
        self,
        definition: ImageDefinition,
        python: Path,
        variables: Mapping[str, str],
        environment: Mapping[str, str],
        folder: Path,
        lock: int,
    ) -> tuple[str | None, str | None]:
        """Start a container's supervisor as a fork, after the imports of the image's first warm interpreter.

        A new interpreter in its place would do the same imports at the same time, and take longer.

        Returns:
            The error of the container's start, or an empty string; None if the container has to start cold. Then the
            second value says why, or is None if this back end is being closed.
        """
        changed = find_changed_variable({**variables, **environment}, variables, definition.warm_variables)
        if changed is not None:
            return None, f"its environment sets {changed}, which is read when modules are imported"
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        name = self._find_name(definition, python, variables)
        while time.monotonic() < deadline:
            with self._lock:
                if self._closed or name in self._failed:
                    return None, self._failed.get(name)
                interpreter = self._find(definition, python, variables)
                if interpreter.is_ready:
                    error = interpreter.ask(folder, lock)
                    if error is not None:
                        return error, None
                    self._interpreters.pop(name).end()
                    self._find(definition, python, variables)
                    return None, "it had ended, or its files have changed"
                if interpreter.has_ended:
                    reason = f"no warm interpreter can be made: {interpreter.describe_end()}"
                    # The kernel may have killed it for want of memory, which the next one may find.
                    if interpreter.was_killed and name not in self._killed:
                        self._killed.add(name)
                    else:
                        self._failed[name] = reason
                    self._interpreters.pop(name).end()
                    return None, reason
            interpreter.wait(_POLL_SECONDS)
        return None, f"its imports have taken {_LONGEST_WAIT_SECONDS:.0f} s"

    def _describe(self, definition: ImageDefinition) -> tuple[Path, dict[str, str]] | None:
        """Return the interpreter of an image and the variables of all its containers; None if it is not built yet."""
        if self._options is None or not definition.warm_modules:
            return None
        own = locate_own_environment(definition, self._cache)
        if own is not None and not own.is_complete:
            return None
        python = Path(sys.executable) if own is None else own.python
        return python, build_image_variables(definition, python.parent)

    def _find(self, definition: ImageDefinition, python: Path, variables: Mapping[str, str]) -> WarmInterpreter:
        name = self._find_name(definition, python, variables)
        found = self._interpreters.get(name)
        if found is not None and found.has_ended and found.is_ready:
            # It has ended because it was idle, or was killed.
            self._interpreters.pop(name).end()
            found = None
        if found is None:
            options = self._options or WarmOptions()
            idle = None if definition.name in options.ahead else options.idle_seconds
            found = WarmInterpreter(definition, python, variables, self._folder, idle)
            self._interpreters[name] = found
        return found

    def _find_name(self, definition: ImageDefinition, python: Path, variables: Mapping[str, str]) -> str:
        """Return the name of the image that stands for all with the same interpreter, such as those of rules."""
        starters = definition.script_starters
        kind = (python, *definition.warm_modules, *definition.warm_variables, definition.warm_hook, *starters)
        return self._names.setdefault((*kind, *sorted(variables.items())), definition.name)


def build_image_variables(definition: ImageDefinition, programs: Path) -> dict[str, str]:
    """Return the variables of every container of an image. ``programs`` is the folder of its interpreter."""
    return {"PATH": f"{programs}:{_SYSTEM_PATH}", "LANG": "C.UTF-8", **definition.environment}


def _is_module_start(argv: Sequence[str], python: str) -> bool:
    """Return whether a command is ``PYTHON [-P] -m MODULE ...``."""
    rest = list(argv[2:] if list(argv[1:2]) == ["-P"] else argv[1:])
    return argv[0] == python and rest[:1] == ["-m"] and len(rest) > 1
