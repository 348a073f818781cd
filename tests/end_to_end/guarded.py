"""Emulator that requires signatures."""

import json
import os
import re
from pathlib import Path
from typing import Any

import boto3

from tests.commands import run_command
from tests.forked_emulator import open_forking_process

KEY, SECRET = "AKIAOFTHETESTS", "the secret of the tests"


class Guarded:
    """One in a process of its own; KEY and SECRET are its account's."""

    def __init__(self, state_dir: Path, runtime: str, *how: str) -> None:
        self.state_dir = state_dir
        environment = {**os.environ, "SMDEBUG_EMULATOR_ACCESS_KEYS": f"{KEY}:{SECRET}"}
        options = ["start", "--port", "0", "--runtime", runtime, "--state-dir", str(state_dir), *how]
        self.log = (state_dir.parent / "log").open("w+")
        self.process = open_forking_process().fork(options, environment, self.log.fileno(), new_session=False)
        self.lines = [self.process.stdout.readline() for _ in range(2)]
        self.record = json.loads((state_dir / "emulator.json").read_text())
        self.bundle: str | None = self.record["ca_bundle"]
        # Where other machines ask, if they do.
        beyond = re.search(r" and (\S+) for other machines", self.lines[0])
        self.endpoint_url: str = beyond[1] if beyond else self.record["endpoint_url"]

    def client(self, service: str, key: str = KEY, secret: str = SECRET) -> Any:
        make: Any = boto3.client
        return make(
            service,
            endpoint_url=self.endpoint_url,
            verify=self.bundle,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )

    def run(self, *command: str) -> str:
        """Run a command of the emulator's, which signs for itself."""
        return run_command(*command, "--state-dir", str(self.state_dir)).stdout

    @property
    def console_link(self) -> str:
        """The console's address with the token, as ``start`` prints it."""
        return self.lines[1].rpartition(" ")[2].strip()

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate()
        self.log.close()
