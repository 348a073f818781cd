"""The folder of a job's files on this machine."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.settings import Settings

logger = logging.getLogger(__name__)


def find_work_folder(settings: Settings, job_name: str, job_id: str) -> Path:
    """Where the files of a training or processing job are; its name was checked when it was made."""
    return settings.state_dir.absolute() / "jobs" / f"{job_name}-{job_id}"


def remove_work_folder(folder: Path) -> None:
    """Delete a folder; what cannot be deleted is said and left."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("The folder %s could not be removed: %s", folder, error)
