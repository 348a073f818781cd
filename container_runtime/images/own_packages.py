"""Separate pip target of a container, layered over a shared environment.

Local processes share the environment with each other, and often with the emulator. A Docker container cannot write to
the environment of its image. So packages from a script's ``requirements.txt`` must not change the shared environment.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = "own-packages"


def build_variables(folder: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make pip install into the container's own packages and Python import these first.

    Args:
        folder: path, inside the container, of the folder that ``make_own_packages`` creates.
        environment: the container's other variables; their PYTHONPATH is kept.
    """
    path = [f"{folder}/packages", environment.get("PYTHONPATH", "")]
    return {"PIP_PYTHON": f"{folder}/bin/python", "PYTHONPATH": os.pathsep.join(filter(None, path))}


def make_own_packages(folder: Path, python: str, home: str, library: str, below: Sequence[str]) -> None:
    """Create the virtual environment that pip installs into.

    It is empty and is layered over a shared one. pip regards the packages of the shared environment as installed, but
    does not replace or remove them.

    Args:
        folder: folder to create it in.
        python: the shared environment's interpreter, as the container sees it.
        home: folder of that interpreter with all links resolved. Python finds its standard library from there.
        library: name of the library folder, for example ``python3.11``.
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
