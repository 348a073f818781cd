"""CPU architecture that wheels, environments and images are for."""

import platform

# What macOS and Windows call those of Linux.
_NAMES = {"arm64": "aarch64", "amd64": "x86_64"}
ARCHITECTURES = ("x86_64", "aarch64")
"""Those that there are lock files for."""


def find_architecture() -> str:
    """Return this machine's architecture by Linux's name: an engine here runs containers of the same."""
    found = platform.machine().lower()
    return _NAMES.get(found, found)
