"""Containers on a Docker Swarm, each the only task of a service.

The Swarm never restarts the task of such a service.
"""

from __future__ import annotations

import hashlib
import logging
import time
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

import docker
import docker.errors
from docker.types import Mount as EngineMount

from container_runtime.docker.border import connect, translated
from container_runtime.docker.containers import EngineContainers
from container_runtime.docker.engine import INSTANCE_LABEL
from container_runtime.docker.image_files import copy_image_files
from container_runtime.docker.local_images import LocalImages
from container_runtime.docker.scratch import choose_user, find_folders, prepare_folders
from container_runtime.docker.sidecar import LOOPBACK, SIDECAR_LABEL, explain_network
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.runtime import (
    Container,
    ContainerNotFoundError,
    ContainerRuntimeError,
    ContainerStartError,
    EngineUnavailableError,
    NetworkExhaustedError,
)
from container_runtime.swarm.capacity import Capacity, Wanted, build_promise
from container_runtime.swarm.carried_folders import list_carried, read_label, write_label
from container_runtime.swarm.carriers import Carriers
from container_runtime.swarm.networks import (
    create_overlay,
    find_hosts,
    find_overlays,
    remove_overlay,
)
from container_runtime.swarm.nodes import Nodes
from container_runtime.swarm.proxies import Proxies
from container_runtime.swarm.service import build_service
from container_runtime.swarm.tasks import NAME_LABEL, Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from socket import socket

    from container_runtime.docker.local_images import LocalImage
    from container_runtime.meter import Meter
    from container_runtime.runtime import Exit, FoundNetwork, LogLine, Network, ResolvedImage, Usage
    from container_runtime.spec import ContainerSpec, Mount
    from container_runtime.swarm.carried_folders import Carried
    from container_runtime.swarm.nodes import SwarmNode

logger = logging.getLogger(__name__)

FILES_LABEL = "smdebug-emulator.files"
"""Label of a service whose folders are copied to and from its node; see ``Carried``."""
_ALONE = "-alone"
AGENT_IMAGE = "sagemaker-debugger-rules"
"""Image of the nodes' agents. It contains Python, and every installation has it."""
_POLL_SECONDS = 0.02
# Most time that a node may take to start a container.
_START_SECONDS = 120.0
# Most time that a container without reserved capacity, such as the worker of a function, waits for a node.
_CAPACITY_SECONDS = 120.0
# A node that does not answer for this time counts as lost. The first applies if the Swarm reports the node as down.
_DOWN_SECONDS, _SILENT_SECONDS = 15.0, 120.0
_NODE_POLL_SECONDS = 0.5
_NO_IMAGE = "No such image"
_RAN = {"running", "complete", "failed", "shutdown"}


