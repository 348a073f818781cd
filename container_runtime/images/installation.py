"""Image definitions, smdebug's files and the cache of this installation.

The installation is a checkout or a wheel.
"""

import os
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder of this project's packages: the checkout, or the site-packages folder where the wheel is installed."""

DEFINITIONS_FOLDER = ROOT / "rules_images"

_PACKAGES = ("container_runtime", "emulator", "rules_images", "sdk_compat", "smdebug", "smdebug_emulator.py")
_AUTOLOAD = "smdebug_autoload.pth"
_DISTRIBUTION = "smdebug-emulator"
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
    information = f"smdebug-{_SMDEBUG_VERSION}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: smdebug\nVersion: {_SMDEBUG_VERSION}\n"
    return {
        "smdebug": root / "smdebug",
        _AUTOLOAD: _locate_autoload(root),
        f"{information}/METADATA": metadata.encode(),
        f"{information}/INSTALLER": b"smdebug-emulator\n",
    }


def collect_emulator(root: Path = ROOT) -> dict[str, Path | bytes]:
    """Return the files and folders of this installation, by name in a site-packages folder.

    The metadata has the version and the entry points, by which container back ends are found.
    """
    installed = distribution(_DISTRIBUTION)
    information = f"{_DISTRIBUTION.replace('-', '_')}-{installed.version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {_DISTRIBUTION}\nVersion: {installed.version}\n"
    return {
        **{name: root / name for name in _PACKAGES},
        _AUTOLOAD: _locate_autoload(root),
        f"{information}/METADATA": metadata.encode(),
        f"{information}/entry_points.txt": (installed.read_text("entry_points.txt") or "").encode(),
    }


def _locate_autoload(root: Path) -> Path:
    # A wheel has this file in site-packages, a checkout has it in the package that it imports.
    found = root / _AUTOLOAD
    return found if found.exists() else root / "smdebug" / "autoload.pth"
