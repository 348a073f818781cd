"""Networks on a Docker engine: one of the back end itself, and one for each group of containers that train together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import docker
import docker.errors

from container_runtime.docker_border import translated
from container_runtime.runtime import ContainerRuntimeError, FoundNetwork, Network, NetworkExhaustedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# An engine calls the only network of a container this.
_INTERFACE = "eth0"
# Each container has ports of its own, so any will do: the sagemaker-training toolkit's.
_RENDEZVOUS_PORT = 7777
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
                _create(api, name, labels)
            except docker.errors.APIError as exc:
                if exc.status_code != 409:  # made by another process meanwhile
                    raise
            network = api.inspect_network(name)
    return str(network["IPAM"]["Config"][0]["Gateway"])


def create_hosts_network(api: docker.APIClient, name: str, hosts: Sequence[str], labels: Mapping[str, str]) -> Network:
    """See ``ContainerRuntime.create_network``: the engine's own name server answers for each host's alias.

    A bridge of its own: the engine drops packets between bridges, but not those to its host's addresses, among which
    is the gateway of the back end's own network.
    """
    with translated(f"make the network {name}"):
        _create(api, name, labels)
    return Network(name, {host: host for host in hosts}, _INTERFACE, _RENDEZVOUS_PORT)


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


def _create(api: docker.APIClient, name: str, labels: Mapping[str, str]) -> None:
    try:
        api.create_network(name, driver="bridge", labels=dict(labels), check_duplicate=True)
    except docker.errors.APIError as exc:
        if any(text in str(exc.explanation) for text in _EXHAUSTED):
            raise NetworkExhaustedError(
                f"The Docker engine has no address range left for the network {name}. Remove networks that are not "
                "used (`docker network prune`), wait until other jobs have ended, or give the engine more "
                "(`default-address-pools` in its daemon.json)."
            ) from exc
        raise
