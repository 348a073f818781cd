"""Labels of the containers that spare ones have become.

The engine cannot change the labels of a container that exists, so a file has those of the container that a spare one
became. It is written before the container's program begins.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from container_runtime.docker.spares.spare import SPARE_LABEL, has_begun

_RECORDS = "given-away"


class GivenAway:
    """The records of one back end, in its folder of spare containers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._records = folder / _RECORDS

    def add(self, container_id: str, labels: Mapping[str, str]) -> None:
        """Record the labels of the container that a spare one becomes.

        Raises:
            OSError: the record cannot be written.
        """
        self._records.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self._records / f"{container_id}.new"
        new.write_text(json.dumps(dict(labels)), encoding="utf-8")
        new.replace(self._records / container_id)

    def find_labels(self, container: Mapping[str, Any]) -> dict[str, str] | None:
        """Return the labels of a container of the engine's list; None for a spare one that was not given away."""
        labels: dict[str, str] = container["Labels"]
        if SPARE_LABEL not in labels:
            return labels
        try:
            recorded: dict[str, str] = json.loads((self._records / container["Id"]).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return recorded

    def forget(self, container_id: str) -> None:
        """Remove a record, after the container was removed. Idempotent."""
        with suppress(FileNotFoundError):
            (self._records / container_id).unlink()

    def clear_away(self, containers: Iterable[Mapping[str, Any]], remove: Callable[[str], None]) -> None:
        """Remove what an earlier process left: spare containers that had not begun, their files, and old records.

        Args:
            containers: all containers of this back end, as the engine lists them.
            remove: removes a container.
        """
        kept = set()
        for container in containers:
            name = container["Labels"].get(SPARE_LABEL)
            if name is None:
                continue
            if self.find_labels(container) is not None and has_begun(self._folder, name):
                kept.add(container["Id"])
            else:
                remove(container["Id"])
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name != _RECORDS:
                shutil.rmtree(path, ignore_errors=True)
        for record in os.listdir(self._records) if self._records.is_dir() else ():  # noqa: PTH208 - names
            if record not in kept:
                self.forget(record)
