"""Scripts in separate processes, started as a job starts them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import smdebug
from tests.unit.smdebug.written_run import WrittenRun

RunScript = Callable[..., subprocess.CompletedProcess[str]]
WriteConfig = Callable[..., str]

ROOT = Path(__file__).parents[3]
# What a .pth file in site-packages does when Python starts.
START = f"exec({Path(smdebug.__file__).with_name('autoload.pth').read_text()!r})\n"


def build_script_runner(python: str, folder: Path, *, seconds: int = 400, **always: str) -> RunScript:
    """A function that runs text as a script of an interpreter, smdebug importable."""

    def start(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = folder / "script.py"
        script.write_text(text)
        return subprocess.run(
            [python, str(script), *arguments],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **always, **environment},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    return start


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
