"""Nodes of a Swarm: discovery, and requests through each node's agent."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import socket
import ssl
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import docker
import docker.errors
import requests.adapters
import requests.exceptions
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status, translated
from container_runtime.file_lock import hold_lock
from container_runtime.meter import Load
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError
from container_runtime.swarm import agent
from container_runtime.swarm.inside import KEEP_ALIVE
from container_runtime.swarm.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

logger = logging.getLogger(__name__)

AGENT_LABEL = "smdebug-emulator.agent"
_ROOT = Path(__file__).parents[2]
# The modules of the agent, which Python runs from one zip file.
_MODULES = (
    "container_runtime/__init__.py",
    "container_runtime/meter.py",
    "container_runtime/runtime.py",
    "container_runtime/docker/__init__.py",
    "container_runtime/docker/control_group.py",
    "container_runtime/swarm/__init__.py",
    "container_runtime/swarm/agent.py",
    "container_runtime/swarm/files.py",
    "container_runtime/swarm/inside.py",
    "container_runtime/swarm/pipes.py",
    "container_runtime/swarm/tree.py",
)
_START_SECONDS = 60.0
_ANSWER_SECONDS = 20.0
_SEEN_SECONDS = 1.0
_PROBE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_KEY_YEARS = 20


@dataclass(frozen=True, slots=True)
class SwarmNode:
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


@dataclass(frozen=True, slots=True)
class Condition:
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
        self._service = f"smdebug-agent-{hashlib.sha256(self.key.read_bytes()).hexdigest()[:12]}"
        self.label = {AGENT_LABEL: self._service}
        """Label of the services that need these agents. The agents stay as long as there is such a service."""
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
        # Without an agent the image cannot be copied to a node. A node that lacks it has to pull it.
        named = image if self._registry is None else self._registry.push(image)
        with translated("start the agents of the Swarm's nodes"):
            self._start_agents(named)
        self._await_agents(image)

    def list_ready(self) -> list[SwarmNode]:
        """Return the nodes that accept tasks now."""
        with translated("list the nodes of the Swarm"):
            found = {each["ID"]: each for each in self._api.nodes()}
            tasks = self._api.tasks({"service": self._service})
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
            client = docker.APIClient(
                f"https://{node.address[0]}:{node.address[1]}",
                version=self._api.api_version,
                timeout=int(REQUEST_SECONDS),
                num_pools=1,
            )
            client.mount("https://", _AnyName(pool_maxsize=64))
            client.verify = client.cert = str(self.key)
            client.trust_env = False  # a proxy or CA bundle from the environment would take precedence
            self._await_answer(client, node)
            # Another thread may have created a client in the meantime; both work. Other threads may still use the
            # client of an earlier agent, so it is not closed here.
            known = self._clients[node_id] = (node.address, client)
        return known[1]

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
                    return f"{node['Description']['Hostname']} ({node['Status'].get('Addr', node_id)})"
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
            why = "; ".join(failures.values()) or "no node is ready (`docker node ls`)"
            raise ContainerRuntimeError(f"No node of the Swarm can run the image {image}: {why}")
        return having

    def _load(self, node: SwarmNode, image: str, say: Callable[[str], None]) -> None:
        client = self.connect(node.id)
        with translated(f"bring the image {image} to the node {node.name}"):
            with suppress(docker.errors.ImageNotFound):
                client.inspect_image(image)
                return
            if self._registry is not None:
                self._registry.pull(client, image, say)
                return
            say(f"bringing the image to the node {node.name}")
            for _ in client.load_image(self._api.get_image(image)):
                pass
            client.inspect_image(image)

    def close(self, *, keep_agents: bool = False) -> None:
        """Close the connections, and remove the agents with their key and program if no container needs them.

        Args:
            keep_agents: whether another emulator uses the agents.
        """
        for _, client in self._clients.values():
            client.close()
        if keep_agents:
            return
        filters = {"label": [f"{AGENT_LABEL}={self._service}"]}
        if any(each["Spec"]["Name"] != self._service for each in self._api.services(filters=filters)):
            return
        with suppress(docker.errors.NotFound):
            self._api.remove_service(self._service)
        for secret in self._api.secrets(filters=filters):
            self._api.remove_secret(secret["ID"])
        for config in self._api.configs(filters=filters):
            self._api.remove_config(config["ID"])

    def _start_agents(self, image: str) -> None:
        key, program = self.key.read_bytes(), _build_program()
        digest = hashlib.sha256(key + program + image.encode()).hexdigest()[:16]
        found = self._api.services(filters={"name": self._service})
        if any(each["Spec"]["Labels"].get("smdebug-emulator.key") == digest for each in found):
            return
        for each in found:
            self._api.remove_service(each["ID"])
        name = f"{self._service}-{digest}"
        secret = _create_unless_there(self._api, "secrets", name, key, self.label)
        config = _create_unless_there(self._api, "configs", name, program, self.label)
        mounts = [(agent.ENGINE, agent.ENGINE, False), ("/proc", agent.PROCESSES, True)]
        mounts.append(("/sys/fs/cgroup", agent.GROUPS, True))
        # Only the node knows where its engine keeps volumes. The agent opens that folder and gives up the rest.
        mounts.append(("/", agent.ROOT, False))
        file = {"UID": "0", "GID": "0", "Mode": 0o400}
        spec = {
            "Name": self._service,
            "Labels": {**self.label, "smdebug-emulator.key": digest},
            "Mode": {"Global": {}},
            "EndpointSpec": {"Ports": [{"Protocol": "tcp", "TargetPort": agent.PORT, "PublishMode": "host"}]},
            "TaskTemplate": {
                "ContainerSpec": {
                    "Image": image,
                    "Command": ["python", "/agent.pyz"],
                    "User": "0:0",
                    "Init": True,
                    "ReadOnly": True,
                    # To enter a container's network. Access to the engine's socket already permits as much.
                    "CapabilityAdd": ["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"],
                    "Env": [f"{agent.NODE}={{{{.Node.ID}}}}"],
                    "StopGracePeriod": 0,
                    "Mounts": [
                        {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}
                        for source, target, read_only in mounts
                    ],
                    "Secrets": [
                        {"SecretID": secret, "SecretName": name, "File": {**file, "Name": Path(agent.KEY).name}}
                    ],
                    "Configs": [{"ConfigID": config, "ConfigName": name, "File": {**file, "Name": "/agent.pyz"}}],
                },
                "RestartPolicy": {"Condition": "any", "Delay": 10**9},
            },
        }
        headers = {} if self._registry is None else self._registry.build_headers()
        raise_for_status(self._api.post(build_url(self._api, "/services/create"), json=spec, headers=headers))

    def _await_agents(self, image: str) -> None:
        """Wait until every node has its agent. A node without an agent gets no tasks, and a warning is logged."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with translated("list the nodes of the Swarm"):
                wanted = {each["ID"]: each for each in self._api.nodes() if takes_tasks(each)}
            ready = {each.id for each in self.list_ready()}
            if ready >= wanted.keys():
                return
            with translated("look at the agents"):
                tasks = self._api.tasks({"service": self._service})
            refused = {
                task["NodeID"]: task["Status"].get("Err", "")
                for task in tasks
                if task["Status"]["State"] in ("rejected", "failed") and task.get("NodeID") in wanted.keys() - ready
            }
            if refused.keys() | ready >= wanted.keys() or time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        for node_id in wanted.keys() - ready:
            text = refused.get(node_id) or "it did not start in time"
            logger.warning(
                "The node %s (%s) has no agent, and gets no tasks: %s. The agents' image has to be there: name a "
                "--registry, or `docker save %s | ssh NODE docker load`.",
                wanted[node_id]["Description"]["Hostname"],
                wanted[node_id]["Status"].get("Addr"),
                text,
                image,
            )
        if not ready:
            raise ContainerRuntimeError(
                f"No node of the Swarm has an agent: {'; '.join(refused.values()) or 'they did not start in time'}. "
                "Look at `docker node ls`."
            )


