"""Initialisation scripts of ``start --init-folder``."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from emulator.settings import Settings

logger = logging.getLogger(__name__)

_INTERPRETERS = {".py": [sys.executable], ".sh": ["sh"]}
_SHOWN_CHARACTERS = 2000
_POLL_SECONDS, _GRACE_SECONDS = 0.2, 10.0


def list_scripts(folder: Path) -> list[Path]:
    """List the scripts of a folder in the order of their names: ``*.py``, ``*.sh``, and what may be executed.

    Raises:
        OSError: the folder cannot be read.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [path for path in files if path.suffix in _INTERPRETERS or os.access(path, os.X_OK)]


def run_scripts(scripts: Iterable[Path], settings: Settings, is_to_end: Callable[[], bool]) -> None:
    """Run scripts one after the other, as clients of the emulator that answers; one that fails is said in the log.

    Args:
        scripts: the scripts.
        settings: the settings of the emulator.
        is_to_end: whether the emulator is to end: then the script that runs is stopped, and no other one is started.
    """
    from emulator.security.trust import build_trust_variables

    environment = {
        **os.environ,
        **settings.container_credentials,
        "AWS_ENDPOINT_URL": settings.endpoint_url,
        "AWS_DEFAULT_REGION": settings.region,
        **({} if settings.ca_bundle is None else build_trust_variables(str(settings.ca_bundle))),
    }
    for script in scripts:
        if is_to_end():
            return
        command = [*_INTERPRETERS.get(script.suffix, []), str(script)]
        try:
            ended = subprocess.Popen(
                command,
                env=environment,
                cwd=script.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError:
            logger.exception("The script %s of --init-folder cannot be run", script)
            continue
        output = _await(ended, is_to_end)[-_SHOWN_CHARACTERS:].rstrip()
        if is_to_end():
            logger.warning("The script %s of --init-folder was stopped: the emulator ends.", script)
        elif ended.returncode:
            logger.error(
                "The script %s of --init-folder failed with exit code %d. It said last:\n%s",
                script,
                ended.returncode,
                output or "nothing",
            )
        else:
            logger.info("The script %s of --init-folder has run.%s", script, f"\n{output}" if output else "")


def _await(process: subprocess.Popen[str], is_to_end: Callable[[], bool]) -> str:
    """Wait for a script's end and return its output; stop it, with what it has started, if the emulator is to end."""
    while not is_to_end():
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_POLL_SECONDS)[0]
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_GRACE_SECONDS)[0]
    # A program of another session has its output open.
    assert process.stdout is not None
    process.stdout.close()
    process.wait()
    return ""
