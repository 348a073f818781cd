"""Start of a container as a Swarm service, until its program begins."""

import hashlib
import logging
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import docker
import docker.errors
from docker.types import Mount as EngineMount

from container_runtime.docker.border import translated
from container_runtime.docker.engine import INSTANCE_LABEL
from container_runtime.docker.images.image_files import copy_image_files
from container_runtime.docker.images.local_images import LocalImage, LocalImages
from container_runtime.docker.scratch import find_folders, prepare_folders
from container_runtime.docker.sidecar import SIDECAR_LABEL
from container_runtime.runtime import (
    ContainerRuntimeError,
    ContainerStartError,
    EngineUnavailableError,
    NetworkExhaustedError,
)
from container_runtime.spec import ContainerSpec
from container_runtime.swarm.capacity import Capacity, Wanted, build_promise
from container_runtime.swarm.containers.service import build_service
from container_runtime.swarm.containers.swarm_containers import FILES_LABEL, SwarmContainers, name_own_network
from container_runtime.swarm.containers.tasks import NAME_LABEL, Tasks
from container_runtime.swarm.file_transfer.carried_folders import list_carried, write_label
from container_runtime.swarm.networks import create_overlay, find_hosts, remove_overlay
from container_runtime.swarm.nodes import Nodes, SwarmNode

logger = logging.getLogger(__name__)

_POLL_SECONDS, _NODE_POLL_SECONDS = 0.05, 0.5
# Most time that a node may take to start a container, and that it may be away while it does.
_START_SECONDS, _AWAY_SECONDS = 120.0, 15.0
# Most time that a container without reserved capacity, such as the worker of a function, waits for a node.
_CAPACITY_SECONDS = 120.0
_NO_IMAGE = "No such image"
# States of a task that has started its container.
_RAN = {"running", "complete", "failed", "shutdown"}


