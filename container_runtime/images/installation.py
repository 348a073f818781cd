"""Image definitions, smdebug's files and the cache of this installation.

The installation is a checkout or a wheel.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder of our packages: the checkout, or the site-packages that the wheel was installed in."""

DEFINITIONS_FOLDER = ROOT / "rules_images"

_SMDEBUG_VERSION = "1.0.34+emulator"


def locate_cache() -> Path:
    """Return where wheels and environments are kept: ``.cache`` of a checkout, else a folder of the user's caches."""
    if (ROOT / "pyproject.toml").is_file() and (ROOT / "Makefile").is_file():
        return ROOT / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "smdebug-emulator")


def collect_smdebug(root: Path = ROOT) -> dict[str, Path | bytes]:
    """Return the files and folders, by name, that make up an installed smdebug in a site-packages folder.

    The metadata satisfies a script's ``requirements.txt`` that lists upstream ``smdebug``, which pip would
    otherwise install over these files. It has no ``RECORD``: pip refuses to replace what it cannot take away.
    """
    # The wheel has it where Python looks for it, a checkout beside the module that it imports.
    autoload = root / "smdebug_autoload.pth"
    information = f"smdebug-{_SMDEBUG_VERSION}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: smdebug\nVersion: {_SMDEBUG_VERSION}\n"
    return {
        "smdebug": root / "smdebug",
        autoload.name: autoload if autoload.exists() else root / "smdebug" / "autoload.pth",
        f"{information}/METADATA": metadata.encode(),
        f"{information}/INSTALLER": b"smdebug-emulator\n",
    }