class AgentMeter:
    """Meter that requests the counters from the agent of the container's node."""

    def __init__(self, address: tuple[str, int], key: Path, pid: int) -> None:
        """Connect to the agent.

        Raises:
            EngineUnavailableError: the agent does not answer.
        """
        context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, key)
        self._question = b"%d\n" % pid
        try:
            self._socket = context.wrap_socket(socket.create_connection(address, REQUEST_SECONDS))
        except OSError as error:
            raise EngineUnavailableError(f"The agent at {address[0]}:{address[1]} does not answer: {error}") from error
        self._file = self._socket.makefile("rb")

    def read(self) -> Load | None:
        """See ``Meter``."""
        if self._file.closed:
            return None
        try:
            self._socket.sendall(self._question)
            answer = json.loads(self._file.readline() or b"null")
        except OSError:
            answer = None
        if answer is None:
            self._file.close()
            self._socket.close()
            return None
        return Load(**answer)

    def __del__(self) -> None:
        """Close the connection when the meter is no longer used."""
        if hasattr(self, "_file"):
            self._file.close()
            self._socket.close()


class _AnyName(requests.adapters.HTTPAdapter):
    """Trusts every server that has the key, at any address."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, assert_hostname=False, socket_options=KEEP_ALIVE, **kwargs)


def takes_tasks(node: dict[str, Any]) -> bool:
    """Return whether a node accepts tasks, from the manager's description of it."""
    return bool(node["Status"]["State"] == "ready" and node["Spec"]["Availability"] == "active")


def _describe_state(node: dict[str, Any], *, has_agent: bool) -> str:
    if not takes_tasks(node):
        availability = node["Spec"]["Availability"]
        return str(
            node["Status"]["State"] if availability == "active" else f"{node['Status']['State']}, {availability}"
        )
    return "ready" if has_agent else "ready, without an agent"


def _build_program() -> bytes:
    """Build the agent's zip file. The same sources give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _MODULES:
            archive.writestr(zipfile.ZipInfo(name), (_ROOT / name).read_bytes())
        main = "import runpy\nrunpy.run_module('container_runtime.swarm.agent', run_name='__main__')\n"
        archive.writestr(zipfile.ZipInfo("__main__.py"), main)
    return content.getvalue()


def _create_unless_there(api: docker.APIClient, kind: str, name: str, data: bytes, labels: dict[str, str]) -> str:
    """Create a secret or a config unless it exists, and return its id."""
    for each in getattr(api, kind)(filters={"names" if kind == "secrets" else "name": name}):
        if each["Spec"]["Name"] == name:
            return str(each["ID"])
    create = api.create_secret if kind == "secrets" else api.create_config
    return str(create(name, data, labels=labels)["ID"])


def keep_key(folder: Path) -> Path:
    """Return the file with key and certificate, and create it on the first call."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "agent.pem"
    with hold_lock(folder / "agent.lock"):
        if path.exists():
            return path
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "smdebug-emulator")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            # The clocks of the machines may differ.
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(days=365 * _KEY_YEARS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ) + certificate.public_bytes(serialization.Encoding.PEM)
        unfinished = path.with_suffix(".tmp")
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
            file.write(text)
        unfinished.replace(path)
    return path
