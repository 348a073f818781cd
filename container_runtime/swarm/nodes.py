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
# What the agent is made of, as a program that Python runs from one file.
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
    """A node that takes tasks, and whose agent answers.

    Attributes:
        id: the Swarm's.
        name: the machine's.
        cpus, memory_bytes: what it has.
        address: IP address and port of its agent.
    """

    id: str
    name: str
    cpus: int
    memory_bytes: int
    address: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Condition:
    """How a node is.

    Attributes:
        free_bytes: of the disk that its engine keeps images and containers on.
        clock: its time, in seconds since 1970.
    """

    free_bytes: int
    clock: float


class Nodes:
    """The nodes, as one emulator sees them. Thread safe."""

    def __init__(self, api: docker.APIClient, folder: Path, registry: str | None = None) -> None:
        """Know the nodes; their agents are those of before a restart, or there are none before ``start``.

        Args:
            api: client of a manager's engine.
            folder: where the key is kept, of which each has agents of its own.
            registry: what the names of images begin with that nodes pull; they come from the manager when not given.
        """
        self._api = api
        self._registry = None if registry is None else Registry(api, registry)
        self.key = keep_key(folder)
        """The file of the agents' key."""
        self._service = f"smdebug-agent-{hashlib.sha256(self.key.read_bytes()).hexdigest()[:12]}"
        self.label = {AGENT_LABEL: self._service}
        """On each service whose containers are reached through these agents: while there is one, they stay."""
        self._clients: dict[str, tuple[tuple[str, int], docker.APIClient]] = {}
        self._loaded: set[tuple[str, str]] = set()
        self._lock = Lock()
        self._seen: tuple[float, dict[str, SwarmNode]] = (-inf, {})

    def start(self, image: str) -> None:
        """Start an agent on every node, unless there are some since before a restart.

        Args:
            image: id of the image that the agents run in.

        Raises:
            ContainerRuntimeError: no node has an agent.
        """
        # A node that lacks it pulls it by itself, or cannot have it at all: there is no agent yet to bring it.
        named = image if self._registry is None else self._registry.push(image)
        with translated("start the agents of the Swarm's nodes"):
            self._start_agents(named)
        self._await_agents(image)

    def list_ready(self) -> list[SwarmNode]:
        """List the nodes that can be given a task now."""
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
            EngineUnavailableError: the node is not there, or its agent does not answer.
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
            client.trust_env = False  # another proxy or list of authorities would come before these
            self._await_answer(client, node)
            # One that another thread has made meanwhile is as good; one of an agent that was, is closed by its users.
            known = self._clients[node_id] = (node.address, client)
        return known[1]

    def describe_all(self) -> list[dict[str, Any]]:
        """Describe every node of the Swarm, those that take no tasks included."""
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
        """Return what a manager knows of a node: ``ready``, ``down``, ``drain`` or ``gone``, or a rarer word of its."""
        with translated("look at a node of the Swarm"):
            node = next((each for each in self._api.nodes() if each["ID"] == node_id), None)
        if node is None:
            return "gone"
        state = str(node["Status"]["State"])
        return "drain" if node["Spec"]["Availability"] == "drain" and state == "ready" else state

    def answers(self, node_id: str) -> bool:
        """Whether a node's agent listens."""
        try:
            node = self._find_ready(node_id)
            if node is not None:
                socket.create_connection(node.address, _PROBE_SECONDS).close()
        except OSError:
            return False
        return node is not None

    def describe(self, node_id: str) -> str:
        """Name a node as people know it, as long as the manager does."""
        with suppress(ContainerRuntimeError), translated("look at a node of the Swarm"):
            for node in self._api.nodes():
                if node["ID"] == node_id:
                    return f"{node['Description']['Hostname']} ({node['Status'].get('Addr', node_id)})"
        return node_id

    def _find_ready(self, node_id: str) -> SwarmNode | None:
        """Find a node among those of a second ago: an agent that was started again has a new port."""
        with self._lock:
            seen, ready = self._seen
            if time.monotonic() - seen > _SEEN_SECONDS:
                ready = {each.id: each for each in self.list_ready()}
                self._seen = time.monotonic(), ready
            return ready.get(node_id)

    def _await_answer(self, client: docker.APIClient, node: SwarmNode) -> None:
        """Wait until an agent listens: its task counts as running from the start of its container."""
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
        """Open what measures the container of a node's process."""
        return AgentMeter(self.find_agent(node_id), self.key, pid)

    def find_agent(self, node_id: str) -> tuple[str, int]:
        """Find IP address and port of a node's agent.

        Raises:
            EngineUnavailableError: the node is not there, or its agent does not answer.
        """
        self.connect(node_id)
        return self._clients[node_id][0]

    def read_condition(self, node_id: str) -> Condition:
        """Ask a node how it is.

        Raises:
            EngineUnavailableError: the node is not there, or its agent does not answer.
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
        """Bring an image of the manager's engine to the nodes that lack it, all at once; return the nodes that have it.

        Args:
            image: its id, by which every node knows it.
            say: told how far it is.

        Raises:
            ContainerRuntimeError: no node has it, or can be given it.
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
        """Close the connections; remove the agents, their key and program when they are needed no more.

        Args:
            keep_agents: whether another emulator has them.
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
        # Where its engine keeps volumes is known on the node: the agent opens that folder, and lets go of the rest.
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
                    # To enter a container's network; who has the engine's socket may as much.
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
        """Wait until every node has its agent; one that has none in time gets no tasks, and is told."""
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
    """See ``Meter``: asks the agent of the container's node."""

    def __init__(self, address: tuple[str, int], key: Path, pid: int) -> None:
        """Connect.

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
        """Close the connection of a meter that is asked no more."""
        if hasattr(self, "_file"):
            self._file.close()
            self._socket.close()


class _AnyName(requests.adapters.HTTPAdapter):
    """Trusts who has the key, at whatever address."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, assert_hostname=False, socket_options=KEEP_ALIVE, **kwargs)


def takes_tasks(node: dict[str, Any]) -> bool:
    """Whether a manager gives tasks to a node, as it describes it."""
    return bool(node["Status"]["State"] == "ready" and node["Spec"]["Availability"] == "active")


def _describe_state(node: dict[str, Any], *, has_agent: bool) -> str:
    if not takes_tasks(node):
        availability = node["Spec"]["Availability"]
        return str(
            node["Status"]["State"] if availability == "active" else f"{node['Status']['State']}, {availability}"
        )
    return "ready" if has_agent else "ready, without an agent"


def _build_program() -> bytes:
    """Build the same bytes of the same sources."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _MODULES:
            archive.writestr(zipfile.ZipInfo(name), (_ROOT / name).read_bytes())
        main = "import runpy\nrunpy.run_module('container_runtime.swarm.agent', run_name='__main__')\n"
        archive.writestr(zipfile.ZipInfo("__main__.py"), main)
    return content.getvalue()


def _create_unless_there(api: docker.APIClient, kind: str, name: str, data: bytes, labels: dict[str, str]) -> str:
    """Create a secret or a config; return its id."""
    for each in getattr(api, kind)(filters={"names" if kind == "secrets" else "name": name}):
        if each["Spec"]["Name"] == name:
            return str(each["ID"])
    create = api.create_secret if kind == "secrets" else api.create_config
    return str(create(name, data, labels=labels)["ID"])


def keep_key(folder: Path) -> Path:
    """Return the file that holds key and certificate, made when it is first asked for."""
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
            # Clocks of machines differ.
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
