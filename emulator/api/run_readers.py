"""Reader processes: smdebug runs read outside the emulator's process.

Neither a malicious file nor a slow read stops the emulator. A process that does not respond in time is killed, a
process that crashes is replaced, and each process limits its own memory.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from threading import Thread
from typing import Any

from emulator.exceptions import AwsError

_ANSWER_SECONDS = 30.0
# How long a request waits for a process that is not busy.
_QUEUE_SECONDS = 30.0
# An idle process is ended to release its memory.
_IDLE_SECONDS = 300.0
_MOST_PROCESSES = 2


class ReadError(AwsError):
    """A run cannot be read, or not with these arguments; the message is the reason."""


class _DiedError(ReadError):
    """A process ended before it responded."""


class _Reader:
    """One reader process. Only one thread at a time may use it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.last_path = ""
        self.used_at = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "smdebug.inspection"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            text=True,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a question to the process and return its response.

        Raises:
            ReadError: the process did not respond in time and was killed, or it ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.last_path = str(question["path"])
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
            self.used_at = time.monotonic()
        if not line.endswith("\n"):
            self.close()
            if late.is_set():
                text = f"Reading took longer than {seconds:.0f} s: request less, or use python -m smdebug.trials."
                raise ReadError(text, status=504)
            raise _DiedError("The process that reads tensors crashed while it answered this request.", status=500)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # the pipe may still buffer a part of a request


class RunReaders:
    """The reader processes of all accounts. Thread safe. ``close`` ends all processes."""

    def __init__(
        self, build_environment: Callable[[str], Mapping[str, str]], answer_seconds: float = _ANSWER_SECONDS
    ) -> None:
        """Store the settings. Processes are started when they are needed.

        Args:
            build_environment: builds the environment variables of a process that reads an account's S3 objects.
            answer_seconds: the time limit of a response.
        """
        self._build_environment = build_environment
        self._answer_seconds = answer_seconds
        self._changed = threading.Condition()
        self._idle: dict[str, list[_Reader]] = {}
        self._busy: dict[str, list[_Reader]] = {}
        self._closed = False
        self._ender: Thread | None = None

    def ask(self, account: str, path: str, question: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Ask a question about a run and return the answer.

        Args:
            account: the account of the run.
            path: the run's location, s3://bucket/prefix.
            question: one of ``smdebug.inspection.questions``.
            arguments: the arguments of the question.

        Raises:
            ReadError: there is no answer; the message is the reason.
        """
        asked = {"path": path, "question": question, "arguments": dict(arguments)}
        try:
            answer = self._ask(account, asked)
        except _DiedError:
            # The process may have ended for another reason before it got the question.
            answer = self._ask(account, asked)
        if "answer" not in answer:
            absent = answer["kind"] in ("NoTensorsError", "TensorUnavailable")
            status = HTTPStatus.NOT_FOUND if absent else HTTPStatus.UNPROCESSABLE_ENTITY
            raise ReadError(answer["error"], code=answer["kind"], status=status)
        found: dict[str, Any] = answer["answer"]
        return found

    def warm(self, account: str) -> None:
        """Start a process if the account has none, so that the next caller does not wait for its imports."""
        with self._changed:
            if not self._closed and not self._idle.get(account) and not self._busy.get(account):
                self._idle.setdefault(account, []).append(self._start_reader(account))

    def close(self) -> None:
        """End all processes. Questions in progress get no answer. Idempotent."""
        with self._changed:
            self._closed = True
            readers = [each for group in (self._idle, self._busy) for some in group.values() for each in some]
            self._idle.clear()
            self._changed.notify_all()
        for reader in readers:
            reader.close()
        if self._ender is not None:
            self._ender.join()

    def _start_reader(self, account: str) -> _Reader:
        """Start a process. The caller must hold the lock."""
        if self._ender is None:
            self._ender = Thread(target=self._end_unused, name="run-readers", daemon=True)
            self._ender.start()
        return _Reader(self._build_environment(account))

    def _end_unused(self) -> None:
        with self._changed:
            while not self._closed:
                self._end_idle()
                self._changed.wait(_IDLE_SECONDS / 4)

    def _ask(self, account: str, question: Mapping[str, Any]) -> dict[str, Any]:
        reader = self._take(account, question["path"])
        try:
            return reader.ask(question, self._answer_seconds)
        finally:
            self._give_back(account, reader)

    def _take(self, account: str, path: str) -> _Reader:
        deadline = time.monotonic() + _QUEUE_SECONDS
        with self._changed:
            while not self._closed:
                self._end_idle()
                idle, busy = self._idle.setdefault(account, []), self._busy.setdefault(account, [])
                # Prefer the process that has the run open, else the most recently used one.
                if idle:
                    reader = next((each for each in idle if each.last_path == path), idle[-1])
                    idle.remove(reader)
                elif len(busy) < _MOST_PROCESSES:
                    reader = self._start_reader(account)
                elif (left := deadline - time.monotonic()) > 0:
                    self._changed.wait(left)
                    continue
                else:
                    raise ReadError("All processes that read tensors are busy: try again in a moment.", status=503)
                busy.append(reader)
                return reader
        raise ReadError("The emulator is closing.", status=503)

    def _give_back(self, account: str, reader: _Reader) -> None:
        with self._changed:
            self._busy[account].remove(reader)
            if self._closed or not reader.alive:
                reader.close()
            else:
                self._idle[account].append(reader)
            self._changed.notify_all()

    def _end_idle(self) -> None:
        """Remove the processes that have crashed, and end those that were idle for ``_IDLE_SECONDS``."""
        oldest = time.monotonic() - _IDLE_SECONDS
        for readers in self._idle.values():
            for reader in [each for each in readers if not each.alive or each.used_at < oldest]:
                readers.remove(reader)
                reader.close()


def build_reader_environment(aws: Mapping[str, str]) -> dict[str, str]:
    """Build a reader's environment: this process's environment with all AWS_* variables replaced by ``aws``.

    NumPy is limited to one thread, which is enough for reductions.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, **aws, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
