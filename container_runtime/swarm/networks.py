"""Overlay networks of a Swarm, one for each job with several hosts."""

import json
import time
from collections.abc import Mapping, Sequence

import docker
import docker.errors

from container_runtime.docker.network import HOSTS_LABEL, INTERFACE, RENDEZVOUS_PORT
from container_runtime.runtime import MAX_NETWORK_HOSTS, ContainerRuntimeError, Network

# The tasks of a removed service use its network until their nodes have reported that they ended.
_RELEASE_SECONDS = 30.0
_POLL_SECONDS = 0.05


def create_overlay(
    api: docker.APIClient, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool
) -> Network:
    """Create the network of a job's hosts; an isolated one does not reach the internet."""
    if len(hosts) > MAX_NETWORK_HOSTS:
        raise ContainerRuntimeError(f"The network {name} cannot hold {len(hosts)} hosts: {MAX_NETWORK_HOSTS} fit.")
    api.create_network(
        name,
        driver="overlay",
        attachable=True,
        internal=isolated,
        labels={**labels, HOSTS_LABEL: json.dumps(list(hosts))},
        check_duplicate=True,
    )
    return Network(name, {host: host for host in hosts}, INTERFACE, RENDEZVOUS_PORT)


def find_hosts(api: docker.APIClient, name: str) -> list[str]:
    """Return the hosts of a network.

    Raises:
        docker.errors.NotFound: the network does not exist.
    """
    hosts: list[str] = json.loads(api.inspect_network(name)["Labels"][HOSTS_LABEL])
    return hosts


def remove_overlay(api: docker.APIClient, name: str) -> None:
    """Remove a network, once the nodes have released it."""
    deadline = time.monotonic() + _RELEASE_SECONDS
    while True:
        try:
            identity = api.inspect_network(name)["Id"]
        except docker.errors.NotFound:
            return
        users = [each["Spec"]["TaskTemplate"].get("Networks") or () for each in api.services()]
        if any(network["Target"] in (identity, name) for networks in users for network in networks):
            raise ContainerRuntimeError(f"The network {name} has containers on it: remove them first.")
        try:
            api.remove_network(identity)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as exc:
            if time.monotonic() > deadline:
                raise ContainerRuntimeError(f"The network {name} could not be removed: {exc.explanation}") from exc
        time.sleep(_POLL_SECONDS)
