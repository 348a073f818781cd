"""Hosts of a training job: names, addresses, and their shares of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from container_runtime.process.loopback_network import draw_port
from container_runtime.runtime import Network

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# One machine trains them all. AWS's limit depends on the account, and is 4 for most instance types of a new one.
MAX_HOSTS = 16
# AWS's name for the one group of a job without InstanceGroups.
INSTANCE_GROUP = "homogeneousCluster"
# What a container alone calls its interface; scripts hand it to NCCL or Gloo.
_INTERFACE = "eth0"

# The SDK's ``distribution={"torch_distributed": {"enabled": True}}``.
_TORCH_DISTRIBUTED = "sagemaker_torch_distributed_enabled"


@dataclass(frozen=True, slots=True)
class Host:
    """One instance of a job.

    Attributes:
        name: ``algo-1`` and so on, counted through all groups.
        group: InstanceGroupName.
        instance_type: e.g. ``ml.m5.large``.
    """

    name: str
    group: str
    instance_type: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """All hosts of a job.

    Attributes:
        hosts: in the order of their numbers.
        network: how they reach each other; None where there is only one.
    """

    hosts: tuple[Host, ...]
    network: Network | None = None

    def find_address(self, host: Host) -> str:
        """Find what the others reach ``host`` by: its name, or where names of hosts do not resolve its IP address."""
        return host.name if self.network is None else self.network.addresses[host.name]


def list_hosts(request: Mapping[str, Any]) -> tuple[Host, ...]:
    """List the hosts that ResourceConfig asks for, group after group."""
    resources = request.get("ResourceConfig") or {}
    groups = resources.get("InstanceGroups") or [
        {
            "InstanceGroupName": INSTANCE_GROUP,
            "InstanceType": resources.get("InstanceType"),
            "InstanceCount": resources.get("InstanceCount") or 1,
        }
    ]
    places = [group for group in groups for _ in range(group["InstanceCount"])]
    return tuple(
        Host(f"algo-{number}", group["InstanceGroupName"], group["InstanceType"])
        for number, group in enumerate(places, start=1)
    )


def list_receivers(channel: Mapping[str, Any], hosts: Sequence[Host]) -> list[Host]:
    """List the hosts that get a channel: those of the groups that it names, or all."""
    groups = (channel["DataSource"].get("S3DataSource") or {}).get("InstanceGroupNames")
    return [host for host in hosts if not groups or host.group in groups]


def describe_resources(cluster: Cluster, current: Host) -> dict[str, Any]:
    """Content of resourceconfig.json for the host ``current``."""
    members: dict[str, list[Host]] = {}
    for host in cluster.hosts:
        members.setdefault(host.group, []).append(host)
    return {
        "current_host": cluster.find_address(current),
        "current_instance_type": current.instance_type,
        "current_group_name": current.group,
        "hosts": [cluster.find_address(host) for host in cluster.hosts],
        "instance_groups": [
            {
                "instance_group_name": group,
                "instance_type": hosts[0].instance_type,
                "hosts": [cluster.find_address(host) for host in hosts],
            }
            for group, hosts in members.items()
        ],
        "network_interface_name": _INTERFACE if cluster.network is None else cluster.network.interface,
    }


def build_rendezvous_environment(cluster: Cluster, current: Host, request: Mapping[str, Any]) -> dict[str, str]:
    """Build what AWS's framework containers set so that the hosts' processes find each other.

    A host that is alone meets itself, as scripts for any number of hosts do: at the loopback address, for the names of
    hosts do not resolve in every back end.

    Raises:
        NetworkExhaustedError: no port is free.
    """
    network = cluster.network or Network("alone", {current.name: "127.0.0.1"}, "lo", draw_port())
    ranks = {}
    if (request.get("HyperParameters") or {}).get(_TORCH_DISTRIBUTED) == "true":
        # AWS's PyTorch containers start the script through torchrun then: on a host without GPUs, one process of it.
        rank, count = cluster.hosts.index(current), len(cluster.hosts)
        ranks = {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    return {
        **ranks,
        "MASTER_ADDR": network.addresses[cluster.hosts[0].name],
        "MASTER_PORT": str(network.rendezvous_port),
        "NCCL_SOCKET_IFNAME": network.interface,
        # Gloo would otherwise look the machine's own name up, which need not resolve to where the others are.
        "GLOO_SOCKET_IFNAME": network.interface,
    }
