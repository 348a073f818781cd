"""An interpreter with MXNet, and scripts run by it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.room.smdebug.mxnet.environment import ROOT, build_mxnet_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.smdebug.scripts import RunScript

# These are for the pytest that `test_in_own_environment.py` starts.
collect_ignore = ["in_mxnet"]


@pytest.fixture(scope="session")
def mxnet_python() -> Path:
    return build_mxnet_environment()


@pytest.fixture
def run_script(mxnet_python: Path, tmp_path: Path) -> RunScript:
    """Runs text as a script of its own process in MXNet's environment."""

    def start(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(text)
        return subprocess.run(
            [str(mxnet_python), str(script), *arguments],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start
