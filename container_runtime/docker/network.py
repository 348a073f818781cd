"""Docker networks: one for the back end, and one for each job's hosts."""

import json
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any, NamedTuple

import docker
import docker.errors
from docker.types import IPAMConfig, IPAMPool

from container_runtime.docker.border import allowed, translated
from container_runtime.runtime import ContainerRuntimeError, FoundNetwork, Network, NetworkExhaustedError

# Name that an engine gives to a container's only network interface.
INTERFACE = "eth0"
# Each container has its own ports, so any port works. This is the one of the sagemaker-training toolkit.
RENDEZVOUS_PORT = 7777
# Label of a network: the names of its hosts, in the order of their addresses.
HOSTS_LABEL = "smdebug-emulator.hosts"
NOBODY = "192.0.2.1"
"""An unused address, set as the DNS server of containers without internet access.

An engine without the fix of CVE-2024-29018 forwards a query for an unknown name from its own network if its DNS server
has a loopback address. It sends a query to this address from within the container's network, from which nothing is
reachable.
"""
NOBODY_OPTIONS = ("timeout:1", "attempts:1")
"""Resolver options for that DNS server: a query for an unknown name fails after two seconds instead of twenty."""

# The first address is that of the network itself, the second that of the gateway.
_FIRST_HOST = 2
# Messages of different engine versions: another network has taken the address range in the meantime.
_OVERLAPS = ("overlaps with other one", "overlaps with existing")
_CREATIONS = 5
# Messages of different engine versions: the address pools (31 bridge networks by default) are used up.
_EXHAUSTED = ("non-overlapping IPv4 address pool", "predefined address pools have been fully subnetted")


def ensure_network(api: docker.APIClient, name: str, labels: Mapping[str, str]) -> str:
    """Create the network unless it exists, and return the address of its gateway.

    Raises:
        NetworkExhaustedError, ContainerRuntimeError, EngineUnavailableError.
    """
    with translated(f"make the network {name}"):
        try:
            network = api.inspect_network(name)
        except docker.errors.NotFound:
            with allowed(409):  # another process has created it in the meantime
                # Its containers belong to different jobs: they reach the gateway, but not each other.
                _create(api, name, labels, options={"com.docker.network.bridge.enable_icc": "false"})
            network = api.inspect_network(name)
    return str(network["IPAM"]["Config"][0]["Gateway"])


class HostAttachment(NamedTuple):
    """The connection of one container to a network of hosts.

    Attributes:
        endpoint: the ``EndpointSettings`` of the Docker API.
        neighbours: IP addresses of the other hosts by host name.
    """

    endpoint: dict[str, Any]
    neighbours: dict[str, str]


def create_hosts_network(
    api: docker.APIClient, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool
) -> Network:
    """Create a network in which each host has its address before any of them starts.

    The engine's DNS server knows a host only while its container runs, so the first container would not find the
    others. Therefore each container gets the names of all hosts in its /etc/hosts; see ``find_attachment``.

    The network is a separate bridge. The engine drops packets between bridges, but not packets to the addresses of its
    machine, such as the gateway of the back end's network.

    Raises:
        NetworkExhaustedError, ContainerRuntimeError, EngineUnavailableError: as for
            ``ContainerRuntime.create_network``.
    """
    labels = {**labels, HOSTS_LABEL: json.dumps(list(hosts))}
    with translated(f"make the network {name}"):
        for _ in range(_CREATIONS):
            _create(api, name, labels, isolated=isolated)
            # An engine allows fixed addresses only in a fixed range. Let it find a free range, then ask for that one.
            subnet = api.inspect_network(name)["IPAM"]["Config"][0]["Subnet"]
            api.remove_network(name)
            capacity = IPv4Network(subnet).num_addresses - _FIRST_HOST - 1
            if len(hosts) > capacity:
                raise ContainerRuntimeError(f"The network {name} cannot hold {len(hosts)} hosts: {capacity} fit.")
            try:
                _create(api, name, labels, subnet, isolated=isolated)
            except docker.errors.APIError as exc:
                if not any(text in str(exc.explanation) for text in _OVERLAPS):
                    raise
            else:
                return Network(name, {host: host for host in hosts}, INTERFACE, RENDEZVOUS_PORT)
    raise ContainerRuntimeError(f"Others took each address range that the engine had for the network {name}.")


def find_attachment(api: docker.APIClient, network: str, host: str) -> HostAttachment:
    """Return how a host connects to a network that ``create_hosts_network`` created.

    Raises:
        docker.errors.NotFound: the network does not exist.
    """
    found = api.inspect_network(network)
    subnet = IPv4Network(found["IPAM"]["Config"][0]["Subnet"])
    hosts = json.loads(found["Labels"][HOSTS_LABEL])
    addresses = {each: str(subnet[number]) for number, each in enumerate(hosts, start=_FIRST_HOST)}
    endpoint = {"Aliases": [host], "IPAMConfig": {"IPv4Address": addresses.pop(host)}}
    return HostAttachment(endpoint, addresses)


def find_networks(api: docker.APIClient, labels: Mapping[str, str]) -> list[FoundNetwork]:
    """Find the networks that have all of these labels."""
    with translated("list networks"):
        found = api.networks(filters={"label": [f"{key}={value}" for key, value in labels.items()]})
    return [FoundNetwork(entry["Name"], entry["Labels"]) for entry in found]


def remove_network(api: docker.APIClient, name: str) -> None:
    """Remove a network, if there is one of this name."""
    with translated(f"remove the network {name}"):
        try:
            api.remove_network(name)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as exc:
            if exc.status_code != 403:
                raise
            raise ContainerRuntimeError(f"The network {name} has containers on it: remove them first.") from exc


def _create(
    api: docker.APIClient,
    name: str,
    labels: Mapping[str, str],
    subnet: str | None = None,
    *,
    isolated: bool = False,
    options: Mapping[str, str] | None = None,
) -> None:
    ipam = None if subnet is None else IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
    # An internal network has no route out, but the host has an address on it unless this option is set.
    inhibited = {"com.docker.network.bridge.inhibit_ipv4": "true"} if isolated else {}
    try:
        api.create_network(
            name,
            driver="bridge",
            options={**inhibited, **(options or {})},
            labels=dict(labels),
            ipam=ipam,
            check_duplicate=True,
            internal=isolated,
        )
    except docker.errors.APIError as exc:
        if any(text in str(exc.explanation) for text in _EXHAUSTED):
            raise NetworkExhaustedError(
                f"The Docker engine has no address range left for the network {name}. Remove networks that are not "
                "used (`docker network prune`), wait until other jobs have ended, or give the engine more "
                "(`default-address-pools` in its daemon.json)."
            ) from exc
        raise