class ContainerStarts:
    """Starts the containers of one back end.

    Args:
        api: client of a manager's engine.
        labels: labels of everything that belongs to the emulator.
        images: images of the manager's engine.
        nodes: nodes of the Swarm.
        capacity: capacity of the nodes.
        tasks: tasks of the containers' services.
        containers: containers that were started.
        user: uid and gid that containers run as.
        is_open: whether containers reach everything that their node reaches.
        carry: whether to copy folders to and from the nodes.

    Attributes:
        offered: ports of this machine that every container reaches.
    """

    def __init__(
        self,
        api: docker.APIClient,
        labels: dict[str, str],
        images: LocalImages,
        nodes: Nodes,
        capacity: Capacity,
        tasks: Tasks,
        containers: SwarmContainers,
        user: tuple[int, int],
        *,
        is_open: bool,
        carry: bool,
    ) -> None:
        self._api = api
        self._labels = labels
        self._images = images
        self._nodes = nodes
        self._capacity = capacity
        self._tasks = tasks
        self._containers = containers
        self._user = user
        self._is_open = is_open
        self._carry = carry
        self.offered: set[int] = set()
        # Names of services whose start failed, until they are removed: no manager may answer.
        self._failed: set[str] = set()
        self._clearing = threading.Lock()

    def want(self, spec: ContainerSpec) -> Wanted:
        """Return what a container needs of a node."""
        image = self._images.resolve(spec.image)
        list_nodes = partial(self._nodes.spread, image.id)
        return Wanted(spec.name, build_promise(spec, list_nodes()), list_nodes)

    def clear(self) -> Collection[str]:
        """Remove the containers whose start failed, and return the ids of those that cannot be removed yet.

        The Swarm may run them at any time. Their programs would wait for ever, because nobody lets them begin.
        """
        if self._failed:
            # A name stays in the set until its removal has ended, so no start of this name comes before.
            with self._clearing:
                for name in sorted(self._failed):
                    try:
                        self._containers.remove(name)
                    except ContainerRuntimeError as error:
                        logger.info("%s, whose start failed, cannot be removed yet: %s", name, error)
                    else:
                        self._failed.discard(name)
        return self._failed.copy()

    def start(self, spec: ContainerSpec) -> str:
        """Start a container, and return its id; see ``ContainerRuntime``."""
        try:
            return self._start(spec)
        except ContainerStartError as error:
            if _NO_IMAGE not in str(error):
                raise
        # The image was rebuilt just now, or the task went to a node that joined after the image was copied, or that has
        # removed it: look it up and copy it again, and retry.
        self._nodes.forget(self._images.resolve(spec.image).id)
        self._images.forget(spec.image)
        return self._start(spec)

    def _start(self, spec: ContainerSpec) -> str:
        image = self._images.resolve(spec.image)
        mounts, environment = find_folders(spec, image, self._user)
        nodes = self._nodes.spread(image.id)
        promise = build_promise(spec, nodes)
        name = name_service(self._labels[INSTANCE_LABEL], spec.name)
        if name in self.clear():
            raise EngineUnavailableError(f"What an earlier start of {spec.name} left cannot be removed yet.")
        with translated(f"start container {spec.name}", start=True), _name_conflict(spec.name):
            copy_image_files(self._api, spec, image, image.id, self._labels)
            prepare_folders(spec, self._check_program(spec, image), self._user)
            folders = list_carried(name, mounts, spec.mounts) if self._carry else None
            network, hosts = spec.network, []
            alone = spec.network is None and (spec.isolated or not self._is_open)
            ports = [] if spec.isolated or self._is_open else sorted({*self.offered, *spec.servers})
            if spec.network is not None:
                hosts = find_hosts(self._api, spec.network)
            elif alone:
                network = name_own_network(name)
                if self._containers.is_lost(name):  # remove the network of the lost container with this name
                    remove_overlay(self._api, network)
                create_overlay(self._api, network, [spec.hostname or "alone"], self._labels, isolated=True)
            service = build_service(
                spec,
                image,
                name,
                {
                    **spec.labels,
                    **self._labels,
                    NAME_LABEL: spec.name,
                    SIDECAR_LABEL: " ".join(map(str, ports)),
                    **self._nodes.agents.label,
                    **({FILES_LABEL: write_label(folders)} if folders else {}),
                },
                self._user,
                mounts,
                environment,
                nodes,
                promise,
                network,
                hosts,
                ports,
                folders,
                closed=network is not None and (spec.isolated or not self._is_open),
            )
            self._containers.forget_lost(name)
            try:
                self._create(Wanted(spec.name, promise, partial(self._nodes.spread, image.id)), service)
            except BaseException as error:
                if not _is_conflict(error):
                    self._failed.add(name)  # the Swarm may have it although no manager has said so
                    self.clear()
                elif alone:
                    remove_overlay(self._api, name_own_network(name))
                raise
        try:
            self._await_start(spec, name, nodes)
            self._containers.let_begin(name, folders, ports)
        except BaseException as error:
            self._failed.add(name)  # before the next question, which no manager may answer
            away = not self._containers.answers(name)
            node = self._containers.describe_node(name) if away else ""
            self.clear()
            if away and isinstance(error, ContainerRuntimeError):
                raise EngineUnavailableError(_describe_absence(node, spec)) from error
            raise
        return name

    def _create(self, wanted: Wanted, service: dict[str, Any]) -> None:
        if self._capacity.is_kept(wanted.name) and self._capacity.create(wanted.name, service):
            return
        deadline = time.monotonic() + _CAPACITY_SECONDS

        def check() -> None:
            if time.monotonic() > deadline:
                why = self._capacity.waiting.get(wanted.name)
                raise NetworkExhaustedError(
                    f"No node of the Swarm has started {wanted.name} within {_CAPACITY_SECONDS:g} s: {why}."
                )

        while True:
            with self._capacity.keep([wanted], check):
                if self._capacity.create(wanted.name, service):
                    return

    def _check_program(self, spec: ContainerSpec, image: LocalImage) -> str | None:
        """Check the program and read the environment settings in a container of this engine that never runs.

        A node does not report why a container without its program ends, so the program is checked here. See
        ``LocalImages.read_environment_settings``.
        """
        if image.knows_program(spec) and (not image.is_ours or image.environment_settings is not None):
            return image.environment_settings
        if self._carry:
            # This engine may be on another machine and not see the folders. A program in a folder is not checked.
            mounts = []
        else:
            mounts = [
                EngineMount(each.target, str(each.source), type="bind", read_only=each.read_only)
                for each in spec.mounts
            ]
        host_config = self._api.create_host_config(mounts=mounts, network_mode="none")
        created = self._api.create_container(
            image.id, command=list(spec.command) or ["true"], host_config=host_config, labels=self._labels
        )
        try:
            if not (self._carry and _runs_own(spec, image)):
                self._images.check_program(created["Id"], spec, image)
            return self._images.read_environment_settings(created["Id"], image)
        finally:
            self._api.remove_container(created["Id"], force=True, v=True)

    def _await_start(self, spec: ContainerSpec, name: str, nodes: Collection[SwarmNode]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        ready, next_poll = time.monotonic(), time.monotonic() + _NODE_POLL_SECONDS
        while True:
            tasks = self._tasks.list_tasks(name)
            status: dict[str, Any] = tasks[0]["Status"] if tasks else {"State": "new"}
            container = status.get("ContainerStatus", {}).get("ContainerID")
            if status["State"] in _RAN and container:
                self._tasks.places[name] = (tasks[0]["NodeID"], container)
                if status["State"] == "failed" and self._containers.runs(name) is None:
                    raise ContainerStartError(f"Container {spec.name} ({spec.image}): {status.get('Err')}")
                return
            if status["State"] in ("rejected", "failed", "orphaned"):
                where = next((each.name for each in nodes if each.id == tasks[0].get("NodeID")), "a node")
                raise ContainerStartError(f"Container {spec.name} ({spec.image}) on {where}: {status.get('Err')}")
            if time.monotonic() >= next_poll:
                node = tasks[0].get("NodeID", "") if tasks else ""
                if self._nodes.read_state(node) == "ready":
                    ready = time.monotonic()
                elif time.monotonic() - ready > _AWAY_SECONDS:
                    raise EngineUnavailableError(_describe_absence(self._nodes.describe(node), spec))
                next_poll = time.monotonic() + _NODE_POLL_SECONDS
            if time.monotonic() > deadline:
                raise NetworkExhaustedError(
                    f"No node of the Swarm has started {spec.name} within {_START_SECONDS:g} s: {status['State']}, "
                    f"{status.get('Err') or status.get('Message')}."
                )
            time.sleep(_POLL_SECONDS)


def _describe_absence(node: str, spec: ContainerSpec) -> str:
    return f"The node {node} of the Swarm stopped answering while it started {spec.name}. See `docker node ls`."


def name_service(instance_id: str, container: str) -> str:
    """Return a container's service name. A Swarm allows 63 characters, no dots, and no two dashes at the end."""
    return f"smd-{hashlib.sha256(f'{instance_id} {container}'.encode()).hexdigest()[:32]}"


@contextmanager
def _name_conflict(name: str) -> Iterator[None]:
    """Raise ``ContainerStartError`` if the engine already has a service or a network of this name."""
    try:
        yield
    except docker.errors.APIError as error:
        if not _is_conflict(error):
            raise
        raise ContainerStartError(f"A container named {name} exists already.") from error


def _is_conflict(error: BaseException) -> bool:
    return isinstance(error, docker.errors.APIError) and error.status_code == 409


def _runs_own(spec: ContainerSpec, image: LocalImage) -> bool:
    """Return whether the program of a container is a file in one of its mounts."""
    argv = image.find_argv(spec)
    path = PurePosixPath(image.working_folder, argv[0]) if argv else PurePosixPath("/")
    return any(path.is_relative_to(each.target) for each in spec.mounts)
