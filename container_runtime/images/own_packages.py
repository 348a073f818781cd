"""Separate pip target of a container, layered over a shared environment.

Local processes share that environment with each other, and often with the emulator; a Docker container cannot write
to its image's. A script's ``requirements.txt`` must change it for none of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FOLDER = "own-packages"


def build_variables(folder: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables by which pip installs into the container's own packages, and Python finds these first.

    Args:
        folder: what ``make_own_packages`` makes, as the container sees it.
        environment: what the container gets beside; its PYTHONPATH is kept.
    """
    path = [f"{folder}/packages", environment.get("PYTHONPATH", "")]
    return {"PIP_PYTHON": f"{folder}/bin/python", "PYTHONPATH": os.pathsep.join(filter(None, path))}


def make_own_packages(folder: Path, python: str, home: str, library: str, below: Sequence[str]) -> None:
    """Make the virtual environment that pip installs into.

    It is empty and lies over a shared one: pip takes what is in that for installed, and replaces or removes none of it.

    Args:
        folder: to make it in.
        python: the shared environment's interpreter, as the container sees it.
        home: the folder of that interpreter at the end of all links: Python finds its library beside it.
        library: what that is called, e.g. ``python3.11``.
        below: folders of the shared packages.
    """
    packages = folder / "lib" / library / "site-packages"
    packages.mkdir(parents=True)
    (folder / "packages").symlink_to(packages.relative_to(folder))
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(python)
    (folder / "pyvenv.cfg").write_text(f"home = {home}\n", encoding="utf-8")
    lines = [f"import site; site.addsitedir({path!r})\n" for path in below]
    (packages / "below.pth").write_text("".join(lines), encoding="utf-8")
