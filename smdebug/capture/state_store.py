"""Step counts stored beside checkpoints, for restarted jobs."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from smdebug.environment import CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR, DEFAULT_CHECKPOINT_CONFIG_FILE
from smdebug.logger import get_logger
from smdebug.mode_keys import ALLOWED_MODE_NAMES
from smdebug.storage.output import write_whole_file

METADATA_FILENAME = "metadata.json"
UPLOADED_SUFFIX = "sagemaker-uploaded"

TRAINING_RUN = "training-run"
LATEST_GLOBAL_STEP_SAVED = "latest-global-step-saved"
LATEST_GLOBAL_STEP_SEEN = "latest-global-step-seen"
LATEST_MODE_STEP = "latest-mode-step"


class StateStore:
    """A list of states in `metadata.json`, one for every change of the checkpoint files."""

    def __init__(self) -> None:
        """Find the checkpoint folder; without a checkpoint config, all methods do nothing."""
        self._folder = _get_checkpoint_folder()
        self._states = self._read() if self._folder else []
        self._seen: dict[str, tuple[int, int]] = self._get_checkpoint_files() if self._folder else {}

    @property
    def is_in_use(self) -> bool:
        """Whether there is a checkpoint config, so that states are stored."""
        return self._folder is not None

    def get_last_saved_state(self) -> dict[str, Any] | None:
        """Return the state with the highest step, the newest if there are several; None in the first run of a job."""
        return max(reversed(self._states), key=lambda state: int(state[LATEST_GLOBAL_STEP_SEEN]), default=None)

    def is_checkpoint_updated(self) -> bool:
        """Return whether the checkpoint files changed in name, number, size or time since the last call."""
        if not self._folder:
            return False
        files = self._get_checkpoint_files()
        changed = bool(files) and files != self._seen
        self._seen = files
        return changed

    def update_state(self, state: dict[str, Any]) -> None:
        """Add a state, and write the file atomically: under a temporary name, then renamed.

        If this fails, there is a warning, and the training is captured as before.
        """
        if not self._folder:
            return
        self._states.append(state)
        path = self._folder / METADATA_FILENAME
        # Several processes of a training may write at once: each has a temporary name of its own.
        own = path.with_name(f"{METADATA_FILENAME}.{os.getpid()}")
        try:
            write_whole_file(str(own), [json.dumps(self._states).encode()])
            own.replace(path)
        except OSError as error:
            with suppress(OSError):
                own.unlink()
            get_logger().warning("%s cannot be written (%s): a restarted job counts from an earlier step.", path, error)

    def _read(self) -> list[dict[str, Any]]:
        assert self._folder
        path = self._folder / METADATA_FILENAME
        if not path.is_file():
            return []
        try:
            states = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            get_logger().warning("%s is damaged (%s): steps are counted from the start again.", path, error)
            return []
        whole = [state for state in states if _is_state(state)] if isinstance(states, list) else []
        if not whole or len(whole) < len(states):
            get_logger().warning("%s holds entries that are not states of a training: they are ignored.", path)
        return whole

    def _get_checkpoint_files(self) -> dict[str, tuple[int, int]]:
        assert self._folder
        # With the time of the last change: a script that overwrites one file may never change its size.
        files: dict[str, tuple[int, int]] = {}
        for folder, _, names in os.walk(self._folder):
            for name in names:
                if name.startswith(METADATA_FILENAME) or UPLOADED_SUFFIX in name:
                    continue
                path = Path(folder) / name
                try:
                    found = path.stat()
                except OSError:
                    # The training may replace its checkpoints at any time. Or the file cannot be reached.
                    continue
                files[str(path)] = found.st_size, found.st_mtime_ns
        return files


def _is_state(state: object) -> bool:
    if not isinstance(state, dict):
        return False
    saved, modes = state.get(LATEST_GLOBAL_STEP_SAVED), state.get(LATEST_MODE_STEP)
    return (
        LATEST_GLOBAL_STEP_SAVED in state
        and isinstance(state.get(LATEST_GLOBAL_STEP_SEEN), int)
        and isinstance(state.get(TRAINING_RUN), int)
        and (saved is None or isinstance(saved, int))
        and isinstance(modes, dict)
        and all(name in ALLOWED_MODE_NAMES and isinstance(step, int) for name, step in modes.items())
    )


def _get_checkpoint_folder() -> Path | None:
    config = Path(os.environ.get(CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR, DEFAULT_CHECKPOINT_CONFIG_FILE))
    try:
        folder = Path(json.loads(config.read_text(encoding="utf-8"))["LocalPath"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        get_logger().warning("%s names no checkpoint folder (%r): steps are not kept across restarts.", config, error)
        return None
    # The folder may not exist yet: scripts often create it with their first checkpoint.
    return folder