class SwarmEngine:
    """The Swarm back end. A container's id is its service's name.

    Args:
        instance_id: as for ``DockerEngine``.
        folder: folder for the key that identifies the emulator and its agents to each other.
        catalogue: this project's images by requested name.
        user: uid and gid that containers run as; see ``choose_user``.
        allow_internet: whether containers can reach the internet, and so everything else that their node reaches. If
            not, they reach only the ports that ``offer`` announces, at their own loopback interface.
        address: IP address of this machine for containers that can reach the internet. The default is the address of
            the manager's node.
        carry: whether to copy folders to and from the nodes. If not, the nodes have to share the folders of this
            machine.
        registry: prefix of the image names that nodes pull. By default they get images from the manager.
        lost: see ``Carriers``.

    Raises:
        EngineUnavailableError: no engine answers, or the engine is not a Swarm manager.
        ContainerRuntimeError: no node accepts tasks.
    """

    name = "swarm"

    def __init__(
        self,
        instance_id: str,
        folder: Path,
        catalogue: ImageCatalogue | None = None,
        user: tuple[int, int] | None = None,
        *,
        allow_internet: bool = False,
        address: str | None = None,
        registry: str | None = None,
        carry: bool = False,
        lost: Path | None = None,
    ) -> None:
        self._instance_id = instance_id
        self._user = choose_user(user)
        self._proxies: Proxies | None = None
        self._carry = carry
        self._offered: set[int] = set()
        # Containers that were lost with their node, and why. They stay lost even if the node comes back.
        self._lost: dict[str, str] = {}
        self._api = connect()
        self._tasks = Tasks(self._api, self._own_labels)
        try:
            own = find_address(self._api)
            self._host_address = (address or own) if allow_internet else LOOPBACK
            self._images = LocalImages(self._api, catalogue or ImageCatalogue())
            image = self._images.resolve(AGENT_IMAGE).id
            self._nodes = Nodes(self._api, folder, registry)
            self._capacity = Capacity(self._api)
            self._nodes.start(image)
            self._carriers = Carriers(self._nodes.find_agent, self._nodes.key, self._user, lost, kill=self._kill)
            # Left by an emulator that was killed during a start. Their names would be in use for the next start.
            self._remove_unstarted()
            self._reattach_carriers()
        except BaseException:
            self._api.close()
            raise
        self._proxies = None if allow_internet else Proxies(self._nodes.find_agent, self._nodes.key)

    @property
    def host_address(self) -> str:
        """Address of this machine for its nodes, or with proxies the loopback address, which they forward to here."""
        return self._host_address

    def offer(self, port: int, take: Callable[[socket], None]) -> None:  # noqa: ARG002 - no container needs one
        """See ``ContainerRuntime``. Containers reach the server's own socket, so ``take`` is never called."""
        self._offered.add(port)
        if self._proxies is None:
            return
        for service in self._tasks.list_services({}):
            name, labels = service["Spec"]["Name"], service["Spec"]["Labels"]
            ports = [each for each in map(int, labels.get(SIDECAR_LABEL, "").split()) if each in self._offered]
            if port in ports:
                # Do not wait: the proxy of a container whose node does not answer opens when the node answers again.
                self._open_proxy(name, ports, wait=False)

    def count_nodes(self) -> int:
        """Return the number of nodes that accept tasks now."""
        return len(self._nodes.list_ready())

    def describe(self) -> dict[str, Any]:
        """Return the nodes, this emulator's containers on each, and the containers that wait for a node, with why."""
        running: dict[str, list[str]] = {}
        waiting = [{"container": name, "why": why} for name, why in self._capacity.waiting.copy().items()]
        for service in self._tasks.list_services({}):
            name = service["Spec"]["Labels"][NAME_LABEL]
            for task in self._tasks.list_tasks(service["Spec"]["Name"]):
                status = task["Status"]
                if status["State"] == "running":
                    running.setdefault(task["NodeID"], []).append(name)
                elif status["State"] not in _RAN:
                    waiting.append({"container": name, "why": status.get("Err") or status.get("Message", "")})
        nodes = [{**each, "containers": sorted(running.get(each["id"], []))} for each in self._nodes.describe_all()]
        return {"nodes": nodes, "waiting": sorted(waiting, key=itemgetter("container"))}

    def resolve_image(self, image: str, say: Callable[[str], None] = lambda _text: None) -> ResolvedImage:
        """See ``ContainerRuntime``. The image is copied to the nodes as well."""
        found = self._images.resolve(image, say)
        self._nodes.spread(found.id, say)
        return found.resolved

    def describe_substitution(self, image: str) -> str | None:
        """See ``ContainerRuntime``."""
        return self._images.describe_substitution(image)

    def path_in_container(self, mount: Mount, relative: str) -> str:
        """See ``ContainerRuntime``."""
        return mount.find_inside(relative)

    def reserve_capacity(
        self, specs: Sequence[ContainerSpec], check: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """See ``ContainerRuntime``."""
        return self._capacity.keep([self._want(each) for each in specs], check)

    def _want(self, spec: ContainerSpec) -> Wanted:
        image = self._images.resolve(spec.image)
        list_nodes = partial(self._nodes.spread, image.id)
        return Wanted(spec.name, build_promise(spec, list_nodes()), list_nodes)

    def start(self, spec: ContainerSpec) -> str:
        """See ``ContainerRuntime``."""
        try:
            return self._start(spec)
        except ContainerStartError as error:
            if _NO_IMAGE not in str(error):
                raise
        # The task went to a node that joined after the image was copied to the nodes: copy it again and retry.
        return self._start(spec)

    def _start(self, spec: ContainerSpec) -> str:
        image = self._images.resolve(spec.image)
        mounts, environment = find_folders(spec, image, self._user)
        nodes = self._nodes.spread(image.id)
        promise = build_promise(spec, nodes)
        name = self._name_service(spec.name)
        with translated(f"start container {spec.name}", start=True), _telling_of_names(spec.name):
            copy_image_files(self._api, spec, image, image.id, self._own_labels)
            prepare_folders(spec, self._look_into(spec, image), self._user)
            folders = list_carried(name, mounts, spec.mounts) if self._carry else None
            network, hosts = spec.network, []
            alone = spec.network is None and (spec.isolated or self._proxies is not None)
            ports = [] if spec.isolated or self._proxies is None else sorted({*self._offered, *spec.servers})
            if spec.network is not None:
                hosts = find_hosts(self._api, spec.network)
            elif alone:
                network = f"{name}{_ALONE}"
                if name in self._lost:  # remove the network of the lost container with this name
                    remove_overlay(self._api, network)
                create_overlay(self._api, network, [spec.hostname or "alone"], self._own_labels, isolated=True)
            service = build_service(
                spec,
                image,
                name,
                {
                    **spec.labels,
                    **self._own_labels,
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
                closed=network is not None and (spec.isolated or self._proxies is not None),
            )
            if self._lost.pop(name, None):
                self._tasks.places.pop(name, None)
            try:
                self._create(Wanted(spec.name, promise, partial(self._nodes.spread, image.id)), service)
            except BaseException:
                if alone:
                    remove_overlay(self._api, f"{name}{_ALONE}")
                raise
        try:
            self._await_start(spec, name, nodes)
            self._let_begin(name, folders, ports)
        except BaseException as error:
            place = self._tasks.places.get(name)
            away = place is not None and not self._nodes.answers(place[0])
            self.remove(name)
            if place is not None and away and isinstance(error, ContainerRuntimeError):
                node = self._nodes.describe(place[0])
                raise EngineUnavailableError(
                    f"The node {node} of the Swarm went away while it began {spec.name}."
                ) from error
            raise
        return name

    def _create(self, wanted: Wanted, service: dict[str, Any]) -> None:
        """Create the service of a container on a node that has enough capacity."""
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

    def logs(self, container_id: str) -> Iterator[LogLine]:
        """See ``ContainerRuntime``. When a node answers again, the log continues where it was interrupted."""
        containers, identity = self._locate(container_id)
        lines = self._resume(container_id, containers.logs(identity))
        return lines if self._proxies is None else explain_network(lines)

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        """See ``ContainerRuntime``.

        Raises:
            EngineUnavailableError: also if the container was lost with its node; ``find`` no longer returns it.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        away = False
        while True:
            try:
                containers, identity = self._locate(container_id)
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                ended = containers.wait(identity, left)
                if ended is not None:
                    self._carriers.finish(container_id)
            except EngineUnavailableError as error:
                away = True
                if not self._await_node(container_id, error, deadline):
                    return None
                continue
            if away and ended is not None and ended.code:
                self._lose(container_id, "came back without it")
            return ended

    def read_usage(self, container_id: str) -> Usage | None:
        """See ``ContainerRuntime``."""
        containers, identity = self._locate(container_id)
        return containers.read_usage(identity)

    def open_meter(self, container_id: str) -> Meter | None:
        """See ``ContainerRuntime``."""
        pid = self._find_pid(container_id)
        return None if pid is None else self._nodes.open_meter(self._tasks.places[container_id][0], pid)

    def stop(self, container_id: str, grace_seconds: float) -> None:
        """See ``ContainerRuntime``. A lost container is not stopped here; it ends because its service was removed."""
        if container_id not in self._lost:
            containers, identity = self._locate(container_id)
            containers.stop(identity, grace_seconds)

    def _kill(self, container_id: str) -> None:
        with suppress(ContainerNotFoundError, EngineUnavailableError):  # the container has ended, or will
            self.stop(container_id, 0.0)

    def remove(self, container_id: str) -> None:
        """See ``ContainerRuntime``. The service is removed first; a node that does not answer ends its task later."""
        with suppress(ContainerNotFoundError):
            self._tasks.locate(container_id)
        if self._proxies is not None:
            self._proxies.close(container_id)
        self._carriers.close(container_id)
        found = self._tasks.places.get(container_id)
        answers = found is not None and self._nodes.answers(found[0])
        if container_id not in self._lost and not answers:
            self._tasks.end(container_id)
        self._tasks.remove_service(container_id)
        # The Swarm does not remove the containers of ended tasks, and gives those of other tasks time to end.
        place = self._tasks.places.pop(container_id, None)
        if (
            place is not None
            and container_id not in self._lost
            and not (answers and self._remove_task(container_id, *place))
        ):
            # The Swarm ends the container when the node is back.
            self._lost[container_id] = f"The node {place[0]} of the Swarm does not answer."
        with translated(f"remove the network of container {container_id}"):
            remove_overlay(self._api, f"{container_id}{_ALONE}")

    def _remove_task(self, container_id: str, node: str, identity: str) -> bool:
        """Remove a task's container with its volumes. Return False if its node does not answer."""
        try:
            with translated(f"remove container {identity}"):
                try:
                    self._nodes.connect(node).remove_container(identity, force=True, v=True)
                except docker.errors.APIError as exc:
                    if exc.status_code not in (404, 409):  # it was removed, or is being removed
                        raise
            self._remove_volumes(node, container_id)
        except EngineUnavailableError:
            return False
        return True

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        """See ``ContainerRuntime``."""
        found = []
        for service in self._tasks.list_services(labels):
            own = dict(service["Spec"]["Labels"])
            name = own.pop(NAME_LABEL)
            own.pop(FILES_LABEL, None)
            for key in (INSTANCE_LABEL, SIDECAR_LABEL, *self._nodes.agents.label):
                own.pop(key)
            if service["Spec"]["Name"] in self._lost:
                continue
            if (running := self._runs(service["Spec"]["Name"])) is not None:
                found.append(Container(service["Spec"]["Name"], name, own, running))
        return found

    def create_network(
        self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False
    ) -> Network:
        """See ``ContainerRuntime``."""
        with translated(f"make the network {name}"):
            return create_overlay(
                self._api,
                name,
                hosts,
                {**labels, **self._own_labels, NAME_LABEL: name},
                isolated=isolated or self._proxies is not None,
            )

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        """See ``ContainerRuntime``."""
        with translated("list networks"):
            # Networks without this label belong to single containers, and are removed with them.
            return [
                each
                for each in find_overlays(self._api, {**labels, **self._own_labels})
                if each.labels.get(NAME_LABEL) == each.name
            ]

    def remove_network(self, name: str) -> None:
        """See ``ContainerRuntime``."""
        with translated(f"remove the network {name}"):
            remove_overlay(self._api, name)

    def close(self) -> None:
        """Remove the agents if no container needs them any more."""
        try:
            self._remove_unstarted()
            with translated("remove the agents of the Swarm's nodes"):
                self._nodes.close()
        except ContainerRuntimeError as exc:
            logger.warning("Agents stay on the nodes of the Swarm: %s", exc)
        finally:
            if self._proxies is not None:
                self._proxies.shut()
            self._carriers.shut()
            self._api.close()

    @property
    def _own_labels(self) -> dict[str, str]:
        return {INSTANCE_LABEL: self._instance_id}

    def _name_service(self, name: str) -> str:
        """Return a container's service name. A Swarm allows 63 characters, no dots, and no two dashes at the end."""
        return f"smd-{hashlib.sha256(f'{self._instance_id} {name}'.encode()).hexdigest()[:32]}"

    def _locate(self, container_id: str) -> tuple[EngineContainers, str]:
        """Return the engine that runs a container, and the container's id there.

        Raises:
            ContainerNotFoundError: the container does not exist.
            EngineUnavailableError: its node does not answer.
        """
        node, identity = self._tasks.locate(container_id)
        return EngineContainers(self._nodes.connect(node)), identity

    def _resume(self, container_id: str, lines: Iterator[LogLine]) -> Iterator[LogLine]:
        """Yield a log. After each outage of its node, read it again and skip the lines already read."""
        read = 0
        while True:
            try:
                for line in lines:
                    read += 1
                    yield line
                return
            except EngineUnavailableError as error:
                self._await_node(container_id, error)
            containers, identity = self._locate(container_id)
            lines = islice(containers.logs(identity), read, None)

    def _await_node(self, container_id: str, error: EngineUnavailableError, deadline: float | None = None) -> bool:
        """Wait until a container's node answers again. Return False if the deadline passed first.

        Raises:
            EngineUnavailableError: the node is lost, or the manager does not answer.
        """
        if container_id not in self._tasks.places:
            raise error
        node, began = self._tasks.places[container_id][0], time.monotonic()
        logger.info("The node %s of the Swarm is away: %s", node, error)
        while True:
            if container_id in self._lost:
                raise EngineUnavailableError(self._lost[container_id])
            # A manager that does not answer raises the same error as any engine.
            state = self._nodes.read_state(node)
            if state == "ready" and self._nodes.answers(node):
                return True
            seconds = time.monotonic() - began
            if state in ("drain", "gone"):
                self._lose(container_id, "was drained" if state == "drain" else "left the Swarm")
            if seconds > (_DOWN_SECONDS if state == "down" else _SILENT_SECONDS):
                self._lose(container_id, "is down" if state == "down" else "does not answer this machine")
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(_NODE_POLL_SECONDS)

    def _lose(self, container_id: str, why: str) -> NoReturn:
        """Mark a container as lost.

        Its service is removed before another container replaces it, so that its node ends it, at once or when the node
        is back. Until then its output has no effect: its proxy is closed, and its folder is removed.

        Raises:
            EngineUnavailableError: always; the message names the node.
        """
        name = self._nodes.describe(self._tasks.places[container_id][0])
        if self._proxies is not None:
            self._proxies.close(container_id)
        kept = self._carriers.lose(container_id)
        self._tasks.end(container_id)
        self._tasks.remove_service(container_id)
        self._lost[container_id] = f"The node {name} of the Swarm {why}, and what it ran is lost.{kept}"
        raise EngineUnavailableError(self._lost[container_id])

    def _let_begin(self, name: str, folders: Sequence[Carried] | None, ports: Sequence[int]) -> None:
        """Copy a container's files and open its proxy, which its program waits for."""
        if folders:
            self._sweep(self._tasks.places[name][0])
            self._carriers.fill(name, self._tasks.places[name][0], folders)
        if ports:
            self._open_proxy(name, ports)

    def _reattach_carriers(self) -> None:
        """Continue to copy the folders of containers that an earlier process has started."""
        for service in self._tasks.list_services({}):
            name, label = service["Spec"]["Name"], service["Spec"]["Labels"].get(FILES_LABEL)
            if label:
                self._carriers.reattach(name, self._tasks.locate(name)[0], read_label(label))

    def _sweep(self, node: str) -> None:
        """Remove the volumes of lost containers from a node that is back and has ended them."""
        api = self._nodes.connect(node)
        with translated("look for volumes that are left on a node"):
            left = api.volumes(filters={"label": [f"{INSTANCE_LABEL}={self._instance_id}"]})["Volumes"] or []
            names = {each["Spec"]["Name"] for each in self._tasks.list_services({})}  # a service precedes its volumes
            ended = [each["Name"] for each in left if each["Name"].rpartition("-")[0] not in names]
            for volume in ended:
                with suppress(docker.errors.APIError):  # its container has not ended yet
                    api.remove_volume(volume)

    def _remove_volumes(self, node: str, container_id: str) -> None:
        api = self._nodes.connect(node)
        with translated(f"remove the volumes of container {container_id}"):
            left = api.volumes(filters={"name": f"{container_id}-"})["Volumes"] or []
            for each in left:
                try:
                    api.remove_volume(each["Name"])
                except docker.errors.APIError as exc:
                    if exc.status_code not in (404, 409):  # already removed, or in use and removed later
                        raise

    def _open_proxy(self, name: str, ports: Sequence[int], *, wait: bool = True) -> None:
        assert self._proxies is not None
        if (pid := self._find_pid(name)) is not None:
            self._proxies.open(name, self._tasks.places[name][0], pid, ports, wait=wait)

    def _find_pid(self, name: str) -> int | None:
        """Return the pid of a container's first process on its node; None if it has ended."""
        node, identity = self._tasks.locate(name)
        with translated(f"look at container {name}"):
            state = self._nodes.connect(node).inspect_container(identity)["State"]
        return int(state["Pid"]) or None

    def _remove_unstarted(self) -> None:
        """Remove containers whose start was interrupted before their program began. They could begin at any time."""
        services = {each["Spec"]["Name"]: each for each in self._tasks.list_services({})}
        names = services.keys()
        for name in sorted(names):
            if self._runs(name) is None or not self._was_filled(name, services[name]["Spec"]["Labels"]):
                self.remove(name)
        with translated("remove networks of containers that never ran"):
            for network in find_overlays(self._api, self._own_labels):
                if network.name.endswith(_ALONE) and network.name.removesuffix(_ALONE) not in names:
                    remove_overlay(self._api, network.name)

    def _was_filled(self, name: str, labels: Mapping[str, str]) -> bool:
        if FILES_LABEL not in labels:
            return True
        return self._carriers.was_filled(name, self._tasks.locate(name)[0], read_label(labels[FILES_LABEL]))

    def _runs(self, name: str) -> bool | None:
        """Return whether a container runs; None if it never ran. It counts as running if its node does not answer."""
        try:
            node, identity = self._tasks.locate(name)
            with translated(f"look at container {name}"):
                state = self._nodes.connect(node).inspect_container(identity)["State"]
        except ContainerNotFoundError:
            return False if name in self._tasks.places else None
        except EngineUnavailableError:
            return True
        return bool(state["Running"]) if _has_run(state) else None

    def _look_into(self, spec: ContainerSpec, image: LocalImage) -> str | None:
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
            image.id, command=list(spec.command) or ["true"], host_config=host_config, labels=self._own_labels
        )
        try:
            if not (self._carry and _runs_own(spec, image)):
                self._images.check_program(created["Id"], spec, image)
            return self._images.read_environment_settings(created["Id"], image)
        finally:
            self._api.remove_container(created["Id"], force=True, v=True)

    def _await_start(self, spec: ContainerSpec, name: str, nodes: Collection[SwarmNode]) -> None:
        """Wait until the task runs or has ended."""
        deadline = time.monotonic() + _START_SECONDS
        ready, next_poll = time.monotonic(), time.monotonic() + _NODE_POLL_SECONDS
        while True:
            tasks = self._tasks.list_tasks(name)
            status: dict[str, Any] = tasks[0]["Status"] if tasks else {"State": "new"}
            container = status.get("ContainerStatus", {}).get("ContainerID")
            if status["State"] in _RAN and container:
                self._tasks.places[name] = (tasks[0]["NodeID"], container)
                if status["State"] == "failed" and self._runs(name) is None:
                    raise ContainerStartError(f"Container {spec.name} ({spec.image}): {status.get('Err')}")
                return
            if status["State"] in ("rejected", "failed", "orphaned"):
                where = next((each.name for each in nodes if each.id == tasks[0].get("NodeID")), "a node")
                raise ContainerStartError(f"Container {spec.name} ({spec.image}) on {where}: {status.get('Err')}")
            if time.monotonic() >= next_poll:
                node = tasks[0].get("NodeID", "") if tasks else ""
                if self._nodes.read_state(node) == "ready":
                    ready = time.monotonic()
                elif time.monotonic() - ready > _DOWN_SECONDS:
                    raise EngineUnavailableError(
                        f"The node {self._nodes.describe(node)} of the Swarm went away while it began {spec.name}."
                    )
                next_poll = time.monotonic() + _NODE_POLL_SECONDS
            if time.monotonic() > deadline:
                raise NetworkExhaustedError(
                    f"No node of the Swarm has started {spec.name} within {_START_SECONDS:g} s: {status['State']}, "
                    f"{status.get('Err') or status.get('Message')}."
                )
            time.sleep(_POLL_SECONDS)


@contextmanager
def _telling_of_names(name: str) -> Iterator[None]:
    """Raise ``ContainerStartError`` if the engine already has a service or a network of this name."""
    try:
        yield
    except docker.errors.APIError as error:
        if error.status_code != 409:
            raise
        raise ContainerStartError(f"A container of the name {name} is there already.") from error


def _runs_own(spec: ContainerSpec, image: LocalImage) -> bool:
    """Return whether the program of a container is a file in one of its mounts."""
    argv = image.find_argv(spec)
    path = PurePosixPath(image.working_folder, argv[0]) if argv else PurePosixPath("/")
    return any(path.is_relative_to(each.target) for each in spec.mounts)


def _has_run(state: Mapping[str, Any]) -> bool:
    started: str = state["StartedAt"]
    return not started.startswith("0001-")


def find_address(api: docker.APIClient) -> str:
    """Return the address of the node of a Swarm manager.

    Raises:
        EngineUnavailableError: the engine is not a Swarm manager.
    """
    with translated("ask the engine for its Swarm"):
        swarm = api.info()["Swarm"]
    if not swarm.get("ControlAvailable"):
        state = "is a worker" if swarm["LocalNodeState"] == "active" else "is in no Swarm"
        raise EngineUnavailableError(
            f"The Docker engine at {api.base_url} {state}, and --runtime swarm needs a manager's: name one in "
            "DOCKER_HOST, or make this one a manager (`docker swarm init`, `docker node promote`)."
        )
    return str(swarm["NodeAddr"])
