"""Containers on a Docker Swarm, each the only task of a service.

The Swarm never restarts the task of such a service.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from operator import itemgetter
from pathlib import Path
from socket import socket
from typing import Any

import docker

from container_runtime.docker.border import connect, find_engine_address, translated
from container_runtime.docker.engine import INSTANCE_LABEL
from container_runtime.docker.images.local_images import LocalImages
from container_runtime.docker.network import find_networks
from container_runtime.docker.scratch import choose_user
from container_runtime.docker.sidecar import LOOPBACK, SIDECAR_LABEL, explain_network
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.runtime import (
    Container,
    ContainerRuntimeError,
    EngineUnavailableError,
    FoundNetwork,
    LogLine,
    Network,
    ResolvedImage,
    Usage,
)
from container_runtime.spec import ContainerSpec, Mount
from container_runtime.swarm.capacity import Capacity
from container_runtime.swarm.containers.container_starts import ContainerStarts
from container_runtime.swarm.containers.swarm_containers import FILES_LABEL, SwarmContainers, name_own_network
from container_runtime.swarm.containers.tasks import NAME_LABEL, Tasks
from container_runtime.swarm.networks import create_overlay, remove_overlay
from container_runtime.swarm.nodes import Nodes

logger = logging.getLogger(__name__)

AGENT_IMAGE = "sagemaker-debugger-rules"
"""Image of the nodes' agents. It contains Python, and every installation has it."""
# States of a task that has a node or has ended.
_PLACED = {"complete", "failed", "shutdown"}


