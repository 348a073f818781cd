"""Environment variables that lead the AWS clients of this process to the emulator."""

import os
import sys
from collections.abc import Mapping

from sdk_compat.environment import list_overruling
from sdk_compat.startup.checked_schemas import VALIDATING_MODULES, check_schemas_once
from sdk_compat.startup.import_patches import patch_modules
from sdk_compat.startup.kept_data_files import READING_MODULES, keep_data_files
from sdk_compat.startup.short_polls import WAITING_MODULES, shorten_polls

_patched: list[bool] = []


class ProcessEnvironment:
    """Variables that are set by ``lead`` and taken back by ``restore``. Subprocesses inherit them."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}
        if not _patched:
            # Once in a process: without the variable of the polls, which `restore` takes back, the SDK waits as ever.
            patch_modules(
                (WAITING_MODULES, shorten_polls),
                (VALIDATING_MODULES, check_schemas_once),
                (READING_MODULES, keep_data_files),
            )
            _patched.append(True)

    @property
    def is_led(self) -> bool:
        """Whether the variables are set."""
        return bool(self._before)

    def lead(self, variables: Mapping[str, str]) -> None:
        """Set the variables, and remove those that would override them."""
        wanted: dict[str, str | None] = {**dict.fromkeys(list_overruling(os.environ)), **variables}
        for name, value in wanted.items():
            self._before.setdefault(name, os.environ.get(name))
            _set_variable(name, value)
        forget_default_session()

    def restore(self) -> None:
        """Restore the environment from before the first ``lead``. Idempotent."""
        while self._before:
            _set_variable(*self._before.popitem())
        forget_default_session()


def forget_default_session() -> None:
    """Have boto3 make a new default session: the present one holds the earlier credentials."""
    boto3 = sys.modules.get("boto3")
    if boto3 is not None:
        boto3.DEFAULT_SESSION = None  # type: ignore[attr-defined] # it is


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
