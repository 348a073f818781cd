"""Containers on a Docker engine."""

import logging
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from socket import socket
from typing import Any

import docker.errors
from docker.types import LogConfig, Ulimit
from docker.types import Mount as EngineMount

from container_runtime.docker.border import allowed, connect, reconnect, translated
from container_runtime.docker.containers import EngineContainers
from container_runtime.docker.gpus import GPUS_LABEL, EngineGpus
from container_runtime.docker.images.image_files import copy_image_files
from container_runtime.docker.images.images_in_place import ImagesInPlace
from container_runtime.docker.images.local_images import LocalImage, LocalImages
from container_runtime.docker.left_behind import LeftBehind
from container_runtime.docker.log import parse_timestamp
from container_runtime.docker.network import (
    NOBODY,
    NOBODY_OPTIONS,
    create_hosts_network,
    ensure_network,
    find_attachment,
    find_networks,
    remove_network,
)
from container_runtime.docker.scratch import choose_user, find_folders, prepare_folders
from container_runtime.docker.sidecar import LOOPBACK, SIDECAR_LABEL, Sidecars, explain_network, read_sidecar
from container_runtime.docker.spares.given_away import GivenAway
from container_runtime.docker.spares.spare import SPARE_LABEL
from container_runtime.docker.spares.spares import SpareOptions, Spares
from container_runtime.images.catalogue import IMAGE_LABEL, KEY_LABEL, ImageCatalogue
from container_runtime.runtime import (
    STARTED_COLD,
    Container,
    EngineUnavailableError,
    FoundNetwork,
    LogLine,
    Network,
    OneMachine,
    ResolvedImage,
)
from container_runtime.spec import ContainerSpec, Mount

INSTANCE_LABEL = "smdebug-emulator.instance"
"""Label of every container and network of one emulator; its value is the instance id."""

COLD_LABEL = "smdebug-emulator.cold"
"""Label of a container that no spare one could become; its value is the reason."""