class SwarmEngine(SwarmContainers):
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
    # A service gets devices by generic resources only, which an administrator declares on each node.
    hands_gpus = False

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
        self.instance_id = instance_id
        own_labels = self._own_labels = {INSTANCE_LABEL: instance_id}
        chosen = choose_user(user)
        api = connect()
        with ExitStack() as on_failure:
            on_failure.callback(api.close)
            own = find_address(api)
            self._host_address = (address or own) if allow_internet else LOOPBACK
            self._images = LocalImages(api, catalogue or ImageCatalogue())
            image = self._images.resolve(AGENT_IMAGE).id
            tasks = Tasks(api, own_labels)
            nodes = Nodes(api, folder, registry)
            self._capacity = Capacity(api, instance_id)
            nodes.start(image)
            self._is_open = allow_internet
            super().__init__(api, tasks, nodes, chosen, lost, closed=not allow_internet)
            on_failure.callback(self.shut)
            self._starts = ContainerStarts(
                api,
                own_labels,
                self._images,
                nodes,
                self._capacity,
                tasks,
                self,
                chosen,
                is_open=allow_internet,
                carry=carry,
            )
            # Left by an emulator that was killed during a start. Their names would be in use for the next start.
            self._remove_unstarted()
            self.reattach()
            on_failure.pop_all()

    @property
    def host_address(self) -> str:
        """Address of this machine for its nodes, or with proxies the loopback address, which they forward to here."""
        return self._host_address

    def offer(self, port: int, take: Callable[[socket], None]) -> None:  # noqa: ARG002 - no container needs one
        """See ``ContainerRuntime``. Containers reach the server's own socket, so ``take`` is never called."""
        self._starts.offered.add(port)
        if self._is_open:
            return
        for service in self._tasks.list_services({}):
            name, labels = service["Spec"]["Name"], service["Spec"]["Labels"]
            ports = [each for each in map(int, labels.get(SIDECAR_LABEL, "").split()) if each in self._starts.offered]
            if port in ports:
                # The proxy of a container whose node does not answer opens when the node answers again.
                self.reopen_proxy(name, ports)

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
                elif status["State"] not in _PLACED:
                    waiting.append({"container": name, "why": status.get("Err") or status.get("Message", "")})
        nodes = [{**each, "containers": sorted(running.get(each["id"], []))} for each in self._nodes.describe_all()]
        return {"nodes": nodes, "waiting": sorted(waiting, key=itemgetter("container"))}

    def resolve_image(self, image: str, say: Callable[[str], None] = lambda _text: None) -> ResolvedImage:
        """See ``ContainerRuntime``. The image is copied to the nodes as well."""
        found = self._images.resolve(image, say)
        self._nodes.spread(found.id, say)
        return found.resolved

    def keep_ready(self, spec: ContainerSpec, seconds: float | None = None) -> bool:  # noqa: ARG002 - nodes keep nothing ready
        return False

    def is_ready(self, spec: ContainerSpec) -> bool:  # noqa: ARG002 - as above
        return False

    def describe_substitution(self, image: str) -> str | None:
        return self._images.describe_substitution(image)

    def has_image(self, image: str, *, exactly: bool = True) -> bool:
        return self._images.has(image, exactly=exactly)

    def path_in_container(self, mount: Mount, relative: str) -> str:
        return mount.find_inside(relative)

    def reserve_capacity(
        self, specs: Sequence[ContainerSpec], check: Callable[[], None]
    ) -> AbstractContextManager[None]:
        return self._capacity.keep([self._starts.want(each) for each in specs], check)

    def start(self, spec: ContainerSpec) -> str:
        return self._starts.start(spec)

    def logs(self, container_id: str) -> Iterator[LogLine]:
        lines = super().logs(container_id)
        return lines if self._is_open else explain_network(lines)

    def read_usage(self, container_id: str) -> Usage | None:
        containers, identity = self.locate(container_id)
        return containers.read_usage(identity)

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        found, failed = [], self._starts.clear()
        for service in self._tasks.list_services(labels):
            own = dict(service["Spec"]["Labels"])
            name = own.pop(NAME_LABEL)
            own.pop(FILES_LABEL, None)
            for key in (INSTANCE_LABEL, SIDECAR_LABEL, *self._nodes.agents.label):
                own.pop(key)
            if self.is_lost(service["Spec"]["Name"]) or service["Spec"]["Name"] in failed:
                continue
            if (running := self.runs(service["Spec"]["Name"])) is not None:
                found.append(Container(service["Spec"]["Name"], name, own, running))
        return found

    def create_network(
        self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False
    ) -> Network:
        with translated(f"make the network {name}"):
            return create_overlay(
                self._api,
                name,
                hosts,
                {**labels, **self._own_labels, NAME_LABEL: name},
                isolated=isolated or not self._is_open,
            )

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        found = find_networks(self._api, {**labels, **self._own_labels})
        # Networks without this label belong to single containers, and are removed with them.
        return [each for each in found if each.labels.get(NAME_LABEL) == each.name]

    def remove_network(self, name: str) -> None:
        with translated(f"remove the network {name}"):
            remove_overlay(self._api, name)

    def close(self) -> None:
        """Remove the agents if no container needs them any more."""
        try:
            self._starts.clear()
            self._remove_unstarted()
            with translated("remove the agents of the Swarm's nodes"):
                self._nodes.close()
        except ContainerRuntimeError as exc:
            logger.warning("Agents stay on the nodes of the Swarm: %s", exc)
        finally:
            self.shut()
            self._api.close()

    def _remove_unstarted(self) -> None:
        """Remove containers whose start was interrupted before their program began. They could begin at any time."""
        services = {each["Spec"]["Name"]: each for each in self._tasks.list_services({})}
        names = services.keys()
        for name in sorted(names):
            if self.runs(name) is None or not self.was_filled(name, services[name]["Spec"]["Labels"]):
                self.remove(name)
        with translated("remove networks of containers that never ran"):
            for network in find_networks(self._api, self._own_labels):
                if NAME_LABEL not in network.labels and network.name not in map(name_own_network, names):
                    remove_overlay(self._api, network.name)


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
            f"The Docker engine at {find_engine_address()} {state}, and --runtime swarm needs a manager's: name one in "
            "DOCKER_HOST, or make this one a manager (`docker swarm init`, `docker node promote`)."
        )
    return str(swarm["NodeAddr"])
