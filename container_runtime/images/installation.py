"""Image definitions, smdebug's files and the cache of this installation.

The installation is a checkout or a wheel.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder of this project's packages: the checkout, or the site-packages folder where the wheel is installed."""

DEFINITIONS_FOLDER = ROOT / "rules_images"

_SMDEBUG_VERSION = "1.0.34+emulator"


def locate_cache() -> Path:
    """Return the folder for wheels and environments: ``.cache`` of a checkout, otherwise one in the user's cache."""
    if (ROOT / "pyproject.toml").is_file() and (ROOT / "Makefile").is_file():
        return ROOT / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "smdebug-emulator")


def collect_smdebug(root: Path = ROOT) -> dict[str, Path | bytes]:
    """Return the files and folders of an installed smdebug package, by name in a site-packages folder.

    The metadata satisfies a ``requirements.txt`` that lists upstream's ``smdebug``. Otherwise pip would install that
    over these files. The metadata has no ``RECORD``, because pip refuses to replace a package that it cannot uninstall.
    """
    # A wheel has this file in site-packages, a checkout has it in the package that it imports.
    autoload = root / "smdebug_autoload.pth"
    information = f"smdebug-{_SMDEBUG_VERSION}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: smdebug\nVersion: {_SMDEBUG_VERSION}\n"
    return {
        "smdebug": root / "smdebug",
        autoload.name: autoload if autoload.exists() else root / "smdebug" / "autoload.pth",
        f"{information}/METADATA": metadata.encode(),
        f"{information}/INSTALLER": b"smdebug-emulator\n",
    }
