"""Nodes of a Swarm: discovery, and requests through each node's agent."""

import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import docker
import docker.errors
import requests.adapters
import requests.exceptions

from container_runtime.docker.border import RECONNECT_SECONDS, REQUEST_SECONDS, read_transfer, translated
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError
from container_runtime.swarm import agent
from container_runtime.swarm.agent_key import keep_key
from container_runtime.swarm.agent_meter import AgentMeter
from container_runtime.swarm.agent_service import AgentService, name_node, takes_tasks
from container_runtime.swarm.inside import KEEP_ALIVE
from container_runtime.swarm.registry import Registry

logger = logging.getLogger(__name__)

_ANSWER_SECONDS = 20.0
_SEEN_SECONDS = 1.0
_PROBE_SECONDS = 2.0
_POLL_SECONDS = 0.02


class SwarmNode(NamedTuple):
    """A node that accepts tasks and has a running agent.

    Attributes:
        id: id of the node in the Swarm.
        name: host name of the machine.
        cpus, memory_bytes: resources of the machine.
        address: IP address and port of its agent.
    """

    id: str
    name: str
    cpus: int
    memory_bytes: int
    address: tuple[str, int]


class Condition(NamedTuple):
    """Free disk space and clock of a node.

    Attributes:
        free_bytes: free bytes on the disk where its engine keeps images and containers.
        clock: time of the node, in seconds since 1970.
    """

    free_bytes: int
    clock: float


