"""Emulator as a user runs it, and its possible back ends."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO
from urllib.request import urlopen

import pytest

from sdk_compat.emulator_process import EmulatorProcess
from tests.boto3_client import make_client
from tests.forked_emulator import ForkedEmulator

_MARKS = {"process": (), "docker": (pytest.mark.docker,), "swarm": (pytest.mark.docker,)}
BACK_ENDS = [
    pytest.param(name, id=name, marks=_MARKS[name])
    for name in os.environ.get("SMDEBUG_EMULATOR_TEST_BACK_ENDS", "process,docker").split(",")
]
"""Those that whole jobs are tested on. A Swarm is the only one then: its manager answers what tests ask of Docker."""
CONTAINERS = [each for each in BACK_ENDS if each.id != "process"]
"""Those of them that run real containers."""
IMAGE_BY_DAY = [
    pytest.param(each.id, id=each.id, marks=[*each.marks, *([pytest.mark.nightly] if each not in CONTAINERS else [])])
    for each in BACK_ENDS
]
"""All, for the smoke test of an image: it trains in a container by day, and in a local process by night."""


# "cold" for no warm interpreters and spare containers but where a test is about them, "warm" for both everywhere.
STARTS = os.environ.get("SMDEBUG_EMULATOR_TEST_STARTS")


class RunningEmulator(ForkedEmulator):
    """An emulator as a user runs it: with warm interpreters."""

    def __init__(
        self,
        state_dir: Path,
        *,
        warm: bool = True,
        spares: bool = False,
        search_path: Path | None = None,
        **options: Any,
    ) -> None:
        """Start it.

        Args:
            state_dir: its state folder.
            warm: whether it keeps warm interpreters, which the only job of an image has nothing from.
            spares: whether Docker keeps spare containers. Few tests run a second job of an image, and each of them
                would import its framework for nobody.
            search_path: a folder of modules in place of those that are installed, for an interpreter of its own.
            options: those of ``EmulatorProcess``.
        """
        self._search_path = search_path
        with pytest.MonkeyPatch.context() as patch:
            if spares or STARTS == "warm" or (warm and STARTS != "cold"):
                patch.delenv("SMDEBUG_EMULATOR_NO_WARM", raising=False)
            # Tests share emulators: a role that one of them makes would have the jobs of others refused.
            patch.setenv("SMDEBUG_EMULATOR_LENIENT_ROLES", "1")
            if not spares and STARTS != "warm":
                patch.setenv("SMDEBUG_EMULATOR_WARM_MEMORY", "0")
            super().__init__(state_dir, **options)

    def _start_process(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: TextIO, *, new_session: bool
    ) -> subprocess.Popen[str]:
        if self._search_path is None:
            return super()._start_process(arguments, environment, log, new_session=new_session)
        environment = {**environment, "PYTHONPATH": str(self._search_path)}
        return EmulatorProcess._start_process(self, arguments, environment, log, new_session=new_session)

    def client(self, service: str, region: str = "us-east-1") -> Any:
        return make_client(self.endpoint_url, service, region)

    def read_runtime(self) -> str:
        """Return which back end it has: ``process``, ``docker`` or ``swarm``."""
        with urlopen(f"{self.endpoint_url}/_emulator/health") as health:
            return str(json.load(health)["runtime"])
