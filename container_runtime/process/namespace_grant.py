"""Test whether the kernel grants namespaces to a process.

It is made once, in a process of its own, with ``namespaces.py``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROGRAM = Path(__file__).with_name("namespaces.py")


@dataclass(frozen=True, slots=True)
class NamespaceGrant:
    """What the kernel grants.

    Attributes:
        mounts: a process may see folders at places of its own.
        network: it may also have no network.
        refusal: what the kernel said to the one that is not granted; empty where both are.
    """

    mounts: bool
    network: bool
    refusal: str = ""


@cache
def probe_namespaces() -> NamespaceGrant:
    """Try it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "seen").touch()
        if not (refusal := _try(folder, "isolated")):
            return NamespaceGrant(mounts=True, network=True)
        if not (without_mounts := _try(folder)):
            return NamespaceGrant(mounts=True, network=False, refusal=refusal)
        return NamespaceGrant(mounts=False, network=False, refusal=without_mounts)


def _try(folder: str, *isolated: str) -> str:
    """Return what went wrong, or nothing."""
    command = [sys.executable, "-I", "-S", str(_PROGRAM), folder, *isolated]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else tried.stderr.strip() or f"it ended with {tried.returncode}"
