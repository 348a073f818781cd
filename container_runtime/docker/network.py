"""Docker networks: one for the back end, and one for each job's hosts."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any, NamedTuple

import docker
import docker.errors
from docker.types import IPAMConfig, IPAMPool

from container_runtime.docker.border import translated
from container_runtime.runtime import ContainerRuntimeError, FoundNetwork, Network, NetworkExhaustedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# An engine calls the only network of a container this.
INTERFACE = "eth0"
# Each container has ports of its own, so any will do: the sagemaker-training toolkit's.
RENDEZVOUS_PORT = 7777
# The names of a network's hosts, in the order of their addresses, on the network itself.
HOSTS_LABEL = "smdebug-emulator.hosts"
# A network's first address is the network's own, and its second the gateway's.
NOBODY = "192.0.2.1"
"""An address that nobody has, as the resolver of containers whose network is closed.

Asked for a name that it does not know, an engine without the mend of CVE-2024-29018 passes the question on from its own
network, where its resolver has a loopback address. This one is asked from within the container's, which leads nowhere.
"""
NOBODY_OPTIONS = ("timeout:1", "attempts:1")
"""Of such a resolver: who asks for a name that there is not knows it after two seconds, and not after twenty."""

_FIRST_HOST = 2
# How engines of different age say that another network has got the range meanwhile.
_OVERLAPS = ("overlaps with other one", "overlaps with existing")
_CREATIONS = 5
# How engines of different age say that their address pools (31 bridge networks by default) are used up.
_EXHAUSTED = ("non-overlapping IPv4 address pool", "predefined address pools have been fully subnetted")


def ensure_network(api: docker.APIClient, name: str, labels: Mapping[str, str]) -> str:
    """Make the network unless it is there; returns its gateway's address.

    Raises:
        NetworkExhaustedError, ContainerRuntimeError, EngineUnavailableError.
    """
    with translated(f"make the network {name}"):
        try:
            network = api.inspect_network(name)
        except docker.errors.NotFound:
            try:
                # Containers on it are of different jobs: each reaches its gateway, and no other one.
                _create(api, name, labels, options={"com.docker.network.bridge.enable_icc": "false"})
            except docker.errors.APIError as exc:
                if exc.status_code != 409:  # made by another process meanwhile
                    raise
            network = api.inspect_network(name)
    return str(network["IPAM"]["Config"][0]["Gateway"])


class HostAttachment(NamedTuple):
    """Where a container stands on a network of hosts.

    Attributes:
        endpoint: the API's EndpointSettings.
        neighbours: IP addresses of the other hosts by their names.
    """

    endpoint: dict[str, Any]
    neighbours: dict[str, str]


def create_hosts_network(
    api: docker.APIClient, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool
) -> Network:
    """See ``ContainerRuntime.create_network``: each host has its address before any of them has started.

    The engine's own name server knows a host only while its container runs: the first to start would not find the
    others. So each container gets all names in its /etc/hosts, see ``find_attachment``.

    A bridge of its own: the engine drops packets between bridges, but not those to its host's addresses, among which
    is the gateway of the back end's own network.
    """
    labels = {**labels, HOSTS_LABEL: json.dumps(list(hosts))}
    with translated(f"make the network {name}"):
        for _ in range(_CREATIONS):
            _create(api, name, labels, isolated=isolated)
            # An engine lets addresses be chosen only in a range that was chosen, too: take the one that it has found.
            subnet = api.inspect_network(name)["IPAM"]["Config"][0]["Subnet"]
            api.remove_network(name)
            room = IPv4Network(subnet).num_addresses - _FIRST_HOST - 1
            if len(hosts) > room:
                raise ContainerRuntimeError(f"The network {name} cannot hold {len(hosts)} hosts: {room} fit.")
            try:
                _create(api, name, labels, subnet, isolated=isolated)
            except docker.errors.APIError as exc:
                if not any(text in str(exc.explanation) for text in _OVERLAPS):
                    raise
            else:
                return Network(name, {host: host for host in hosts}, INTERFACE, RENDEZVOUS_PORT)
    raise ContainerRuntimeError(f"Others took each address range that the engine had for the network {name}.")


def find_attachment(api: docker.APIClient, network: str, host: str) -> HostAttachment:
    """Where a host of a network that ``create_hosts_network`` made stands.

    Raises:
        docker.errors.NotFound: there is no such network.
    """
    found = api.inspect_network(network)
    subnet = IPv4Network(found["IPAM"]["Config"][0]["Subnet"])
    hosts = json.loads(found["Labels"][HOSTS_LABEL])
    addresses = {each: str(subnet[number]) for number, each in enumerate(hosts, start=_FIRST_HOST)}
    endpoint = {"Aliases": [host], "IPAMConfig": {"IPv4Address": addresses.pop(host)}}
    return HostAttachment(endpoint, addresses)


def find_networks(api: docker.APIClient, labels: Mapping[str, str]) -> list[FoundNetwork]:
    """See ``ContainerRuntime``."""
    with translated("list networks"):
        found = api.networks(filters={"label": [f"{key}={value}" for key, value in labels.items()]})
    return [FoundNetwork(entry["Name"], entry["Labels"]) for entry in found]


def remove_network(api: docker.APIClient, name: str) -> None:
    """See ``ContainerRuntime``."""
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
    # An internal network has no way out, but the host has an address on it, unless it is told to take none.
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
