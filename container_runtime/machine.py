"""This machine, or the container that this process is in."""

import os
from contextlib import suppress
from pathlib import Path

IMAGE_VARIABLE = "SMDEBUG_EMULATOR_OWN_IMAGE"
"""Variable that the emulator's own image sets, for advice that fits a container."""

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def is_in_own_image() -> bool:
    """Return whether this process runs in the emulator's own image."""
    return bool(os.environ.get(IMAGE_VARIABLE))


def count_memory_bytes() -> int:
    """Return the bytes of memory that processes can use: the container's limit if it is below the machine's memory."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in _LIMITS:
        # A limit that is not set is the word `max`, or a number above the machine's memory.
        with suppress(OSError, ValueError):
            found = min(found, int(Path(name).read_text(encoding="ascii")))
    return found
