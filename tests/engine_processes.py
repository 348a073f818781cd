"""Processes, control groups and network namespaces of engines."""

import contextlib
import errno
import subprocess
from collections.abc import Sequence
from pathlib import Path


def list_processes(namespace_name: str) -> list[int]:
    """List the processes that see the network of this name, or the mounts of one that does, and their children."""
    namespace = Path(f"/run/netns/{namespace_name}")
    if not namespace.exists():
        return []
    network = namespace.stat().st_ino
    everyone = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                everyone.append((int(entry.name), *((entry / "ns" / kind).stat().st_ino for kind in ("net", "mnt"))))
    here = Path("/proc/self/ns/mnt").stat().st_ino
    mounts = {mount for _, net, mount in everyone if net == network} - {here}
    found = [pid for pid, net, mount in everyone if net == network or mount in mounts]
    # A container has a network and mounts of its own, but its parent, the shim, has not.
    return found + _list_children(found)


def _list_children(parents: Sequence[int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    known, unseen = set(parents), list(parents)
    while unseen:
        for child in children.get(unseen.pop(), ()):
            if child not in known:
                known.add(child)
                unseen.append(child)
    return sorted(known - set(parents))


def remove_group(folder: Path) -> bool:
    """Remove a control group, unless there is a process in it that nobody has buried yet."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def release_namespaces() -> None:
    """Remove the mount that the first ``ip netns add`` made for its names, unless somebody has some."""
    folder = Path("/run/netns")
    if folder.is_mount() and not any(folder.iterdir()):
        done = subprocess.run(["umount", str(folder)], check=False, capture_output=True, text=True)
        if done.returncode and folder.is_mount() and not any(folder.iterdir()):
            raise RuntimeError(f"`umount {folder}` failed: {done.stderr.strip()}")
