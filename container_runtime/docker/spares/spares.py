"""Spare containers of the Docker back end: created ahead, given away, replaced.

Which spare containers there are follows from the containers that were asked for: after one of a shape, another of that
shape is kept ready, until none was asked for for a while.
"""

import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import NamedTuple

import docker
import docker.errors
import requests.exceptions

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status
from container_runtime.docker.images.image_files import copy_image_files
from container_runtime.docker.images.local_images import LocalImage
from container_runtime.docker.scratch import build_environment
from container_runtime.docker.spares.given_away import GivenAway
from container_runtime.docker.spares.kept_spares import KeptSpares
from container_runtime.docker.spares.spare import LONGEST_IMPORTS_SECONDS, Spare, SpareLostError
from container_runtime.docker.spares.spare_shape import Shape, find_obstacle, find_program, find_shape, has_spares
from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.runtime import ContainerRuntimeError, Usage
from container_runtime.spec import ContainerSpec

logger = logging.getLogger(__name__)

IDLE_SECONDS = 600.0
# While a job starts, the engine has no time for another container.
_PAUSE_SECONDS = 0.5
# Containers of one shape that start within this time are the hosts of one user's work, such as the rules of a job.
_BURST_SECONDS = 2.0
_MOST_OF_A_SHAPE = 4
# Share of the processors of a spare container, and of any other, while both have work.
_SPARE_SHARES = 2
_SHARES = 1024
# Spare containers that are made at the same time.
_MAKERS = 2
_NEVER = float("inf")
# Longer than a container takes to end after its program.
_END_SECONDS = 10
_KILLED_CODE = 128 + signal.SIGKILL


class SpareOptions(NamedTuple):
    """How the Docker back end keeps spare containers.

    Attributes:
        folder: folder for their files, on the disk of the folders that containers mount.
        memory_bytes: most memory of all spare containers together; 0 for none.
        idle_seconds: the spare containers of a shape are removed this long after the last container of that shape.
        guessed_bytes: memory of a spare container of an image of which there was none yet.
    """

    folder: Path
    memory_bytes: int
    idle_seconds: float = IDLE_SECONDS
    guessed_bytes: int = 400 * 1024**2