_OWN_LABELS = {INSTANCE_LABEL, IMAGE_LABEL, KEY_LABEL, COLD_LABEL, GPUS_LABEL}
_MAX_HOSTNAME = 63
# An engine without permission to raise limits refuses a limit above its own, which is usually that of this process.
OPEN_FILES = min(16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
# The log of a container takes at most two files of this size on the engine's disk.
LOG_OPTIONS = {"max-size": "1g", "max-file": "2"}
logger = logging.getLogger(__name__)


class DockerEngine(OneMachine, EngineContainers):
    """The Docker back end.

    Args:
        instance_id: id that distinguishes the containers and the network of one emulator from those of another on the
            same engine. It stays the same after a restart, so that the emulator finds its containers again.
        catalogue: this project's images by requested name. The default is the images of ``rules_images/``.
        user: uid and gid that containers run as; see ``choose_user``.
        sidecars: folder that only this back end uses, for the sidecars' sockets. Containers then reach only the ports
            that ``offer`` announces. If None, containers are on a bridge network, and reach the internet and the other
            addresses of this machine.
        spares: how spare containers are kept. If None, there never were any of this instance.
        own_images: images of the user's own that run in place of this project's.
        api: a client of the engine, which this back end closes. The default is a new one.

    Raises:
        EngineUnavailableError: no engine answers, or the engine cannot create the network.
    """

    name = "docker"

    def __init__(
        self,
        instance_id: str,
        catalogue: ImageCatalogue | None = None,
        user: tuple[int, int] | None = None,
        sidecars: Path | None = None,
        spares: SpareOptions | None = None,
        own_images: ImagesInPlace | None = None,
        api: docker.APIClient | None = None,
    ) -> None:
        self._instance_id = instance_id
        self._user = choose_user(user)
        api = api or connect()
        super().__init__(api, partial(reconnect, api.api_version), set())
        info = self._api.info()
        self._machine_cpus: int = info["NCPU"]
        self._gpus = EngineGpus(self._api, info)
        catalogue = catalogue or ImageCatalogue()
        self._images = LocalImages(self._api, catalogue, own_images)
        self._network = f"smdebug-emulator-{instance_id}"
        labels = {INSTANCE_LABEL: instance_id}
        self._sidecars = None if sidecars is None else Sidecars(self._api, sidecars, labels)
        self._host_address = ensure_network(self._api, self._network, labels) if sidecars is None else LOOPBACK
        self._left = LeftBehind(self._remove_found)
        self._given = None if spares is None else GivenAway(spares.folder)
        # Until the engine has said that there are none.
        self._may_have_containers = True
        with translated("remove what an earlier process left"):
            self._may_have_containers = bool(self._list())
            if self._may_have_containers:
                # Those that never ran: their names would be in use for the next start.
                self._remove_unstarted()
            if self._given is not None:
                self._given.clear_away(self._list(), self._remove_found)
        self._spares = None
        if spares is not None and self._given is not None and spares.memory_bytes:
            self._spares = Spares(
                self._api,
                spares,
                catalogue,
                given=self._given,
                labels=labels,
                user=self._user,
                start=self._start_new,
                remove=self.remove,
                read_usage=self.read_usage,
                open_ports=None if self._sidecars is None else self._sidecars.open,
                machine_cpus=self._machine_cpus,
                hands_gpus=self.hands_gpus,
            )

    @property
    def host_address(self) -> str:
        """Address of the host for its containers: gateway of this back end's network, or loopback with a sidecar."""
        return self._host_address

    @property
    def hands_gpus(self) -> bool:
        return self._gpus.has_runtime

    def offer(self, port: int, take: Callable[[socket], None]) -> None:
        if self._sidecars is not None:
            with translated(f"offer port {port}"):
                self._sidecars.offer(port, take)
                if self._may_have_containers:
                    self._sidecars.remove_unused()
                    self._sidecars.take_over()

    def resolve_image(self, image: str, say: Callable[[str], None] = lambda _text: None) -> ResolvedImage:
        """See ``ContainerRuntime``. The first resolution of an unknown image pulls it, which may take minutes."""
        return self._images.resolve(image, say).resolved

    def describe_substitution(self, image: str) -> str | None:
        return self._images.describe_substitution(image)

    def has_image(self, image: str, *, exactly: bool = True) -> bool:
        return self._images.has(image, exactly=exactly)

    def path_in_container(self, mount: Mount, relative: str) -> str:
        return mount.find_inside(relative)

    def start(self, spec: ContainerSpec) -> str:
        # A container that could not be removed earlier may have this name.
        self._left.clear()
        try:
            return self._start(spec)
        except EngineUnavailableError:
            self._left.add(spec.name)
            raise

    def keep_ready(self, spec: ContainerSpec, seconds: float | None = None) -> bool:
        if self._spares is None:
            return False
        with translated("keep a spare container"):
            return self._spares.keep_ready(spec, self._images.resolve(spec.image), seconds)

    def is_ready(self, spec: ContainerSpec) -> bool:
        if self._spares is None:
            return False
        with translated("look for a spare container"):
            return self._spares.has_ready(spec, self._images.resolve(spec.image))

    def _start(self, spec: ContainerSpec) -> str:
        if self._spares is None:
            return self._start_new(spec)
        image = self._images.resolve(spec.image)
        with translated(f"start container {spec.name}", start=True):
            container_id, obstacle = self._spares.give(spec, image)
        return container_id or self._start_new(spec, obstacle)

    def _start_new(self, spec: ContainerSpec, obstacle: str | None = None) -> str:
        """Start a new container; ``obstacle`` is why no spare one could become it."""
        if obstacle is not None:
            spec = replace(spec, labels={**spec.labels, COLD_LABEL: obstacle})
        image = self._images.resolve(spec.image)
        with translated(f"start container {spec.name}", start=True):
            try:
                container_id, sidecar = self._create(spec, image)
            except docker.errors.ImageNotFound:
                # The image was removed or rebuilt after the name was resolved.
                self._images.forget(spec.image)
                image = self._images.resolve(spec.image)
                container_id, sidecar = self._create(spec, image)
            try:
                self._images.check_program(container_id, spec, image)
                settings = self._images.read_environment_settings(container_id, image)
                prepare_folders(spec, settings, self._user)
                if self._sidecars is not None and sidecar is not None:
                    self._sidecars.wait(spec.name, sidecar, spec.servers)
                self._api.start(container_id)
            except BaseException:
                self._remove(container_id, spec.name, sidecar)
                raise
        return container_id

    def logs(self, container_id: str) -> Iterator[LogLine]:
        lines = super().logs(container_id)
        with translated(f"inspect container {container_id}"):
            found = self._api.inspect_container(container_id)
        if (obstacle := found["Config"]["Labels"].get(COLD_LABEL)) is not None:
            started_ms = int(float(parse_timestamp(f"{found['State']['StartedAt']} ".encode())) * 1000)
            lines = chain([LogLine(started_ms, f"{STARTED_COLD}: {obstacle}")], lines)
        return lines if self._sidecars is None else explain_network(lines)

    def remove(self, container_id: str) -> None:
        """See ``ContainerRuntime``. If the engine does not answer, the container is removed when it answers again."""
        try:
            self._remove_found(container_id)
        except EngineUnavailableError as exc:
            logger.warning("Container %s is removed when the engine is back: %s", container_id, exc)
            self._left.add(container_id)

    def _remove_found(self, container_id: str) -> None:
        # 409: the engine is already removing it.
        with translated(f"remove container {container_id}"), allowed(409):
            try:
                found = self._api.inspect_container(container_id)
                name = found["Config"]["Labels"].get(SPARE_LABEL) or found["Name"].lstrip("/")
                self._remove(found["Id"], name, read_sidecar(found))
                if self._given is not None:
                    self._given.forget(found["Id"])
            except docker.errors.NotFound:
                # If the engine stopped during a start, it may have created only the sidecar for this name.
                if self._sidecars is not None:
                    self._sidecars.remove_of(container_id)

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        with translated("list containers"):
            found = [(entry, self._find_labels(entry)) for entry in self._list()]
        return [
            Container(
                id=entry["Id"],
                name=entry["Names"][0].lstrip("/") if entry["Names"] else entry["Id"],
                labels={key: value for key, value in own.items() if key not in _OWN_LABELS},
                running=entry["State"] in {"running", "restarting", "paused"},
            )
            for entry, own in found
            # A container that is only created never ran: the emulator was killed between creating and starting it.
            if entry["State"] not in {"created", "removing"}
            and SIDECAR_LABEL not in entry["Labels"]
            # A spare one has no labels of a job.
            and own is not None
            and labels.items() <= own.items()
        ]

    def _list(self) -> list[dict[str, Any]]:
        # A start asks several times, mostly before there is any container; each question takes milliseconds.
        if not self._may_have_containers:
            return []
        filters = {"label": f"{INSTANCE_LABEL}={self._instance_id}"}
        found: list[dict[str, Any]] = self._api.containers(all=True, filters=filters)
        return found

    def _find_labels(self, container: Mapping[str, Any]) -> Mapping[str, str] | None:
        labels: Mapping[str, str] = container["Labels"]
        return labels if self._given is None else self._given.find_labels(container)

    def create_network(
        self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False
    ) -> Network:
        labels = {**labels, INSTANCE_LABEL: self._instance_id}
        return create_hosts_network(self._api, name, hosts, labels, isolated=isolated or self._sidecars is not None)

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        found = find_networks(self._api, {**labels, INSTANCE_LABEL: self._instance_id})
        return [network for network in found if network.name != self._network]

    def remove_network(self, name: str) -> None:
        remove_network(self._api, name)

    def close(self) -> None:
        """Remove the network if it has no containers, and the sidecars that have no container."""
        if self._spares is not None:
            self._spares.close()
        self._left.close()
        try:
            # 403: the network still has containers.
            with translated("remove the network"), suppress(docker.errors.NotFound), allowed(403):
                self._remove_unstarted()
                if self._sidecars is not None:
                    self._sidecars.close()
                    return
                self._api.remove_network(self._network)
        except EngineUnavailableError as exc:
            logger.warning("The network %s stays behind: %s", self._network, exc)
        finally:
            self._api.close()

    def _remove(self, container_id: str, name: str, sidecar: str | None) -> None:
        try:
            self._api.remove_container(container_id, force=True, v=True)
        finally:
            if self._sidecars is not None and sidecar is not None:
                try:
                    self._sidecars.remove(sidecar.partition(":")[2], name)
                except BaseException:
                    # Add the name, not the id: with the container removed, nothing leads from its id to the sidecar.
                    self._left.add(name)
                    raise

    def _remove_unstarted(self) -> None:
        filters = {"label": f"{INSTANCE_LABEL}={self._instance_id}", "status": "created"}
        with translated("remove containers that never ran"):
            for entry in self._api.containers(all=True, filters=filters):
                self._api.remove_container(entry["Id"], force=True, v=True)

    def _create(self, spec: ContainerSpec, image: LocalImage) -> tuple[str, str | None]:
        """Create a container, after its sidecar if it needs one.

        Returns:
            The id of the container, and the network mode that names its sidecar, or None without a sidecar.
        """
        self._may_have_containers = True
        folders = find_folders(spec, image, self._user)
        copy_image_files(self._api, spec, image, image.resolved.local, {INSTANCE_LABEL: self._instance_id})
        attachment = find_attachment(self._api, spec.network, spec.hostname) if spec.network and spec.hostname else None
        # A container without a network cannot resolve its own name, so it gets an entry in /etc/hosts.
        alone = self._sidecars is not None or spec.isolated
        hostname = spec.hostname or (spec.name[:_MAX_HOSTNAME].rstrip("-._") if alone else None)
        network = {
            "network_mode": spec.network or ("none" if alone else self._network),
            "extra_hosts": attachment.neighbours if attachment else {hostname: LOOPBACK} if alone else None,
            "dns": [NOBODY] if attachment and alone else None,
            "dns_opt": list(NOBODY_OPTIONS) if attachment and alone else None,
            "hostname": hostname,
            "networking_config": attachment and {"EndpointsConfig": {spec.network: attachment.endpoint}},
        }
        if self._sidecars is None or spec.isolated:
            return self._create_container(spec, image, folders, network), None
        sidecar = self._sidecars.create(spec.name, spec.servers, **network)
        try:
            network = {**dict.fromkeys(network), "network_mode": sidecar}
            return self._create_container(spec, image, folders, network), sidecar
        except BaseException:
            self._sidecars.remove(sidecar.partition(":")[2], spec.name)
            raise

    def _create_container(
        self,
        spec: ContainerSpec,
        image: LocalImage,
        folders: tuple[list[Mount], dict[str, str]],
        network: dict[str, Any],
    ) -> str:
        mounts, environment = folders
        with self._gpus.choose(spec.gpus) as (devices, labels):
            host_config = self._api.create_host_config(
                extra_hosts=network["extra_hosts"],
                dns=network["dns"],
                dns_opt=network["dns_opt"],
                mounts=[
                    EngineMount(mount.target, str(mount.source), type="bind", read_only=mount.read_only)
                    for mount in mounts
                ],
                network_mode=network["network_mode"],
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                # The init process forwards SIGTERM, which Python would ignore as process 1, and reaps orphans.
                init=True,
                read_only=spec.read_only_root,
                # The engine refuses a limit above the CPUs of its machine.
                nano_cpus=10**9 * spec.cpus if spec.cpus is not None and spec.cpus < self._machine_cpus else None,
                mem_limit=spec.memory_bytes,
                memswap_limit=spec.memory_bytes,
                shm_size=spec.shm_bytes,
                pids_limit=spec.max_processes,
                device_requests=devices,
                # A core file would be as large as the process, in a folder that is uploaded.
                ulimits=[Ulimit(name="core", soft=0, hard=0), Ulimit(name="nofile", soft=OPEN_FILES, hard=OPEN_FILES)],
                log_config=LogConfig(type="json-file", config=LOG_OPTIONS),
            )
            created = self._api.create_container(
                image.resolved.local,
                command=list(spec.command) or None,
                entrypoint=None if spec.entrypoint is None else list(spec.entrypoint),
                environment=environment,
                labels={**spec.labels, **labels, INSTANCE_LABEL: self._instance_id},
                name=spec.name,
                hostname=network["hostname"],
                user="{}:{}".format(*self._user),
                host_config=host_config,
                networking_config=network["networking_config"],
            )
        return str(created["Id"])
