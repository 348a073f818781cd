"""Containers on a Docker engine."""

from __future__ import annotations

import base64
import json
import logging
import os
import stat
import threading
from collections import deque
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import docker
import docker.errors
import docker.utils
import requests.exceptions
from docker.types import LogConfig
from docker.types import Mount as EngineMount

from container_runtime.docker.border import REQUEST_SECONDS, connect, is_read_timeout, raise_for_status, translated
from container_runtime.docker.log import assemble_lines, parse_timestamp, read_frames
from container_runtime.docker.network import (
    create_hosts_network,
    ensure_network,
    find_networks,
    find_place,
    remove_network,
)
from container_runtime.images.catalogue import IMAGE_LABEL, KEY_LABEL, ImageCatalogue, local_name
from container_runtime.runtime import (
    Container,
    ContainerNotFoundError,
    ContainerRuntimeError,
    ContainerStartError,
    EngineUnavailableError,
    Exit,
    ImageNotFoundError,
    LogLine,
    ResolvedImage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from container_runtime.runtime import FoundNetwork, Network
    from container_runtime.spec import ContainerSpec, Mount

INSTANCE_LABEL = "smdebug-emulator.instance"
"""On every container and network of one emulator; its value is the instance id."""

_OWN_LABELS = {INSTANCE_LABEL, IMAGE_LABEL, KEY_LABEL}
_KILL_SECONDS = 30.0
_OVERLAP_FRAMES = 256
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_log = logging.getLogger(__name__)


def missing_images(catalogue: ImageCatalogue) -> list[str]:
    """Names of the images of ours of which the engine has no build, up to date or not.

    Raises:
        EngineUnavailableError: no engine answers.
    """
    api = connect()
    try:
        with translated("list images"):
            return [name for name in map(local_name, catalogue) if not api.images(name)]
    finally:
        api.close()


class DockerEngine:
    """The Docker back end.

    Args:
        instance_id: tells the containers and the network of one emulator from those of another on the same engine;
            the same after a restart, so that they are found again.
        catalogue: which of our images answers to which name; those of ``rules_images/`` when not given.
        user: uid and gid that containers run as; this process's own when not given, so that both sides can read and
            delete what the other wrote to a mount.

    Raises:
        EngineUnavailableError: no engine answers, or it cannot make the network.
    """

    name = "docker"

    def __init__(
        self, instance_id: str, catalogue: ImageCatalogue | None = None, user: tuple[int, int] | None = None
    ) -> None:
        self._instance_id = instance_id
        self._catalogue = catalogue or ImageCatalogue()
        self._uid, self._gid = user or (os.getuid(), os.getgid())
        self._api = connect()
        self._resolved: dict[str, _LocalImage] = {}
        self._resolving = threading.Lock()
        self._network = f"smdebug-emulator-{instance_id}"
        self._gateway = ensure_network(self._api, self._network, {INSTANCE_LABEL: instance_id})

    @property
    def host_address(self) -> str:
        """Gateway of this back end's own network: the host, as its containers see it."""
        return self._gateway

    def resolve_image(self, image: str) -> ResolvedImage:
        """See ``ContainerRuntime``. The first resolution of an unknown image pulls it, which may take minutes."""
        return self._resolve(image).resolved

    def path_in_container(self, mount: Mount, relative: str) -> str:
        """See ``ContainerRuntime``."""
        return str(PurePosixPath(mount.target) / relative)

    def start(self, spec: ContainerSpec) -> str:
        """See ``ContainerRuntime``."""
        image = self._resolve(spec.image)
        with translated(f"start container {spec.name}", start=True):
            try:
                container_id = self._create(spec, image)
            except docker.errors.ImageNotFound:
                # Removed or rebuilt since it was looked up.
                self._resolved.pop(spec.image, None)
                image = self._resolve(spec.image)
                container_id = self._create(spec, image)
            try:
                self._check_program(container_id, spec, image)
                self._api.start(container_id)
            except BaseException:
                self._api.remove_container(container_id, force=True, v=True)
                raise
        return container_id

    def logs(self, container_id: str) -> Iterator[LogLine]:
        """See ``ContainerRuntime``."""
        with translated(f"read the log of container {container_id}"):
            response = self._request_log(container_id, follow=1)
        return self._read_lines(response, container_id)

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        """See ``ContainerRuntime``."""
        with translated(f"wait for container {container_id}"):
            try:
                response = self._api.post(
                    self._url(f"/containers/{container_id}/wait"),
                    timeout=(REQUEST_SECONDS, None if timeout is None else max(timeout, 0.001)),
                )
            except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError) as exc:
                if timeout is not None and is_read_timeout(exc):
                    return None
                raise
            raise_for_status(response)
            state = self._api.inspect_container(container_id)["State"]
        code = int(state["ExitCode"])
        return Exit(code=code, out_of_memory=bool(state["OOMKilled"]) and code != 0)

    def stop(self, container_id: str, grace_seconds: float) -> None:
        """See ``ContainerRuntime``."""
        # Not the engine's own stop: it takes whole seconds only.
        for number, seconds in (("SIGTERM", grace_seconds), ("SIGKILL", _KILL_SECONDS)):
            with translated(f"stop container {container_id}"):
                try:
                    self._api.kill(container_id, number)
                except docker.errors.APIError as exc:
                    if exc.status_code != 409:  # it is not running
                        raise
            if self.wait(container_id, seconds) is not None:
                return
        raise ContainerRuntimeError(
            f"Container {container_id} did not end {_KILL_SECONDS:g} s after SIGKILL; look at `docker inspect`."
        )

    def remove(self, container_id: str) -> None:
        """See ``ContainerRuntime``."""
        with translated(f"remove container {container_id}"):
            try:
                self._api.remove_container(container_id, force=True, v=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError as exc:
                if exc.status_code != 409:  # its removal is under way
                    raise

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        """See ``ContainerRuntime``."""
        wanted = {**labels, INSTANCE_LABEL: self._instance_id}
        with translated("list containers"):
            found = self._api.containers(
                all=True, filters={"label": [f"{key}={value}" for key, value in wanted.items()]}
            )
        return [
            Container(
                id=entry["Id"],
                name=entry["Names"][0].lstrip("/") if entry["Names"] else entry["Id"],
                labels={key: value for key, value in entry["Labels"].items() if key not in _OWN_LABELS},
                running=entry["State"] in {"running", "restarting", "paused"},
            )
            for entry in found
            # Created only: its starter was killed between the two calls, so it never ran.
            if entry["State"] not in {"created", "removing"}
        ]

    def create_network(self, name: str, hosts: Sequence[str], labels: Mapping[str, str]) -> Network:
        """See ``ContainerRuntime``."""
        return create_hosts_network(self._api, name, hosts, {**labels, INSTANCE_LABEL: self._instance_id})

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        """See ``ContainerRuntime``."""
        found = find_networks(self._api, {**labels, INSTANCE_LABEL: self._instance_id})
        return [network for network in found if network.name != self._network]

    def remove_network(self, name: str) -> None:
        """See ``ContainerRuntime``."""
        remove_network(self._api, name)

    def close(self) -> None:
        """Remove the network when no container is on it any more."""
        try:
            with translated("remove the network"):
                try:
                    self._remove_unstarted()
                    self._api.remove_network(self._network)
                except docker.errors.NotFound:
                    pass
                except docker.errors.APIError as exc:
                    if exc.status_code != 403:  # containers are on it
                        raise
        except EngineUnavailableError as exc:
            _log.warning("The network %s stays behind: %s", self._network, exc)
        finally:
            self._api.close()

    def _url(self, path: str) -> str:
        return f"{self._api.base_url}/v{self._api.api_version}{path}"

    def _remove_unstarted(self) -> None:
        filters = {"label": f"{INSTANCE_LABEL}={self._instance_id}", "status": "created"}
        for entry in self._api.containers(all=True, filters=filters):
            self._api.remove_container(entry["Id"], force=True, v=True)

    def _resolve(self, image: str) -> _LocalImage:
        known = self._resolved.get(image)
        if known is not None:
            return known
        with self._resolving, translated(f"resolve image {image}"):
            found = self._resolved.get(image) or self._look_up(image)
            self._resolved[image] = found
            return found

    def _look_up(self, image: str) -> _LocalImage:
        ours = self._catalogue.resolve(image)
        resolved = ResolvedImage(requested=image, local=image)
        try:
            # Whoever has loaded an image of exactly this name wants that one.
            return _LocalImage(resolved, self._inspect_image(image))
        except docker.errors.ImageNotFound:
            pass
        if ours is not None:
            try:
                return _LocalImage(ours, self._inspect_image(ours.local))
            except docker.errors.ImageNotFound as exc:
                raise ImageNotFoundError(
                    f"{image} runs as {ours.local}, which is not built yet: run `make images`."
                ) from exc
        try:
            repository, tag = docker.utils.parse_repository_tag(image)
            self._api.pull(repository, tag=tag or "latest")
            return _LocalImage(resolved, self._inspect_image(image))
        except docker.errors.APIError as exc:
            known = ", ".join(self._catalogue.repositories)
            raise ImageNotFoundError(
                f"No image {image!r} on this machine, and it cannot be pulled ({exc.explanation or exc}). Load it with "
                f"`docker load` or `docker pull`, or use one of the repository names that are built here: {known}."
            ) from exc

    def _inspect_image(self, name: str) -> dict[str, Any]:
        inspected: dict[str, Any] = self._api.inspect_image(name)  # type: ignore[no-untyped-call]
        return inspected

    def _create(self, spec: ContainerSpec, image: _LocalImage) -> str:
        for mount in spec.mounts:
            if not mount.source.is_dir():
                raise ContainerStartError(f"Container {spec.name}: the folder to mount, {mount.source}, is not there.")
        environment = dict(spec.environment)
        if self._uid != 0:
            # The image's password file does not know this user, and its home would be `/`.
            environment = {"HOME": "/tmp", "USER": str(self._uid), **environment}  # noqa: S108 - inside the container
        place = find_place(self._api, spec.network, spec.hostname) if spec.network and spec.hostname else None
        host_config = self._api.create_host_config(
            extra_hosts=place and place.neighbours,
            mounts=[
                EngineMount(mount.target, str(mount.source), type="bind", read_only=mount.read_only)
                for mount in spec.mounts
            ],
            network_mode=spec.network or self._network,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            # A process 1 of its own: it passes SIGTERM on, which Python as process 1 would ignore, and reaps orphans.
            init=True,
            mem_limit=spec.memory_bytes,
            memswap_limit=spec.memory_bytes,
            shm_size=spec.shm_bytes,
            log_config=LogConfig(type="json-file", config={}),
        )
        created = self._api.create_container(
            image.resolved.local,
            command=list(spec.command) or None,
            entrypoint=None if spec.entrypoint is None else list(spec.entrypoint),
            environment=environment,
            labels={**spec.labels, INSTANCE_LABEL: self._instance_id},
            name=spec.name,
            hostname=spec.hostname,
            user=f"{self._uid}:{self._gid}",
            host_config=host_config,
            networking_config=place and {"EndpointsConfig": {spec.network: place.endpoint}},
        )
        return str(created["Id"])

    def _check_program(self, container_id: str, spec: ContainerSpec, image: _LocalImage) -> None:
        """Look for the program in the container's files: with an init, the engine would not notice its absence."""
        entrypoint = image.entrypoint if spec.entrypoint is None else spec.entrypoint
        # An entry point given by the request drops the image's default command, as `docker run --entrypoint` does.
        command = spec.command or (image.command if spec.entrypoint is None else ())
        argv = (*entrypoint, *command)
        if not argv:
            raise ContainerStartError(f"Container {spec.name}: image {spec.image} has no entry point; give a command.")
        path = spec.environment.get("PATH", image.path)
        if (argv[0], path) in image.programs:
            return
        folders = [image.working_folder] if "/" in argv[0] else [folder for folder in path.split(":") if folder]
        if not any(self._is_executable(container_id, str(PurePosixPath(folder) / argv[0])) for folder in folders):
            where = "is no executable file in it" if "/" in argv[0] else f"is no executable file on its PATH={path}"
            raise ContainerStartError(f"Container {spec.name} ({spec.image}): {argv[0]!r} {where}.")
        if "/" not in argv[0]:  # anything with a slash may lie in a mount, which differs from container to container
            image.programs.add((argv[0], path))

    def _is_executable(self, container_id: str, path: str) -> bool:
        response = self._api.head(
            self._url(f"/containers/{container_id}/archive"), params={"path": path}, timeout=REQUEST_SECONDS
        )
        if response.status_code == 404:
            return False
        raise_for_status(response)
        mode = json.loads(base64.b64decode(response.headers["X-Docker-Container-Path-Stat"]))["mode"]
        # Go's file mode: its type bits stand at the top, permissions at the bottom.
        is_folder, is_link = mode & (1 << 31), mode & (1 << 27)
        return bool(is_link) or (not is_folder and bool(mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)))

    def _request_log(self, container_id: str, **parameters: Any) -> Any:
        # APIClient.logs() would mix the pieces of long lines of the two streams, and inspects the container first.
        response = self._api.get(
            self._url(f"/containers/{container_id}/logs"),
            params={"stdout": 1, "stderr": 1, "timestamps": 1, **parameters},
            stream=True,
            timeout=(REQUEST_SECONDS, None),
        )
        raise_for_status(response)
        return response

    def _read_lines(self, response: Any, container_id: str) -> Iterator[LogLine]:
        with translated(f"read the log of container {container_id}"):
            yield from assemble_lines(self._read_all_frames(response, container_id))

    def _read_all_frames(self, response: Any, container_id: str) -> Iterator[tuple[int, bytes]]:
        recent: deque[tuple[int, bytes]] = deque(maxlen=_OVERLAP_FRAMES)
        with response:
            for frame in read_frames(response.raw):
                recent.append(frame)
                yield frame
        # An engine may end a followed log before a container's very last words are in it. Once the container counts
        # as ended they are: read on from a little earlier, and leave out what was seen (its time stamps are unique).
        # The two streams' messages may stand out of order by a few, so "earlier" has a margin on both sides.
        seen = set(recent)
        margin = {"since": parse_timestamp(recent[_OVERLAP_FRAMES // 2][1])} if len(recent) == _OVERLAP_FRAMES else {}
        try:
            self.wait(container_id)
            rest = self._request_log(container_id, follow=0, **margin)
        except (ContainerNotFoundError, docker.errors.NotFound):
            return  # removed while it was read
        with rest:
            yield from (frame for frame in read_frames(rest.raw) if frame not in seen)


class _LocalImage:
    """A resolved image and what its configuration says, kept so that a start need not ask again."""

    def __init__(self, resolved: ResolvedImage, inspected: Mapping[str, Any]) -> None:
        config = inspected.get("Config") or {}
        environment = dict(entry.partition("=")[::2] for entry in config.get("Env") or ())
        self.resolved = resolved
        self.path: str = environment.get("PATH", _DEFAULT_PATH)
        self.entrypoint = tuple(config.get("Entrypoint") or ())
        self.command = tuple(config.get("Cmd") or ())
        self.working_folder: str = config.get("WorkingDir") or "/"
        self.programs: set[tuple[str, str]] = set()
