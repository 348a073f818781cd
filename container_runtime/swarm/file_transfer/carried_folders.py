"""Folders of a container that are copied to and from a Swarm node."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from container_runtime.spec import Mount

BEGIN_FOLDER, BEGIN_FILE = "/run/smdebug-emulator", "begin"
"""The file, in the container, that its program waits for. It appears when the folders are filled."""
_BEGIN = "-begin"


class Carried(NamedTuple):
    """A folder that a container mounts.

    Attributes:
        volume: name of the volume on the node.
        source: folder of this machine.
        mode: permissions of the volume.
        comes_back: whether the container's changes are copied back to this machine.
    """

    volume: str
    source: str
    mode: int
    comes_back: bool


def list_carried(container: str, mounts: Iterable[Mount], shared: Iterable[Mount]) -> list[Carried]:
    """Return the folders of a container that are copied.

    Args:
        container: id of the container.
        mounts: all mounts of the container.
        shared: the mounts in its spec. The other mounts are used only by the container and are not copied back.
    """
    read = {each.source for each in shared if not each.read_only}
    sources = dict.fromkeys(each.source for each in mounts)
    return [
        Carried(f"{container}-{number}", str(source), source.stat().st_mode & 0o1777, source in read)
        for number, source in enumerate(sources)
    ]


def list_volumes(container: str, folders: Sequence[Carried]) -> list[str]:
    """Return the names of all volumes of a container. The last one holds the file that its program waits for."""
    return [*(each.volume for each in folders), f"{container}{_BEGIN}"]


def write_label(folders: Sequence[Carried]) -> str:
    """Return the label that records the folders of a container for a later process."""
    return json.dumps(folders)


def read_label(label: str) -> list[Carried]:
    """Parse a label of ``write_label``."""
    return [Carried(*each) for each in json.loads(label)]
