"""Tests of reservations that an emulator has left on a Swarm."""

from typing import Any, cast

import docker
import docker.errors
import pytest

from container_runtime.docker.engine import INSTANCE_LABEL
from container_runtime.swarm.reservations import RESERVED_LABEL, Reservations


class Manager:
    """A manager's engine, whose configs are given."""

    def __init__(self, **created: str) -> None:
        self.kept = {
            owner: {
                "ID": owner,
                "Version": {"Index": number},
                "CreatedAt": f"{time}.123456789Z",
                "Spec": {"Labels": {INSTANCE_LABEL: owner, RESERVED_LABEL: f"n{number} 5 6"}},
            }
            for number, (owner, time) in enumerate(created.items())
        }

    def info(self) -> dict[str, Any]:
        return {"SystemTime": "2026-01-01T00:10:00.5Z"}

    def configs(self, filters: object) -> list[dict[str, Any]]:
        return list(self.kept.values())

    def remove_config(self, config: str) -> None:
        if self.kept.pop(config, None) is None:
            raise docker.errors.NotFound("no such config")


def test_a_killed_emulator_keeps_no_node_for_long() -> None:
    manager = Manager(killed="2026-01-01T00:07:00", lives="2026-01-01T00:09:00", mine="2026-01-01T00:09:30")
    reservations = Reservations(cast("docker.APIClient", manager), "mine")
    assert list(reservations.list_others()) == [("n1", "5 6")]
    assert manager.kept.keys() == {"lives", "mine"}


def test_a_reservation_that_is_gone_is_not_compared_with_others() -> None:
    manager = Manager(other="2026-01-01T00:09:00")
    with pytest.raises(docker.errors.NotFound, match="gone"):
        list(Reservations(cast("docker.APIClient", manager), "mine").list_others("mine"))
