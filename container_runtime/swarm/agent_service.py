"""Agents of a Swarm's nodes: one global service with its key and program."""

from __future__ import annotations

import hashlib
import io
import logging
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import docker.errors

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status, translated
from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm import agent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from container_runtime.swarm.registry import Registry

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
    "container_runtime/swarm/file_transfer/__init__.py",
    "container_runtime/swarm/file_transfer/files.py",
    "container_runtime/swarm/inside.py",
    "container_runtime/swarm/file_transfer/pipes.py",
    "container_runtime/swarm/file_transfer/tree.py",
    "container_runtime/swarm/file_transfer/tree_protocol.py",
)
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05


class AgentService:
    """The Swarm service that runs the agents of one key."""

    def __init__(self, api: docker.APIClient, key: Path, registry: Registry | None) -> None:
        """Describe the service, which may exist already.

        Args:
            api: client of a manager's engine.
            key: file of the agents' key. Each key has its own agents.
            registry: registry that nodes pull images from; None to get images from the manager.
        """
        self._api = api
        self._key = key
        self._registry = registry
        self.name = f"smdebug-agent-{hashlib.sha256(key.read_bytes()).hexdigest()[:12]}"
        self.label = {AGENT_LABEL: self.name}
        """Label of the services that need these agents. The agents stay as long as there is such a service."""

    def start(self, image: str, list_ready: Callable[[], Collection[str]]) -> None:
        """Start an agent on every node, unless agents from before a restart are running.

        Args:
            image: id of the agents' image.
            list_ready: function that returns the ids of the nodes with a running agent.

        Raises:
            ContainerRuntimeError: no node has an agent.
        """
        # Without an agent the image cannot be copied to a node. A node that lacks it has to pull it.
        named = image if self._registry is None else self._registry.push(image)
        with translated("start the agents of the Swarm's nodes"):
            self._create(named)
        self._await_agents(image, list_ready)

    def remove(self) -> None:
        """Remove the agents with their key and program, if no container needs them."""
        filters = {"label": [f"{AGENT_LABEL}={self.name}"]}
        if any(each["Spec"]["Name"] != self.name for each in self._api.services(filters=filters)):
            return
        with suppress(docker.errors.NotFound):
            self._api.remove_service(self.name)
        for secret in self._api.secrets(filters=filters):
            self._api.remove_secret(secret["ID"])
        for config in self._api.configs(filters=filters):
            self._api.remove_config(config["ID"])

    def find_failures(self) -> dict[str, str]:
        """Return the reason why an agent did not start, by the id of its node."""
        with translated("list the agents of the Swarm's nodes"):
            tasks = self._api.tasks({"service": self.name})
        return {
            task["NodeID"]: task["Status"].get("Err", "")
            for task in tasks
            if task["Status"]["State"] in ("rejected", "failed") and task.get("NodeID")
        }

    def _create(self, image: str) -> None:
        key, program = self._key.read_bytes(), _build_program()
        digest = hashlib.sha256(key + program + image.encode()).hexdigest()[:16]
        found = self._api.services(filters={"name": self.name})
        if any(each["Spec"]["Labels"].get("smdebug-emulator.key") == digest for each in found):
            return
        for each in found:
            self._api.remove_service(each["ID"])
        name = f"{self.name}-{digest}"
        secret = _create_unless_there(self._api, "secrets", name, key, self.label)
        config = _create_unless_there(self._api, "configs", name, program, self.label)
        mounts = [(agent.ENGINE, agent.ENGINE, False), ("/proc", agent.PROCESSES, True)]
        mounts.append(("/sys/fs/cgroup", agent.GROUPS, True))
        # Only the node knows where its engine keeps volumes. The agent opens that folder and gives up the rest.
        mounts.append(("/", agent.ROOT, False))
        file = {"UID": "0", "GID": "0", "Mode": 0o400}
        spec = {
            "Name": self.name,
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
        url = build_url(self._api, "/services/create")
        raise_for_status(self._api.post(url, json=spec, headers=headers, timeout=REQUEST_SECONDS))

    def _await_agents(self, image: str, list_ready: Callable[[], Collection[str]]) -> None:
        """Wait until every node has its agent. A node without an agent gets no tasks, and a warning is logged."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with translated("list the nodes of the Swarm"):
                wanted = {each["ID"]: each for each in self._api.nodes() if takes_tasks(each)}
            ready = set(list_ready())
            if ready >= wanted.keys():
                return
            failures = self.find_failures()
            refused = {node_id: failures[node_id] for node_id in failures.keys() & (wanted.keys() - ready)}
            if refused.keys() | ready >= wanted.keys() or time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        for node_id in wanted.keys() - ready:
            logger.warning(
                "The node %s has no agent and gets no tasks: %s. Its engine needs the agents' image: %s.",
                name_node(wanted[node_id]),
                refused.get(node_id) or "it did not start in time",
                describe_image_copy(image),
            )
        if not ready:
            raise ContainerRuntimeError(
                f"No node of the Swarm has an agent: {'; '.join(refused.values()) or 'they did not start in time'}. "
                f"Their engines need the agents' image: {describe_image_copy(image)}."
            )


def takes_tasks(node: dict[str, Any]) -> bool:
    """Return whether a node accepts tasks, from the manager's description of it."""
    return bool(node["Status"]["State"] == "ready" and node["Spec"]["Availability"] == "active")


def name_node(node: dict[str, Any]) -> str:
    """Return the host name and the address of a node, from the manager's description of it."""
    return f"{node['Description']['Hostname']} ({node['Status'].get('Addr') or node['ID']})"


def describe_image_copy(image: str) -> str:
    """Return what brings the agents' image to a node that lacks it."""
    return f"docker save {image} | ssh NODE docker load, or start the emulator with --registry"


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
