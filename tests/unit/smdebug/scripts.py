"""Scripts in separate processes, started as a job starts them."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import smdebug
from tests.unit.smdebug.written_run import WrittenRun

RunScript = Callable[..., subprocess.CompletedProcess[str]]
WriteConfig = Callable[..., str]

ROOT = Path(__file__).parents[3]
BASE_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
# What a .pth file in site-packages does when Python starts.
START = f"exec({Path(smdebug.__file__).with_name('autoload.pth').read_text()!r})\n"


def build_script_runner(python: str, folder: Path, *, seconds: int = 400, **always: str) -> RunScript:
    """A function that runs text as a script of an interpreter, smdebug importable."""

    def start(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = folder / "script.py"
        script.write_text(text)
        return subprocess.run(
            [python, str(script), *arguments],
            env={**BASE_ENVIRONMENT, **always, **environment},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    return start


class ForkingInterpreter:
    """An interpreter that has imported modules, and runs scripts in forks of itself; started by the first script.

    To the import of a framework, which takes longer than most scripts, a fork differs from a new interpreter by the
    order alone: the framework is there before the start-up file runs. That is how jobs start in warm interpreters.
    """

    def __init__(self, *modules: str, python: str = sys.executable, **environment: str) -> None:
        self._command = [python, str(Path(__file__).with_name("fork_scripts.py")), *modules]
        self._environment = {**BASE_ENVIRONMENT, **environment}
        self._process: subprocess.Popen[str] | None = None

    def run(
        self, script: Path, arguments: tuple[str, ...], environment: dict[str, str], seconds: int
    ) -> subprocess.CompletedProcess[str]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        process = self._process = self._process or subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        outputs = {name: str(script.with_suffix(f".{name}")) for name in ("stdout", "stderr")}
        request = {"script": str(script), "arguments": arguments, "environment": environment, **outputs}
        process.stdin.write(f"{json.dumps(request)}\n")
        process.stdin.flush()
        limit = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        try:
            answer = process.stdout.readline()
        finally:
            limit.cancel()
        if not answer:
            self.close()
            raise AssertionError(f"the interpreter ended with {process.returncode}, at the latest after {seconds} s")
        stdout, stderr = (Path(path).read_text() for path in outputs.values())
        return subprocess.CompletedProcess([str(script), *arguments], int(answer), stdout, stderr)

    def build_script_runner(self, folder: Path, *, seconds: int = 400) -> RunScript:
        """A function that runs text as a script of a fork."""

        def start(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
            script = folder / "script.py"
            script.write_text(text)
            return self.run(script, arguments, {**self._environment, **environment}, seconds)

        return start

    def close(self) -> None:
        """End the interpreter, as it does when its input ends."""
        if self._process is not None:
            self._process.communicate(timeout=400)
            self._process = None


# pytest makes a fixture once for each conftest.py that has it: all of them give this one.
_TORCH = ForkingInterpreter("torch", "torch._dynamo")


@pytest.fixture(scope="session")
def forking_torch() -> Iterator[ForkingInterpreter]:
    yield _TORCH
    _TORCH.close()


@pytest.fixture
def run_torch_script(tmp_path: Path, forking_torch: ForkingInterpreter) -> RunScript:
    """Runs text as a script of an interpreter that has imported PyTorch, with what its optimizers import."""
    return forking_torch.build_script_runner(tmp_path)


@pytest.fixture
def run_script(tmp_path: Path) -> RunScript:
    return build_script_runner(sys.executable, tmp_path)


@pytest.fixture
def config(tmp_path: Path, run: WrittenRun) -> WriteConfig:
    """Writes a debughookconfig.json for the run; returns its path."""
    path = tmp_path / "debughookconfig.json"

    def write(**content: Any) -> str:
        path.write_text(json.dumps({"LocalPath": str(run.path), **content}))
        return str(path)

    return write
