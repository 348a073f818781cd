"""Service specifications: a container as a Swarm service of one task."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from container_runtime.docker.engine import LOG_OPTIONS, OPEN_FILES
from container_runtime.docker.images.local_images import LocalImage
from container_runtime.docker.network import NOBODY, NOBODY_OPTIONS
from container_runtime.spec import ContainerSpec, Mount
from container_runtime.swarm.capacity import PROMISE_LABEL, Promise
from container_runtime.swarm.file_transfer.carried_folders import BEGIN_FILE, BEGIN_FOLDER, Carried, list_volumes
from container_runtime.swarm.nodes import SwarmNode

# A program begins when the ports and host names that it may need are available, or without them after a minute. A proxy
# needs the network of a running task, so it opens after the task's start; the kernel lists the sockets of each network.
# The tasks of one job start one after the other on different machines, and a host name resolves once its task runs. The
# wait is measured by the clock, because a DNS query without an answer takes seconds.
_BEGIN = """
{first}
read_clock() {{ read -r now rest </proc/uptime; now=${{now%%.*}}; }}
read_clock; last=$((now+{seconds}))
is_named() {{ getent ahostsv4 "$1" >/dev/null; }}
is_open() {{ while read -r a here b state c; do [ "$here $state" = "$1 0A" ] && return; done </proc/net/tcp; false; }}
hold() {{ until "$@"; do read_clock; [ $now -ge $last ] && return; sleep 0.1; done; }}
{holds}
exec "$@"
"""
_HOLD_SECONDS = 60
# A program never begins without its files. The time limit of the other conditions starts when they are there.
_AWAIT_FILES = f"until [ -e {BEGIN_FOLDER}/{BEGIN_FILE} ]; do sleep 0.1; done"
_LOOPBACK = "0100007F"


def build_service(
    spec: ContainerSpec,
    image: LocalImage,
    name: str,
    labels: Mapping[str, str],
    user: tuple[int, int],
    mounts: Sequence[Mount],
    environment: Mapping[str, str],
    nodes: Collection[SwarmNode],
    promise: Promise,
    network: str | None,
    hosts: Sequence[str],
    ports: Sequence[int],
    folders: Sequence[Carried] | None = None,
    *,
    closed: bool = False,
) -> dict[str, Any]:
    """Build the service specification of one container. ``Capacity`` chooses the node.

    Args:
        spec: spec of the container.
        image: image that the container runs.
        name: name of the service.
        labels: labels of the service.
        user: uid and gid that the container runs as.
        mounts: all mounts of the container.
        environment: all environment variables of the container.
        nodes: the nodes that have the image.
        promise: resources that are reserved for the container.
        network: network of the container; None for the node's default network.
        hosts: host names on this network.
        ports: ports of the container's proxy, in the order in which they are opened.
        folders: folders that are copied to the node; None if the node shares the host's folders.
        closed: whether the container reaches nothing outside its network.
    """
    own_labels = {key: value for key, value in labels.items() if key not in spec.labels}
    container: dict[str, Any] = {
        # Use the id: for a tag, a node first queries a registry, which takes twenty seconds without one.
        "Image": image.id,
        "Labels": own_labels,
        "Args": list(spec.command) or None,
        "Env": [f"{key}={value}" for key, value in environment.items()],
        "User": f"{user[0]}:{user[1]}",
        "Init": True,
        "ReadOnly": spec.read_only_root,
        "CapabilityDrop": ["ALL"],
        "StopGracePeriod": 0,
        "Mounts": _build_mounts(name, mounts, folders, own_labels),
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "nofile", "Soft": OPEN_FILES, "Hard": OPEN_FILES},
        ],
    }
    if spec.entrypoint is not None:
        container["Command"] = list(spec.entrypoint)
    if spec.hostname:
        container["Hostname"] = spec.hostname
        if spec.isolated and spec.network is None:
            container["Hosts"] = [f"127.0.0.1 {spec.hostname}"]
    holds = [f"hold is_open {_LOOPBACK}:{port:04X}" for port in ports[-1:]]
    holds += [f"hold is_named {shlex.quote(each)}" for each in hosts if each != spec.hostname]
    if holds or folders:
        begin = _BEGIN.format(seconds=_HOLD_SECONDS, first=_AWAIT_FILES if folders else "", holds="\n".join(holds))
        container["Command"], container["Args"] = ["/bin/sh", "-c", begin, "begin"], list(image.find_argv(spec))
    if closed:
        container["DNSConfig"] = {"Nameservers": [NOBODY], "Options": list(NOBODY_OPTIONS)}
    if spec.shm_bytes is not None:
        options = {"SizeBytes": spec.shm_bytes, "Mode": 0o1777}
        container["Mounts"].append({"Type": "tmpfs", "Target": "/dev/shm", "TmpfsOptions": options})  # noqa: S108
    limits: dict[str, Any] = {"Pids": spec.max_processes}
    if spec.memory_bytes is not None:
        limits["MemoryBytes"] = spec.memory_bytes
    if spec.cpus is not None and spec.cpus < max(each.cpus for each in nodes):
        limits["NanoCPUs"] = 10**9 * spec.cpus
    return {
        "Name": name,
        "Labels": {**labels, PROMISE_LABEL: promise.write()},
        "Mode": {"ReplicatedJob": {"MaxConcurrent": 1, "TotalCompletions": 1}},
        # The host name resolves to the task's own address instead of that of a load balancer.
        "EndpointSpec": {"Mode": "dnsrr"},
        "TaskTemplate": {
            "ContainerSpec": container,
            "Resources": {"Limits": limits},
            "RestartPolicy": {"Condition": "none"},
            "LogDriver": {"Name": "json-file", "Options": LOG_OPTIONS},
            "Networks": [{"Target": network, "Aliases": [spec.hostname]}] if network else [],
        },
    }


def _build_mounts(
    name: str, mounts: Sequence[Mount], folders: Sequence[Carried] | None, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    if folders is None:
        return [
            {"Type": "bind", "Source": str(each.source), "Target": each.target, "ReadOnly": each.read_only}
            for each in mounts
        ]
    volumes = {each.source: each.volume for each in folders}
    seen = [(volumes[str(each.source)], each.target, each.read_only) for each in mounts]
    if folders:
        seen.append((list_volumes(name, folders)[-1], BEGIN_FOLDER, True))
    # NoCopy: a volume hides the image's files at its target, as a bind mount does.
    options = {"NoCopy": True, "Labels": dict(labels)}
    return [
        {"Type": "volume", "Source": volume, "Target": target, "ReadOnly": read_only, "VolumeOptions": options}
        for volume, target, read_only in seen
    ]