class Nodes:
    """The nodes of a Swarm and the agents that one emulator has on them. Thread-safe."""

    def __init__(self, api: docker.APIClient, folder: Path, registry: str | None = None) -> None:
        """Use existing agents after a restart of the emulator. Otherwise there are none before ``start``.

        Args:
            api: client of a manager's engine.
            folder: folder of the key. Each key has its own agents.
            registry: prefix of the image names that nodes pull. By default they get images from the manager.
        """
        self._api = api
        self._registry = None if registry is None else Registry(api, registry)
        self.key = keep_key(folder)
        """The file of the agents' key."""
        self.agents = AgentService(api, self.key, self._registry)
        self._clients: dict[str, tuple[tuple[str, int], docker.APIClient]] = {}
        self._loaded: set[tuple[str, str]] = set()
        self._lock = Lock()
        self._seen: tuple[float, dict[str, SwarmNode]] = (-inf, {})

    def start(self, image: str) -> None:
        """Start an agent on every node, unless agents from before a restart are running.

        Args:
            image: id of the agents' image.

        Raises:
            ContainerRuntimeError: no node has an agent.
        """
        self.agents.start(image, lambda: {each.id for each in self.list_ready()})

    def list_ready(self) -> list[SwarmNode]:
        """Return the nodes that accept tasks now."""
        with translated("list the nodes of the Swarm"):
            found = {each["ID"]: each for each in self._api.nodes()}
            tasks = self._api.tasks({"service": self.agents.name})
        ready = []
        for task in tasks:
            node, ports = found.get(task.get("NodeID")), task["Status"].get("PortStatus", {}).get("Ports")
            if node and ports and task["Status"]["State"] == "running" and takes_tasks(node):
                has = node["Description"]["Resources"]
                ready.append(
                    SwarmNode(
                        node["ID"],
                        node["Description"]["Hostname"],
                        has["NanoCPUs"] // 10**9,
                        has["MemoryBytes"],
                        (node["Status"]["Addr"], ports[0]["PublishedPort"]),
                    )
                )
        return ready

    def connect(self, node_id: str) -> docker.APIClient:
        """Return a client of a node's engine.

        Raises:
            EngineUnavailableError: the node does not exist, or its agent does not answer.
        """
        known, node = self._clients.get(node_id), self._find_ready(node_id)
        if known is None or (node is not None and node.address != known[0]):
            if node is None:
                raise EngineUnavailableError(f"The node {node_id} of the Swarm does not answer (`docker node ls`).")
            client = self._build_client(node.address, int(REQUEST_SECONDS))
            self._await_answer(client, node)
            # Another thread may have created a client in the meantime; both work. Other threads may still use the
            # client of an earlier agent, so it is not closed here.
            known = self._clients[node_id] = (node.address, client)
        return known[1]

    def reconnect(self, node_id: str) -> None:
        """Check that a node's engine accepts another connection, and answers.

        Raises:
            EngineUnavailableError: it does not.
        """
        with (
            translated("connect"),
            closing(self._build_client(self.find_agent(node_id), RECONNECT_SECONDS)) as client,
        ):
            client.ping()

    def _build_client(self, address: tuple[str, int], seconds: int) -> docker.APIClient:
        client = docker.APIClient(
            f"https://{address[0]}:{address[1]}", version=self._api.api_version, timeout=seconds, num_pools=1
        )
        client.mount("https://", _AnyName(pool_maxsize=64))
        client.verify = client.cert = str(self.key)
        client.trust_env = False  # a proxy or CA bundle from the environment would take precedence
        return client

    def describe_all(self) -> list[dict[str, Any]]:
        """Describe every node of the Swarm, including those that accept no tasks."""
        ready = {each.id for each in self.list_ready()}
        with translated("list the nodes of the Swarm"):
            found = self._api.nodes()
        return [
            {
                "id": each["ID"],
                "name": each["Description"]["Hostname"],
                "address": each["Status"].get("Addr", ""),
                "state": _describe_state(each, has_agent=each["ID"] in ready),
                "cpus": each["Description"]["Resources"]["NanoCPUs"] // 10**9,
                "memoryBytes": each["Description"]["Resources"]["MemoryBytes"],
            }
            for each in sorted(found, key=lambda each: str(each["Status"].get("Addr")))
        ]

    def read_state(self, node_id: str) -> str:
        """Return the state of a node: ``drain``, ``gone`` or what the manager reports, mostly ``ready`` or ``down``."""
        with translated("look at a node of the Swarm"):
            node = next((each for each in self._api.nodes() if each["ID"] == node_id), None)
        if node is None:
            return "gone"
        state = str(node["Status"]["State"])
        return "drain" if node["Spec"]["Availability"] == "drain" and state == "ready" else state

    def answers(self, node_id: str) -> bool:
        """Return whether a node's agent accepts connections."""
        try:
            node = self._find_ready(node_id)
            if node is not None:
                socket.create_connection(node.address, _PROBE_SECONDS).close()
        except OSError:
            return False
        return node is not None

    def describe(self, node_id: str) -> str:
        """Return the host name and address of a node, or its id if the manager does not know it."""
        with suppress(ContainerRuntimeError), translated("look at a node of the Swarm"):
            for node in self._api.nodes():
                if node["ID"] == node_id:
                    return name_node(node)
        return node_id

    def _find_ready(self, node_id: str) -> SwarmNode | None:
        """Return a node if it is ready. The cache lasts only one second, because a restarted agent has a new port."""
        with self._lock:
            seen, ready = self._seen
            if time.monotonic() - seen > _SEEN_SECONDS:
                ready = {each.id: each for each in self.list_ready()}
                self._seen = time.monotonic(), ready
            return ready.get(node_id)

    def _await_answer(self, client: docker.APIClient, node: SwarmNode) -> None:
        """Wait until an agent listens. Its task already counts as running when its container starts."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                client.ping()
            except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
                if time.monotonic() > deadline:
                    client.close()
                    raise EngineUnavailableError(
                        f"The agent of the Swarm's node {node.name} does not answer at {node.address[0]}, port "
                        f"{node.address[1]}, as this machine reaches it: {error}"
                    ) from error
                time.sleep(_POLL_SECONDS)
            else:
                return

    def open_meter(self, node_id: str, pid: int) -> AgentMeter:
        """Open a meter of the container of a process on a node."""
        return AgentMeter(self.find_agent(node_id), self.key, pid)

    def find_agent(self, node_id: str) -> tuple[str, int]:
        """Return IP address and port of a node's agent.

        Raises:
            EngineUnavailableError: the node does not exist, or its agent does not answer.
        """
        self.connect(node_id)
        return self._clients[node_id][0]

    def read_condition(self, node_id: str) -> Condition:
        """Read the free disk space and the clock of a node.

        Raises:
            EngineUnavailableError: the node does not exist, or its agent does not answer.
        """
        address = self.find_agent(node_id)
        context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, self.key, agent.CONDITION)
        try:
            with (
                context.wrap_socket(socket.create_connection(address, _ANSWER_SECONDS)) as connection,
                connection.makefile("rb") as file,
            ):
                return Condition(**json.loads(file.readline()))
        except (OSError, ValueError) as error:
            raise EngineUnavailableError(f"The agent at {address[0]}:{address[1]} does not answer: {error}") from error

    def spread(self, image: str, say: Callable[[str], None] = lambda _text: None) -> Collection[SwarmNode]:
        """Copy an image of the manager's engine in parallel to the nodes that lack it; return the nodes that have it.

        Args:
            image: id of the image, which is the same on every node.
            say: called with progress messages.

        Raises:
            ContainerRuntimeError: no node has the image, and it cannot be copied to any.
        """
        ready = self.list_ready()
        lacking = [node for node in ready if (node.id, image) not in self._loaded]
        failures: dict[str, str] = {}

        def load(node: SwarmNode) -> None:
            try:
                self._load(node, image, say)
                self._loaded.add((node.id, image))
            except ContainerRuntimeError as error:
                failures[node.id] = str(error)

        if lacking:
            with ThreadPoolExecutor(len(lacking), thread_name_prefix="spread") as pool:
                list(pool.map(load, lacking))
        for node in ready:
            if node.id in failures:
                logger.warning("The node %s gets no task of the image %s: %s", node.name, image, failures[node.id])
        having = [node for node in ready if node.id not in failures]
        if not having:
            why = "; ".join([*failures.values(), *self.agents.find_failures().values()]) or "none accepts tasks"
            raise ContainerRuntimeError(
                f"No node of the Swarm with an agent can run the image {image}: {why}. "
                "smdebug-emulator doctor --runtime swarm says what each node lacks."
            )
        return having

    def forget(self, image: str) -> None:
        """Forget which nodes have an image, so that the next ``spread`` asks them: somebody may have removed it."""
        # Of a copy, because other threads may add to it.
        self._loaded -= {each for each in self._loaded.copy() if each[1] == image}

    def _load(self, node: SwarmNode, image: str, say: Callable[[str], None]) -> None:
        client = self.connect(node.id)
        doing = f"bring the image {image} to the node {node.name}"
        with translated(doing):
            with suppress(docker.errors.ImageNotFound):
                client.inspect_image(image)
                return
            if self._registry is not None:
                self._registry.pull(client, image, say)
                return
            say(f"bringing the image to the node {node.name}")
            for _ in read_transfer(client.load_image(self._api.get_image(image)), doing):
                pass
            client.inspect_image(image)

    def close(self, *, keep_agents: bool = False) -> None:
        """Close the connections, and remove the agents with their key and program if no container needs them.

        Args:
            keep_agents: whether another emulator uses the agents.
        """
        for _, client in self._clients.values():
            client.close()
        if not keep_agents:
            self.agents.remove()


class _AnyName(requests.adapters.HTTPAdapter):
    """Trusts every server that has the key, at any address."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, assert_hostname=False, socket_options=KEEP_ALIVE, **kwargs)


def _describe_state(node: dict[str, Any], *, has_agent: bool) -> str:
    if not takes_tasks(node):
        availability = node["Spec"]["Availability"]
        return str(
            node["Status"]["State"] if availability == "active" else f"{node['Status']['State']}, {availability}"
        )
    return "ready" if has_agent else "ready, without an agent"
