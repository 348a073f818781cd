"""Fixtures of an interpreter with MXNet, and of scripts that it runs."""

from pathlib import Path

import pytest

from tests.integration.smdebug.mxnet.environment import build_mxnet_environment
from tests.unit.smdebug.scripts import RunScript, build_script_runner

# These are for the pytest that `test_in_own_environment.py` starts.
collect_ignore = ["in_mxnet"]


@pytest.fixture(scope="session")
def mxnet_python() -> Path:
    return build_mxnet_environment()


@pytest.fixture
def run_script(mxnet_python: Path, tmp_path: Path) -> RunScript:
    return build_script_runner(str(mxnet_python), tmp_path, OMP_NUM_THREADS="1")
