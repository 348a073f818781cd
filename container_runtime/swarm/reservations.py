"""Reservations of nodes that all emulators of a Swarm see.

Each is a config of the Swarm, since only its managers order what several emulators do at once.
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

import docker
import docker.errors

from container_runtime.docker.engine import INSTANCE_LABEL

RESERVED_LABEL = "smdebug-emulator.reserved"
"""Label of a config: nodes, and what is reserved on each, separated by commas."""
# Between the choice of nodes and the last service of a request. An emulator that was killed in between leaves its
# reservations behind, which count no longer than this.
_LONGEST = timedelta(minutes=2)


class Reservations:
    """The reservations of one emulator, and those of the others."""

    def __init__(self, api: docker.APIClient, instance_id: str) -> None:
        """Use the client of a manager's engine."""
        self._api = api
        self._instance_id = instance_id

    def publish(self, nodes: Iterable[tuple[str, str]]) -> str:
        """Reserve nodes, each with a text that says what is reserved on it; return the reservation's id.

        Raises:
            docker.errors.APIError: the engine refuses it.
        """
        text = ",".join(f"{node} {reserved}" for node, reserved in nodes)
        labels = {INSTANCE_LABEL: self._instance_id, RESERVED_LABEL: text}
        return str(self._api.create_config(f"smdebug-reserved-{uuid.uuid4().hex}", text.encode(), labels=labels)["ID"])

    def withdraw(self, reservation: str) -> None:
        """End a reservation."""
        with suppress(docker.errors.NotFound):
            self._api.remove_config(reservation)

    def list_others(self, before: str | None = None) -> Iterator[tuple[str, str]]:
        """Yield what other emulators have reserved, by node.

        Args:
            before: one of this emulator's reservations: only what was reserved before it counts. None for everything.
        """
        found = {each["ID"]: each for each in self._api.configs(filters={"label": [RESERVED_LABEL]})}
        mine = found.get(before or "")
        if before is not None and mine is None:
            raise docker.errors.NotFound(f"The reservation {before} is gone.")
        others = [each for each in found.values() if each["Spec"]["Labels"][INSTANCE_LABEL] != self._instance_id]
        now = _read_time(self._api.info()["SystemTime"]) if others else None
        for each in others:
            labels = each["Spec"]["Labels"]
            if now is not None and now - _read_time(each["CreatedAt"]) > _LONGEST:
                self.withdraw(each["ID"])
            elif mine is None or each["Version"]["Index"] < mine["Version"]["Index"]:
                for reserved in filter(None, labels[RESERVED_LABEL].split(",")):
                    node, _, text = reserved.partition(" ")
                    yield node, text

    def withdraw_all(self) -> None:
        """End the reservations that this emulator has left behind when it was killed."""
        for each in self._api.configs(filters={"label": [f"{INSTANCE_LABEL}={self._instance_id}"]}):
            if RESERVED_LABEL in each["Spec"]["Labels"]:
                self.withdraw(each["ID"])


def _read_time(text: str) -> datetime:
    """Parse a time of the engine's, to the second; all of them are UTC."""
    return datetime.fromisoformat(text[:19])
