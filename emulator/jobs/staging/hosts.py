"""Hosts of a training job: names, addresses, and their shares of channels."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from container_runtime.process.loopback_network import draw_port
from container_runtime.runtime import Network

# All hosts run on this machine. AWS's limit depends on the account; for most instance types of a new account, it is 4.
MAX_HOSTS = 16
# AWS's group name for a job without InstanceGroups.
INSTANCE_GROUP = "homogeneousCluster"
# Name of the network interface in the container of a job with one host. Scripts pass it to NCCL or Gloo.
_INTERFACE = "eth0"

# The hyperparameter that the SDK sets for ``distribution={"torch_distributed": {"enabled": True}}``.
_TORCH_DISTRIBUTED = "sagemaker_torch_distributed_enabled"


class Host(NamedTuple):
    """One instance of a job.

    Attributes:
        name: ``algo-1`` and so on, numbered across all groups.
        group: name of its instance group.
        instance_type: for example ``ml.m5.large``; None if the request has none.
    """

    name: str
    group: str
    instance_type: str | None


class Cluster(NamedTuple):
    """All hosts of a job.

    Attributes:
        hosts: the hosts, in the order of their numbers.
        network: the network between the hosts; None if there is only one host.
    """

    hosts: tuple[Host, ...]
    network: Network | None = None

    def find_address(self, host: Host) -> str:
        """Return the address of ``host`` for other hosts: its name, or its IP address if host names do not resolve."""
        return host.name if self.network is None else self.network.addresses[host.name]


def list_hosts(request: Mapping[str, Any]) -> tuple[Host, ...]:
    """List the hosts in ResourceConfig, group by group."""
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
    """List the hosts that get a channel: the hosts of its InstanceGroupNames, or all hosts."""
    groups = (channel["DataSource"].get("S3DataSource") or {}).get("InstanceGroupNames")
    return [host for host in hosts if not groups or host.group in groups]


def describe_resources(cluster: Cluster, current: Host) -> dict[str, Any]:
    """Build the content of resourceconfig.json for the host ``current``."""
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
    """Build the environment variables with which the hosts' processes find each other, as AWS's containers set them.

    A single host gets them too, because scripts use them for any number of hosts. Its address is the loopback address,
    because host names do not resolve in every back end.

    Raises:
        NetworkExhaustedError: no port is free.
    """
    network = cluster.network or Network("alone", {current.name: "127.0.0.1"}, "lo", draw_port())
    ranks = {}
    if (request.get("HyperParameters") or {}).get(_TORCH_DISTRIBUTED) == "true":
        # In this case, AWS's PyTorch containers start the script with torchrun, as one process on a host without GPUs.
        rank, count = cluster.hosts.index(current), len(cluster.hosts)
        ranks = {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    return {
        **ranks,
        "MASTER_ADDR": network.addresses[cluster.hosts[0].name],
        "MASTER_PORT": str(network.rendezvous_port),
        "NCCL_SOCKET_IFNAME": network.interface,
        # Otherwise Gloo resolves this machine's host name, which may be an address that the other hosts cannot reach.
        "GLOO_SOCKET_IFNAME": network.interface,
    }
