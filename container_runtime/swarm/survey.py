"""Health check of a Swarm's nodes, shown by ``doctor``.

It finds what would keep jobs from a node before there is a job.
"""

import ipaddress
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import docker

from container_runtime.docker.border import connect, translated
from container_runtime.docker.images.local_images import LocalImages
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.agent_service import describe_image_copy, name_node, takes_tasks
from container_runtime.swarm.engine import AGENT_IMAGE, find_address
from container_runtime.swarm.nodes import Nodes

# Older signatures of requests are refused, as AWS does.
_WRONG_CLOCK_SECONDS = 900.0
_ODD_CLOCK_SECONDS = 5.0
_CONNECT_SECONDS = 3.0
# Loading an image needs space for the archive and the unpacked image.
_CAPACITY_SHARE = 1.2
# Port of the Swarm's communication between engines.
_GOSSIP_PORT = 7946


class Finding(NamedTuple):
    """Result of one check.

    Attributes:
        state: ``ok``, ``note`` or ``missing``.
        found: description of what was found.
        remedy: what to do; empty if there is nothing to do.
    """

    state: str
    found: str
    remedy: str


def survey(folder: Path, registry: str | None, *, start_agents: bool) -> Iterator[Finding]:
    """Check the Swarm whose manager is the engine that ``DOCKER_HOST`` names, or the local one.

    Args:
        folder: folder of the agents' key.
        registry: registry that the nodes pull images from, if any.
        start_agents: whether to start agents for the check and remove them afterwards, because there are none.
    """
    try:
        with closing(connect()) as api:
            find_address(api)
            with translated("look at the Swarm"):
                found, own = api.nodes(), api.info()
            usable = []
            for node in found:
                if (finding := look_from_here(node, own, alone=len(found) == 1)) is not None:
                    yield finding
                if takes_tasks(node) and (finding is None or finding.state != "missing"):
                    usable.append(node)
            if usable:
                yield from _look_inside(api, Nodes(api, folder, registry), usable, own, start_agents=start_agents)
            else:
                yield Finding("missing", "no node of the Swarm can be given a task", "docker node ls")
    except ContainerRuntimeError as error:
        yield Finding("missing", str(error), "")


def look_from_here(node: dict[str, Any], own: dict[str, Any], *, alone: bool) -> Finding | None:
    """Return a problem of a node that the manager knows of; None if there is none."""
    name, address = name_node(node), str(node["Status"].get("Addr", ""))
    if node["Status"]["State"] != "ready":
        remedy = f"start its engine, or forget it: docker node rm --force {node['ID']}"
        return Finding("note", f"node {name} is {node['Status']['State']}, and gets no tasks", remedy)
    if not takes_tasks(node):
        remedy = f"docker node update --availability active {node['ID']}"
        return Finding("note", f"node {name} gets no tasks: {node['Spec']['Availability']}", remedy)
    architecture = node["Description"]["Platform"]["Architecture"]
    if architecture != own["Architecture"]:
        return Finding(
            "missing",
            f"node {name} is of the architecture {architecture}, and the images are of {own['Architecture']}",
            f"docker node update --availability drain {node['ID']}",
        )
    if alone:
        return None
    if _is_only_here(address):
        remedy = "docker swarm leave --force, then docker swarm init or join with --advertise-addr ADDRESS"
        return Finding("missing", f"node {name} gives an address that no other machine reaches", remedy)
    try:
        socket.create_connection((address, _GOSSIP_PORT), _CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or "no answer"
        return Finding(
            "missing",
            f"node {name} does not answer this machine at port {_GOSSIP_PORT}: {reason}",
            "open TCP 2377 and 7946, UDP 7946 and 4789, and TCP from 30000 on between all nodes",
        )
    return None


def _is_only_here(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return True
    return parsed.is_loopback or parsed.is_unspecified


def _look_inside(
    api: docker.APIClient, nodes: Nodes, usable: list[dict[str, Any]], own: dict[str, Any], *, start_agents: bool
) -> Iterator[Finding]:
    """Check clocks and disks of nodes through their agents."""
    agents = LocalImages(api, ImageCatalogue()).resolve(AGENT_IMAGE).id
    try:
        if start_agents:
            nodes.start(agents)
        ready = {each.id for each in nodes.list_ready()}
        failures = nodes.agents.find_failures()
        for node in usable:
            if node["ID"] in ready:
                yield _ask_agent(api, nodes, node, own)
            else:
                yield describe_absent_agent(node, failures.get(node["ID"], ""), agents)
    finally:
        nodes.close(keep_agents=not start_agents)


def describe_absent_agent(node: dict[str, Any], failure: str, image: str) -> Finding:
    """Describe a node whose agent does not run.

    Args:
        node: the manager's description of the node.
        failure: the reason that the Swarm gives; empty if it gives none.
        image: id of the agents' image.
    """
    text = f"node {name_node(node)} has no agent and gets no tasks: {failure or 'it has not started'}"
    return Finding("missing", text, describe_image_copy(image))


def _ask_agent(api: docker.APIClient, nodes: Nodes, node: dict[str, Any], own: dict[str, Any]) -> Finding:
    name = name_node(node)
    try:
        began = time.time()
        condition = nodes.read_condition(node["ID"])
        # Compared with this machine's clock in the middle of the request.
        apart = condition.clock - (began + time.time()) / 2
        lacking = 0 if node["ID"] == own["Swarm"]["NodeID"] else _count_lacking(api, nodes.connect(node["ID"]))
    except ContainerRuntimeError as error:
        return Finding("missing", f"node {name}: {error}", "")
    return judge(name, apart, condition.free_bytes, lacking)


def judge(name: str, apart: float, free_bytes: int, lacking: int) -> Finding:
    """Judge the clock and the disk of a node.

    Args:
        name: host name and address of the node.
        apart: seconds that its clock is ahead of this machine's.
        free_bytes: free bytes on its engine's disk.
        lacking: bytes of the images that it does not have yet.
    """
    if abs(apart) > _WRONG_CLOCK_SECONDS:
        text = f"the clock of node {name} is {apart:+,.0f} s off this machine's: signatures made there are refused"
        return Finding("missing", text, "set both by NTP")
    free = f"{free_bytes / 1e9:.1f} GB are free on node {name}"
    if free_bytes < lacking * _CAPACITY_SHARE:
        text = f"{free}, and the images that it lacks take {lacking / 1e9:.1f} GB"
        return Finding("missing", text, "docker system prune there, or a larger disk")
    if abs(apart) > _ODD_CLOCK_SECONDS:
        text = f"the clock of node {name} is {apart:+,.1f} s off this machine's: times in logs and tensors are, too"
        return Finding("note", text, "set both by NTP")
    return Finding("ok", f"{free}, and it lacks images of {lacking / 1e9:.1f} GB", "")


def _count_lacking(api: docker.APIClient, there: docker.APIClient) -> int:
    """Return the size of this project's images that a node does not have."""
    with translated("list the images of a node"):
        has = {each["Id"] for each in there.images()}
        ours = {each["Id"]: int(each["Size"]) for each in api.images(name="smdebug-emulator/*")}
    return sum(size for image, size in ours.items() if image not in has)
