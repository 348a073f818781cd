"""``…/jobs/REGION/NAME/tensorboard``: TensorBoard servers for jobs."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from flask import Blueprint, jsonify

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts, find_training_job
from emulator.exceptions import AwsError, ValidationException

_ADDRESS = re.compile(r"^TensorBoard .* at (https?://\S+) ")
# TensorBoard takes long to import, and the job's output is downloaded first.
_START_SECONDS = 120.0
# Each takes some hundred MB of memory. When there are more, the one that was started first is ended.
_MOST = 3


class TensorBoardError(AwsError):
    """TensorBoard did not start; the message is the last line that it printed."""


class TensorBoards:
    """The TensorBoard servers that were started from the console.

    They end when the emulator ends, even if the emulator crashes.
    """

    def __init__(self, build_command: Callable[[str], Sequence[str]]) -> None:
        """Store the settings. Servers are started by ``start``.

        Args:
            build_command: builds the command for a job, ``REGION/NAME``. The command must end when its standard input
                closes.
        """
        self._build_command = build_command
        self._lock = threading.Lock()
        self._running: dict[str, tuple[subprocess.Popen[str], str]] = {}
        self._closed = False
        self._starting: subprocess.Popen[str] | None = None

    def start(self, name: str) -> str:
        """Start a server for the output of a job, ``REGION/NAME``, unless one is running, and return its URL.

        Raises:
            TensorBoardError: TensorBoard did not start.
        """
        with self._lock:
            known = self._running.get(name)
            if known is not None and known[0].poll() is None:
                return known[1]
            if known is not None:
                self._end(name)
            while len(self._running) >= _MOST:
                self._end(next(iter(self._running)))
            self._starting = process = self._launch(name)
            if self._closed:
                process.terminate()
            url = _read_address(process)
            self._running[name] = (process, url)
            return url

    def close(self) -> None:
        """End all servers, also one that is starting. Idempotent."""
        self._closed = True
        if (starting := self._starting) is not None:
            starting.terminate()
        with self._lock:
            for name in list(self._running):
                self._end(name)

    def _end(self, name: str) -> None:
        process, _ = self._running.pop(name)
        assert process.stdin is not None
        process.terminate()
        process.wait()
        process.stdin.close()

    def _launch(self, name: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._build_command(name),
            # The server ends when this pipe closes, at the latest when this process ends.
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            text=True,
            start_new_session=True,
        )


def build_tensorboard_command(state_dir: Path, name: str) -> list[str]:
    """Build the command that starts TensorBoard on any free port for a job of the emulator with this state folder."""
    command = [sys.executable, "-P", "-m", "emulator", "tensorboard", name, "--port", "0", "--until-stdin-ends"]
    return [*command, "--state-dir", str(state_dir)]


def _read_address(process: subprocess.Popen[str]) -> str:
    """Read TensorBoard's output until it prints its URL. Later output is discarded.

    Raises:
        TensorBoardError: TensorBoard ended, or took too long.
    """
    assert process.stderr is not None
    timer = threading.Timer(_START_SECONDS, process.terminate)
    timer.daemon = True
    timer.start()
    said = []
    for line in process.stderr:
        if found := _ADDRESS.search(line):
            timer.cancel()
            threading.Thread(target=_drain, args=(process.stderr,), daemon=True, name="tensorboard-log").start()
            return found[1]
        said.append(line.strip())
    timer.cancel()
    process.communicate()
    text = next((line for line in reversed(said) if line), f"TensorBoard did not start in {_START_SECONDS:.0f} s.")
    raise TensorBoardError(text, status=409)


def _drain(pipe: IO[str]) -> None:
    """Read the pipe to its end: a full pipe would block the writer."""
    with pipe:
        for _ in pipe:
            pass


def build_tensorboards_pages(accounts: RequestAccounts, tensorboards: TensorBoards) -> Blueprint:
    """Build the routes."""
    pages = Blueprint("tensorboards", __name__)

    @pages.post(f"{PREFIX}jobs/<region>/<name>/tensorboard")
    def start(region: str, name: str) -> Any:
        job = find_training_job(accounts.find(), region, name)
        if "TensorBoardOutputConfig" not in job.request:
            raise ValidationException(
                f"{name} has no TensorBoard output: create the job with a TensorBoardOutputConfig."
            )
        return jsonify(url=tensorboards.start(f"{region}/{name}"))

    return pages
