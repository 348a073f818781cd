"""Versions of a framework that a hook was made for."""

from __future__ import annotations

import re
from functools import cache

from smdebug.logger import get_logger


@cache
def check_version(
    framework: str, version: str, *, first: tuple[int, int], end: tuple[int, int] | None = None, missing: str
) -> bool:
    """Say once that a version is none of those that a hook was made for; return whether it is one of them.

    Args:
        framework: its name, for people.
        version: as the framework itself says it; one that does not begin with two numbers is taken as supported.
        first: major and minor number of the first that is supported.
        end: of the first after it that is not any more.
        missing: what such a version does not show.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        return True
    numbers = int(found[1]), int(found[2])
    supported = first <= numbers and (end is None or numbers < end)
    if not supported:
        wanted = f"{first[0]}.{first[1]} or later" + (f", and older than {end[0]}.{end[1]}" if end else "")
        get_logger().warning(
            "%s %s is not what this hook was made for, which is %s: %s is not saved.",
            framework,
            version,
            wanted,
            missing,
        )
    return supported
