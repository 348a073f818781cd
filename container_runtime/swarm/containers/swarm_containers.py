"""Containers of a Swarm on their nodes: logs, exit, loss and removal."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import docker
import docker.errors

from container_runtime.docker.border import allowed, translated
from container_runtime.docker.containers import EngineContainers
from container_runtime.meter import Meter
from container_runtime.runtime import ContainerNotFoundError, EngineUnavailableError, Exit, LogLine
from container_runtime.swarm.carriers import Carriers
from container_runtime.swarm.containers.tasks import Tasks
from container_runtime.swarm.file_transfer.carried_folders import Carried, read_label
from container_runtime.swarm.networks import remove_overlay
from container_runtime.swarm.nodes import Nodes
from container_runtime.swarm.proxies import Proxies

logger = logging.getLogger(__name__)

FILES_LABEL = "smdebug-emulator.files"
"""Label of a service whose folders are copied to and from its node; see ``Carried``."""
# A node that does not answer for this time counts as lost. The first applies if the Swarm reports the node as down.
_DOWN_SECONDS, _SILENT_SECONDS = 15.0, 120.0
_NODE_POLL_SECONDS = 0.5
_OWN_NETWORK = "-alone"


def name_own_network(container_id: str) -> str:
    """Return the name of the network of a container that is alone on its network."""
    return f"{container_id}{_OWN_NETWORK}"


class SwarmContainers:
    """The containers of one emulator, by id, on the nodes that run them.

    Args:
        api: client of a manager's engine.
        tasks: tasks of the containers' services.
        nodes: nodes of the Swarm.
        user: uid and gid that containers run as.
        lost_folder: see ``Carriers``.
        closed: whether containers reach only this machine's ports, through proxies.
    """

    def __init__(
        self,
        api: docker.APIClient,
        tasks: Tasks,
        nodes: Nodes,
        user: tuple[int, int],
        lost_folder: Path | None,
        *,
        closed: bool,
    ) -> None:
        self._api = api
        self._tasks = tasks
        self._nodes = nodes
        # Containers that were lost with their node, and why. They stay lost even if the node comes back.
        self._lost: dict[str, str] = {}
        # Ids, at their nodes' engines, of containers that ended because such an engine was shut down.
        self._ended_with_engine: set[str] = set()
        self._carriers = Carriers(nodes.find_agent, nodes.key, user, lost_folder, kill=self._kill)
        self._proxies = Proxies(nodes.find_agent, nodes.key) if closed else None

    def locate(self, container_id: str) -> tuple[EngineContainers, str]:
        """Return the engine that runs a container, and the container's id there.

        Raises:
            ContainerNotFoundError: the container does not exist.
            EngineUnavailableError: its node does not answer.
        """
        node, identity = self._tasks.locate(container_id)
        client, reconnect = self._nodes.connect(node), partial(self._nodes.reconnect, node)
        return EngineContainers(client, reconnect, self._ended_with_engine), identity

    def logs(self, container_id: str) -> Iterator[LogLine]:
        """Yield a container's log. When its node answers again, the log continues where it was interrupted."""
        containers, identity = self.locate(container_id)
        return self._resume(container_id, containers.logs(identity))

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        """Wait until a container has ended; see ``ContainerRuntime``.

        Raises:
            EngineUnavailableError: also if the container was lost with its node; ``find`` no longer returns it.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        away = False
        while True:
            try:
                containers, identity = self.locate(container_id)
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

    def open_meter(self, container_id: str) -> Meter | None:
        """Return the meter of a container; None if it has ended."""
        pid = self._find_pid(container_id)
        return None if pid is None else self._nodes.open_meter(self._tasks.places[container_id][0], pid)

    def stop(self, container_id: str, grace_seconds: float) -> None:
        """Stop a container. A lost one is not stopped here; it ends because its service was removed."""
        if container_id not in self._lost:
            containers, identity = self.locate(container_id)
            containers.stop(identity, grace_seconds)

    def remove(self, container_id: str) -> None:
        """Remove a container. Its service is removed first; a node that does not answer ends its task later."""
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
            remove_overlay(self._api, name_own_network(container_id))

    def let_begin(self, name: str, folders: Sequence[Carried] | None, ports: Sequence[int]) -> None:
        """Copy a container's files and open its proxy, which its program waits for."""
        if folders:
            self._remove_ended_volumes(self._nodes.connect(self._tasks.places[name][0]))
            self._carriers.fill(name, self._tasks.places[name][0], folders)
        if ports:
            self.open_proxy(name, ports)

    def reattach(self) -> None:
        """Continue to copy the folders of containers that an earlier process has started."""
        for service in self._tasks.list_services({}):
            name, label = service["Spec"]["Name"], service["Spec"]["Labels"].get(FILES_LABEL)
            if label:
                self._carriers.reattach(name, self._tasks.locate(name)[0], read_label(label))

    def was_filled(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the folders of a container were filled, if they are copied at all."""
        if FILES_LABEL not in labels:
            return True
        return self._carriers.was_filled(name, self._tasks.locate(name)[0], read_label(labels[FILES_LABEL]))

    def runs(self, name: str) -> bool | None:
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

    def open_proxy(self, name: str, ports: Sequence[int]) -> None:
        """Open a container's proxy, unless the container has ended; see ``Proxies.open``."""
        assert self._proxies is not None
        if (pid := self._find_pid(name)) is not None:
            self._proxies.open(name, self._tasks.places[name][0], lambda: pid, ports)

    def reopen_proxy(self, name: str, ports: Sequence[int]) -> None:
        """Open the proxy of a container that an earlier process started, as soon as its node answers."""
        assert self._proxies is not None

        def find_pid() -> int | None:
            with suppress(ContainerNotFoundError):  # it has ended, and was removed from its node
                return self._find_pid(name)
            return None

        with suppress(ContainerNotFoundError):  # it never ran
            node, _ = self._tasks.locate(name)
            self._proxies.open(name, node, find_pid, ports, wait=False)

    def is_lost(self, container_id: str) -> bool:
        """Return whether a container was lost with its node, or could not be removed from it."""
        return container_id in self._lost

    def forget_lost(self, container_id: str) -> None:
        """Forget a lost container, so that a new one can have its id."""
        if self._lost.pop(container_id, None):
            self._tasks.places.pop(container_id, None)

    def answers(self, container_id: str) -> bool:
        """Return whether the node of a container answers. True if the container has no node yet."""
        place = self._tasks.places.get(container_id)
        return place is None or self._nodes.answers(place[0])

    def describe_node(self, container_id: str) -> str:
        """Return the name and the address of a container's node."""
        return self._nodes.describe(self._tasks.places[container_id][0])

    def shut(self) -> None:
        """Close the connections to the nodes' agents."""
        if self._proxies is not None:
            self._proxies.shut()
        self._carriers.shut()

    def _kill(self, container_id: str) -> None:
        with suppress(ContainerNotFoundError, EngineUnavailableError):  # the container has ended, or will
            self.stop(container_id, 0.0)

    def _remove_task(self, container_id: str, node: str, identity: str) -> bool:
        """Remove a task's container with its volumes. Return False if its node does not answer."""
        try:
            with translated(f"remove container {identity}"), allowed(404, 409):  # it was removed, or is being removed
                self._nodes.connect(node).remove_container(identity, force=True, v=True)
            _remove_volumes(self._nodes.connect(node), container_id)
        except EngineUnavailableError:
            return False
        return True

    def _remove_ended_volumes(self, node: docker.APIClient) -> None:
        """Remove the volumes of lost containers from a node that is back and has ended them."""
        with translated("list volumes that are left on a node"):
            left = node.volumes(filters={"label": self._tasks.list_label_filters()})["Volumes"] or []
            # A service precedes its volumes.
            names = {each["Spec"]["Name"] for each in self._tasks.list_services({})}
            for volume in (each["Name"] for each in left if each["Name"].rpartition("-")[0] not in names):
                with suppress(docker.errors.APIError):  # its container has not ended yet
                    node.remove_volume(volume)

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
            containers, identity = self.locate(container_id)
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

    def _find_pid(self, name: str) -> int | None:
        """Return the pid of a container's first process on its node; None if it has ended."""
        node, identity = self._tasks.locate(name)
        with translated(f"look at container {name}"):
            state = self._nodes.connect(node).inspect_container(identity)["State"]
        return int(state["Pid"]) or None


def _remove_volumes(node: docker.APIClient, container_id: str) -> None:
    with translated(f"remove the volumes of container {container_id}"):
        for each in node.volumes(filters={"name": f"{container_id}-"})["Volumes"] or []:
            with allowed(404, 409):  # already removed, or in use and removed later
                node.remove_volume(each["Name"])


def _has_run(state: Mapping[str, Any]) -> bool:
    started: str = state["StartedAt"]
    return not started.startswith("0001-")
