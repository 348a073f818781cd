"""Tests of the library alone, in the oldest and newest Python and numpy."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from container_runtime.images.wheelhouse import fetch_wheels
from tests.wheel import CHECKOUT

pytestmark = pytest.mark.nightly

# Also imports every module that needs no framework.
SCRIPT = """
import importlib, pkgutil
import numpy as np
import smdebug
from smdebug.rules.__main__ import main
from smdebug.trials import create_trial
from tests.unit.smdebug.runs import RunMaker

frameworks = {"torch", "tensorflow", "keras", "mxnet", "xgboost", "boto3", "botocore", "pandas", "matplotlib"}
for module in pkgutil.walk_packages(smdebug.__path__, "smdebug."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert error.name.partition(".")[0] in frameworks, error

maker = RunMaker("run")
for step in range(3):
    maker.write_step(step, {"gradient/a": np.full((2, 3), 1e-9 * step, "float32")})
maker.end()
assert create_trial("run").tensor("gradient/a").value(2).tolist() == np.full((2, 3), 2e-9, "float32").tolist()
assert main(["run", "VanishingGradient", "--trial", "run"]) == 2
"""


def find_interpreter(version: str) -> Path:
    """An interpreter on PATH, or one that stands beside this one's, as pyenv has them."""
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python"))
    for candidate in (shutil.which(f"python{version}"), *beside):
        if candidate and subprocess.run([candidate, "-c", ""], check=False, capture_output=True).returncode == 0:
            return Path(candidate)
    pytest.skip(f"this machine has no Python {version}")


@pytest.mark.parametrize(
    ("version", "numpy"), [("3.10", "numpy==1.23.5"), ("3.12", "numpy>=1.23"), ("3.13", "numpy>=2.1")]
)
def test_a_run_is_written_read_and_judged(version: str, numpy: str, tmp_path: Path) -> None:
    python = find_interpreter(version)
    wheels = fetch_wheels([numpy, "crc32c>=2.7"], CHECKOUT / ".cache", version)
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--find-links", wheels, numpy, "crc32c"], check=True)
    ran = subprocess.run(
        [python, "-W", "error", "-c", SCRIPT],
        env={"PYTHONPATH": str(CHECKOUT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