class Spares:
    """The spare containers of one back end. Thread-safe.

    Args:
        api: client of the engine.
        options: how they are kept.
        catalogue: this project's images.
        given: records of what was given away.
        labels: labels of every container of this back end.
        user: uid and gid of containers.
        start: starts a new container.
        remove: removes a container.
        read_usage: measures a container.
        open_ports: opens ports in the network of the container of a name; None if containers reach this machine.
        machine_cpus: processors of the engine's machine.
        hands_gpus: whether the engine gives GPUs to containers that ask for them; a container cannot get them later.
    """

    def __init__(
        self,
        api: docker.APIClient,
        options: SpareOptions,
        catalogue: ImageCatalogue,
        *,
        given: GivenAway,
        labels: Mapping[str, str],
        user: tuple[int, int],
        start: Callable[[ContainerSpec], str],
        remove: Callable[[str], None],
        read_usage: Callable[[str], Usage | None],
        open_ports: Callable[[str, Mapping[int, Callable[[socket], None]]], None] | None,
        machine_cpus: int,
        hands_gpus: bool,
    ) -> None:
        self._api = api
        self._options = options
        self._definitions = {definition.name: definition for definition in catalogue}
        self._given = given
        self._labels = dict(labels)
        self._user = user
        self._start = start
        self._remove = remove
        self._read_usage = read_usage
        self._open_ports = open_ports
        self._machine_cpus = machine_cpus
        self._hands_gpus = hands_gpus
        self._kept: dict[Shape, KeptSpares] = {}
        # Images whose modules could not be imported; another try would end in the same way.
        self._failed: set[str] = set()
        # Images of which a spare container was killed once during its imports.
        self._killed: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._not_before = 0.0
        self._makers: set[threading.Thread] = set()
        self._changed = threading.Condition()
        self._handing_over = threading.Lock()
        # Folders that spare containers have taken.
        self._folders: set[Path] = set()
        self._closed = False
        options.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._keeper = threading.Thread(target=self._keep, name="spares", daemon=True)
        self._keeper.start()

    def give(self, spec: ContainerSpec, image: LocalImage) -> tuple[str | None, str | None]:
        """Make a spare container the container of ``spec``.

        Returns:
            The container's id, or None if there is none to give; and why there can be none, or None.

        Raises:
            docker.errors.APIError, requests.exceptions.RequestException: also if the name is in use.
            ContainerStartError: the image's files could not be copied.
        """
        definition = self._find_definition(image)
        if definition is None or not all(mount.source.is_dir() for mount in spec.mounts):
            return None, None
        obstacle = find_obstacle(spec, image, definition, hands_gpus=self._hands_gpus)
        if obstacle is not None:
            return None, obstacle
        shape = self._find_shape(spec, image)
        while (spare := self._take(shape, definition)) is not None:
            try:
                with self._handing_over:
                    obstacle = self._claim_folders(spec) or self._hand_over(spare, spec, image)
            except SpareLostError as error:
                logger.info("The spare container %s is lost: %s", spare.name, error)
                with self._handing_over:
                    self._folders -= {mount.source for mount in spec.mounts}
                self._discard(spare)
                continue
            except BaseException:
                self._discard(spare)
                raise
            if obstacle is None:
                return spare.container_id, None
            self._discard(spare)
            return None, obstacle
        return None, None

    def keep_ready(self, spec: ContainerSpec, image: LocalImage, seconds: float | None) -> bool:
        """Keep a spare container for a container like ``spec``, for some seconds or, if None, without an end.

        Each call without an end asks for one more.

        Returns:
            Whether a spare container can become one like it.
        """
        definition = self._find_definition(image)
        if definition is None or find_obstacle(spec, image, definition, hands_gpus=self._hands_gpus) is not None:
            return False
        shape = self._find_shape(spec, image)
        with self._changed:
            kept = self._find_kept(shape, definition)
            kept.until = max(kept.until, _NEVER if seconds is None else time.monotonic() + seconds)
            if seconds is None:
                kept.asked_ahead += 1
                kept.wanted = min(max(kept.wanted, kept.asked_ahead), _MOST_OF_A_SHAPE)
            self._changed.notify_all()
        return True

    def has_ready(self, spec: ContainerSpec, image: LocalImage) -> bool:
        """Return whether a spare container waits for a container like ``spec``."""
        shape = self._find_shape(spec, image)
        with self._changed:
            return shape in self._kept and bool(self._kept[shape].ready)

    def close(self) -> None:
        """Remove all spare containers."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            makers = list(self._makers)
            ready = [spare for kept in self._kept.values() for spare in kept.ready]
            others = [spare for kept in self._kept.values() for spare in kept.spares if spare not in ready]
        self._keeper.join()
        with ThreadPoolExecutor(max(1, len(ready) + len(others))) as pool:
            ended = [pool.submit(self._discard, spare) for spare in ready]
            # Their threads wait for them; they end with the containers.
            ended += [pool.submit(self._remove, spare.container_id) for spare in others if spare.container_id]
        for each in ended:
            each.result()
        for thread in makers:
            thread.join()

    def _find_definition(self, image: LocalImage) -> ImageDefinition | None:
        name = image.resolved.local.rpartition("/")[2].partition(":")[0]
        definition = self._definitions.get(name)
        return definition if has_spares(image, definition) and image.resolved.local not in self._failed else None

    def _find_shape(self, spec: ContainerSpec, image: LocalImage) -> Shape:
        # The name may mean a newer build by now.
        found = self._api.inspect_image(image.resolved.local)  # type: ignore[no-untyped-call]
        return find_shape(spec, image, found["Id"])

    def _take(self, shape: Shape, definition: ImageDefinition) -> Spare | None:
        """Take a spare container out of the store, and wait for its imports; a new container would do the same ones.

        Those that wait are served in their order.
        """
        now = time.monotonic()
        with self._changed:
            kept = self._find_kept(shape, definition)
            kept.until = max(kept.until, now + self._options.idle_seconds)
            kept.started = [at for at in kept.started if now - at < _BURST_SECONDS] + [now]
            # Whoever starts jobs one after the other, faster than a spare container is made, waits for each of them:
            # then there are as many as are made at a time.
            is_late = kept.is_used and bool(kept.spares) and not kept.ready
            is_first, kept.is_used = not kept.is_used, True
            in_burst = min(len(kept.started), _MOST_OF_A_SHAPE)
            kept.wanted = max(kept.wanted, in_burst, min(kept.wanted + is_late, _MAKERS))
            self._not_before = now + _PAUSE_SECONDS
            self._changed.notify_all()
            if not kept.spares or len(kept.waiting) >= _MOST_OF_A_SHAPE:
                return None
            turn = object()
            kept.waiting.append(turn)
            awaited = None if kept.ready else next((each for each in kept.spares if not each.is_awaited), None)
            if awaited is not None:
                awaited.is_awaited = True
        try:
            if awaited is not None and awaited.container_id:
                with suppress(docker.errors.APIError):  # it may have ended
                    self._update(awaited.container_id, {"CpuShares": _SHARES})
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or not kept.spares or (kept.ready and kept.waiting[0] is turn),
                    timeout=LONGEST_IMPORTS_SECONDS,
                )
                if self._closed or not kept.ready or kept.waiting[0] is not turn:
                    return None
                spare = kept.ready.pop(0)
                kept.spares.remove(spare)
                if is_first:  # nobody has asked for a second one yet
                    self._not_before = time.monotonic() + _PAUSE_SECONDS
                return spare
        finally:
            with self._changed:
                kept.waiting.remove(turn)
                self._changed.notify_all()

    def _claim_folders(self, spec: ContainerSpec) -> str | None:
        """Note that a spare container takes the folders of ``spec``, or return why none may.

        It moves them into its own, which another container that has them does not see.
        """
        folders = {mount.source for mount in spec.mounts}
        self._folders = {each for each in self._folders if each.exists()}
        if shared := sorted(folders & self._folders):
            return f"{shared[0]} is or was another container's"
        self._folders |= folders
        return None

    def _hand_over(self, spare: Spare, spec: ContainerSpec, image: LocalImage) -> str | None:
        """Give a spare container the name, the limits, the folders and the program of ``spec``.

        Returns:
            Why it cannot become that container, or None.
        """
        argv = find_program(image.find_argv(spec), spare.definition)
        assert argv is not None
        if not spare.shares_disk(spec):
            return "its folders are on another disk than the state folder"
        if spec.memory_bytes is not None and spec.memory_bytes < 2 * spare.memory_bytes:
            return "its memory is not much more than the imported modules take"
        self._given.add(spare.container_id, spec.labels)
        self._api.rename(spare.container_id, spec.name)
        self._update(spare.container_id, self._list_limits(spec))
        copy_image_files(self._api, spec, image, image.resolved.local, self._labels)
        if spec.servers and self._open_ports is not None:
            try:
                self._open_ports(spare.name, spec.servers)
            except OSError as error:
                raise SpareLostError(str(error)) from error
        spare.fill(spec, self._user)
        spare.begin(argv, build_environment(spec, image, self._user))
        return None

    def _list_limits(self, spec: ContainerSpec) -> dict[str, int]:
        limits = {"CpuShares": _SHARES, "PidsLimit": spec.max_processes}
        if spec.memory_bytes is not None:
            limits |= {"Memory": spec.memory_bytes, "MemorySwap": spec.memory_bytes}
        if spec.cpus is not None and spec.cpus < self._machine_cpus:
            limits["NanoCpus"] = 10**9 * spec.cpus
        return limits

    def _update(self, container_id: str, limits: Mapping[str, int]) -> None:
        # The client's method does not know all limits.
        url = build_url(self._api, f"/containers/{container_id}/update")
        raise_for_status(self._api.post(url, json=dict(limits), timeout=REQUEST_SECONDS))

    # Making and removing

    def _find_kept(self, shape: Shape, definition: ImageDefinition) -> KeptSpares:
        """Return the spare containers of a shape; those of older builds of its image are removed soon."""
        for other, kept in self._kept.items():
            if other.image == shape.image and other.identity != shape.identity:
                kept.until = 0.0
        return self._kept.setdefault(shape, KeptSpares(definition))

    def _keep(self) -> None:
        """Make and remove spare containers, until this back end is closed."""
        while True:
            with self._changed:
                if self._closed:
                    return
                now = time.monotonic()
                removed = self._drop_expired(now)
                made = self._choose(removed) if now >= self._not_before else None
                if not removed and made is None:
                    self._changed.wait(self._find_pause(now))
                    continue
                if made is not None:
                    shape, kept = made
                    spare = Spare(self._options.folder, shape, kept.definition)
                    spare.is_awaited = len(kept.waiting) > sum(each.is_awaited for each in kept.spares)
                    kept.spares.append(spare)
                    thread = threading.Thread(target=self._make, args=(spare, kept), name=spare.name)
                    self._makers.add(thread)
                    thread.start()
            for each in removed:
                self._discard(each)

    def _drop_expired(self, now: float) -> list[Spare]:
        expired = [shape for shape, kept in self._kept.items() if kept.until <= now]
        return [spare for shape in expired for spare in self._kept.pop(shape).ready]

    def _choose(self, removed: list[Spare]) -> tuple[Shape, KeptSpares] | None:
        """Return the shape of the next spare container, the one asked for last first; None if none is needed.

        Spare containers that have to be removed for it are added to ``removed``.
        """
        if len(self._makers) >= _MAKERS:
            return None
        is_awaited = any(kept.waiting for kept in self._kept.values())
        for shape, kept in sorted(self._kept.items(), key=lambda item: item[1].until, reverse=True):
            if len(kept.spares) >= kept.wanted or shape.image in self._failed:
                continue
            # The imports that a container waits for come first, unless one import after the other is too slow.
            if is_awaited and len(kept.spares) >= len(kept.waiting) and kept.wanted == 1:
                continue
            free_bytes = self._options.memory_bytes - sum(
                each.memory_bytes or self._estimate(each.shape) for some in self._kept.values() for each in some.spares
            )
            for other in sorted(self._kept.values(), key=lambda other: other.until):
                while free_bytes < self._estimate(shape) and other.until < kept.until and other.ready:
                    spare = other.ready.pop()
                    other.spares.remove(spare)
                    other.wanted = max(1, len(other.spares))
                    other.until = other.until if other.spares else 0.0
                    removed.append(spare)
                    free_bytes += spare.memory_bytes
            if free_bytes >= self._estimate(shape):
                return shape, kept
        return None

    def _estimate(self, shape: Shape) -> int:
        return self._sizes.get(shape.image, self._options.guessed_bytes)

    def _find_pause(self, now: float) -> float | None:
        """Return the seconds until there is something to do, if nothing changes; None for never."""
        times = [kept.until for kept in self._kept.values()]
        if any(len(kept.spares) < kept.wanted for kept in self._kept.values()):
            times.append(max(self._not_before, now + _PAUSE_SECONDS))
        soonest = min(times, default=_NEVER)
        return None if soonest == _NEVER else max(0.0, soonest - now)

    def _make(self, spare: Spare, kept: KeptSpares) -> None:
        is_ready = False
        try:
            spare.start(self._start, self._read_usage)
            # What was asked for ahead is soon needed. The next one of the shape is made while a job works.
            is_asked_ahead = kept.until == _NEVER and not kept.started
            self._update(spare.container_id, {"CpuShares": _SHARES if is_asked_ahead else _SPARE_SHARES})
            if spare.is_awaited:
                self._update(spare.container_id, {"CpuShares": _SHARES})
            if not self._closed:
                spare.wait_for_imports()
                usage = self._read_usage(spare.container_id)
                spare.memory_bytes = 0 if usage is None else usage.memory_bytes
                is_ready = usage is not None
        except SpareLostError as error:
            if not self._closed:
                logger.warning("No container of %s is kept ready: %s", spare.shape.image, error)
                # The kernel may have killed it for want of memory, which the next one may find.
                if spare.shape.image in self._killed or not self._was_killed(spare):
                    self._failed.add(spare.shape.image)
                self._killed.add(spare.shape.image)
        except (ContainerRuntimeError, docker.errors.DockerException, requests.exceptions.RequestException) as error:
            logger.info("No container of %s could be made ahead: %s", spare.shape.image, error)
        except OSError as error:
            logger.warning("No container of %s could be made ahead: %s", spare.shape.image, error)
        with self._changed:
            self._makers.discard(threading.current_thread())
            is_kept = is_ready and not self._closed and kept in self._kept.values()
            if is_kept:
                self._sizes[spare.shape.image] = spare.memory_bytes
                kept.ready.append(spare)
            else:
                kept.spares.remove(spare)
                self._not_before = max(self._not_before, time.monotonic() + _PAUSE_SECONDS)
            self._changed.notify_all()
        if not is_kept:
            self._discard(spare)

    def _was_killed(self, spare: Spare) -> bool:
        """Return whether a spare container whose socket has closed was killed from outside."""
        with suppress(docker.errors.DockerException, requests.exceptions.RequestException):
            ended = self._api.wait(spare.container_id, timeout=_END_SECONDS)
            return bool(ended["StatusCode"] == _KILLED_CODE)
        return False

    def _discard(self, spare: Spare) -> None:
        spare.close()
        if spare.container_id:
            # If it was being handed over, the job must not find it.
            self._given.forget(spare.container_id)
            try:
                self._remove(spare.container_id)
            except ContainerRuntimeError as error:
                # The next emulator of the state folder removes it.
                logger.warning("The spare container %s could not be removed: %s", spare.name, error)
