"""Test whether the kernel grants namespaces to a process.

The test runs once, in a separate process, with ``namespaces.py``.
"""

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PROGRAM = Path(__file__).with_name("namespaces.py")


class NamespaceGrant(NamedTuple):
    """The namespaces that the kernel grants.

    Attributes:
        mounts: whether a process may have private mounts.
        network: whether a process may also be isolated from the network.
        refusal: the kernel's error for what is not granted; empty if both are granted.
    """

    mounts: bool
    network: bool
    refusal: str = ""


@cache
def probe_namespaces() -> NamespaceGrant:
    """Test which namespaces the kernel grants. The result is cached."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "seen").touch()
        if not (refusal := _try(folder, "isolated")):
            return NamespaceGrant(mounts=True, network=True)
        if not (without_mounts := _try(folder)):
            return NamespaceGrant(mounts=True, network=False, refusal=refusal)
        return NamespaceGrant(mounts=False, network=False, refusal=without_mounts)


def _try(folder: str, *isolated: str) -> str:
    """Return the error, or an empty string on success."""
    command = [sys.executable, "-I", "-S", str(_PROGRAM), folder, *isolated]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else tried.stderr.strip() or f"it ended with {tried.returncode}"
