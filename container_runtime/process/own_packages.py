"""Where pip puts what a container installs: packages of its own, over those of the environment that it runs in.

Local processes share that environment with each other, and often with the emulator. A script's ``requirements.txt``
must change it for none of them.
"""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from container_runtime.process.environments import OwnEnvironment

_FOLDER = "own-packages"


def build_variables(scratch: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables by which pip installs into the container's own packages, and Python finds these first.

    Args:
        scratch: the container's folder, in which ``make_own_packages`` makes one.
        environment: what the container gets beside; its PYTHONPATH is kept.
    """
    folder = scratch / _FOLDER
    path = [str(folder / "packages"), environment.get("PYTHONPATH", "")]
    return {"PIP_PYTHON": str(folder / "bin" / "python"), "PYTHONPATH": os.pathsep.join(filter(None, path))}


def make_own_packages(scratch: Path, shared: OwnEnvironment | None) -> None:
    """Make the virtual environment that pip installs into.

    It is empty and lies over a shared one: pip takes what is in that for installed, and replaces or removes none of it.

    Args:
        scratch: the container's folder.
        shared: the image's environment, which is complete; this interpreter's own when None.
    """
    if shared is None:
        python, below = Path(sys.executable), [*site.getsitepackages(), site.getusersitepackages()]
        library = f"python{sys.version_info.major}.{sys.version_info.minor}"
    else:
        python, below = shared.python, [str(shared.site_packages)]
        library = shared.site_packages.parent.name
    folder = scratch / _FOLDER
    packages = folder / "lib" / library / "site-packages"
    packages.mkdir(parents=True)
    (folder / "packages").symlink_to(packages)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(python)
    # Python finds its library beside the interpreter itself, at the end of all links.
    (folder / "pyvenv.cfg").write_text(f"home = {python.resolve().parent}\n", encoding="utf-8")
    lines = [f"import site; site.addsitedir({path!r})\n" for path in below]
    (packages / "below.pth").write_text("".join(lines), encoding="utf-8")
