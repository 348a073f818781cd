"""An emulator as a user runs it, and the back ends that it can have."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import urlopen

import pytest

from sdk_compat.emulator_process import EmulatorProcess
from tests.boto3_client import make_client

BACK_ENDS = [
    pytest.param("process", id="process"),
    pytest.param("docker", id="docker", marks=pytest.mark.docker),
]


class RunningEmulator(EmulatorProcess):
    """An emulator in a process of its own, as a user runs it."""

    def client(self, service: str, region: str = "us-east-1") -> Any:
        return make_client(self.endpoint_url, service, region)

    def read_runtime(self) -> str:
        """Return which back end it has: ``process`` or ``docker``."""
        with urlopen(f"{self.endpoint_url}/_emulator/health") as health:
            return str(json.load(health)["runtime"])
