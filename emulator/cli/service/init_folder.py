"""Initialisation scripts of ``start --init-folder``."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from emulator.settings import Settings

logger = logging.getLogger(__name__)

_INTERPRETERS = {".py": [sys.executable], ".sh": ["sh"]}
_SHOWN_CHARACTERS = 2000


def list_scripts(folder: Path) -> list[Path]:
    """List the scripts of a folder in the order of their names: ``*.py``, ``*.sh``, and what may be executed.

    Raises:
        OSError: the folder cannot be read.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [path for path in files if path.suffix in _INTERPRETERS or os.access(path, os.X_OK)]


def run_scripts(scripts: Iterable[Path], settings: Settings) -> None:
    """Run scripts one after the other, as clients of the emulator that answers; one that fails is said in the log."""
    from emulator.security.trust import build_trust_variables

    environment = {
        **os.environ,
        **settings.container_credentials,
        "AWS_ENDPOINT_URL": settings.endpoint_url,
        "AWS_DEFAULT_REGION": settings.region,
        **({} if settings.ca_bundle is None else build_trust_variables(str(settings.ca_bundle))),
    }
    for script in scripts:
        command = [*_INTERPRETERS.get(script.suffix, []), str(script)]
        try:
            ended = subprocess.run(
                command,
                env=environment,
                cwd=script.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError:
            logger.exception("The script %s of --init-folder cannot be run", script)
            continue
        output = ended.stdout[-_SHOWN_CHARACTERS:].rstrip()
        if ended.returncode:
            logger.error(
                "The script %s of --init-folder failed with exit code %d. It said last:\n%s",
                script,
                ended.returncode,
                output or "nothing",
            )
        else:
            logger.info("The script %s of --init-folder has run.%s", script, f"\n{output}" if output else "")
