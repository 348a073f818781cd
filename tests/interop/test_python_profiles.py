"""Comparison of Python profiles of one script, ours and the real 1.0.34's."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shared.environments import build_packages, build_upstream
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.environments import build_environment
from tests.interop.both_libraries import ask_both
from tests.interop.scenario_runs import CHECKOUT, ENVIRONMENT, HERE

SCRIPT = HERE / "profiled_script.py"
CALLS = HERE / "python_profile_calls.py"
pytestmark = pytest.mark.timeout(600)


def train(python: Path, path: Path | None, framework: str, folder: Path, way: str) -> list[str]:
    """Run the script with the smdebug of a path, and return the names of its profiles without times."""
    folder.mkdir()
    done = subprocess.run(
        [str(python), "-W", "ignore", str(SCRIPT), framework, str(folder), way],
        env={**ENVIRONMENT, "PYTHONPATH": str(path or "")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return list_profiles(folder)


def list_profiles(folder: Path) -> list[str]:
    """Return the names of a training's profiles without times."""
    profiles = (folder / "profile" / "framework").glob("*/cprofile/*/*/python_stats")
    return sorted(re.sub(r"-\d{16,}(\.\d+)?", "", profile.parent.name) for profile in profiles)


def find_framework(folder: Path) -> Path:
    (found,) = (folder / "profile" / "framework").glob("*/cprofile")
    return found


# Upstream takes the profile after the hook's close for the initialization: both begin in that mode.
MIXED_UP = ("phases", "initialization", "finalization")


def check_readers(folder: Path, upstream: Path) -> dict[str, Any]:
    """Check that both libraries read the same of our profiles, and return what ours reads."""
    ours, theirs = ask_both(CALLS, find_framework(folder), upstream)
    assert {call: (found, theirs[call]) for call, found in ours.items() if found != theirs[call]}.keys() <= {*MIXED_UP}
    assert ours["initialization"] == ours["before"]
    assert ours["finalization"] == ours["after"]
    return ours


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["closed", "modes evaluated", "modes"])
def test_pytorch_is_profiled_between_the_same_points(tmp_path: Path, upstream_smdebug_python: Path, way: str) -> None:
    expected = train(build_upstream(), None, "pytorch", tmp_path / "theirs", way)
    assert train(Path(sys.executable), CHECKOUT, "pytorch", tmp_path / "ours", way) == expected
    first = "train" if "modes" in way else "global"
    assert f"prestepzero-*-start_{first}-0-stepstart" in expected
    assert ("prestepzero-*-end_posthookclose-*-end" in expected) is (way == "closed")
    read = check_readers(tmp_path / "ours", upstream_smdebug_python)
    assert read["before"]
    assert bool(read["after"]) is (way != "modes")
    assert len(read["listed"]) == len(expected)


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["unclosed", "evaluated closed"])
def test_keras_is_profiled_between_the_same_points(tmp_path: Path, upstream_smdebug_python: Path, way: str) -> None:
    image = next(found for found in ImageCatalogue() if found.name == "tensorflow-training-2.12")
    python = build_environment(image, compiled=False).python
    original = build_packages(HERE / "requirements-upstream-alone.txt", python)
    expected = train(python, original, "tensorflow", tmp_path / "theirs", way)
    assert train(python, CHECKOUT, "tensorflow", tmp_path / "ours", way) == expected
    assert "prestepzero-*-start_train-0-stepstart" in expected
    assert ("eval-2-stepstart_eval-2-stepend" in expected) is ("evaluated" in way)
    read = check_readers(tmp_path / "ours", upstream_smdebug_python)
    assert read["before"]
    assert read["after"]


def test_a_process_that_is_forked_before_the_first_step_is_not_profiled(tmp_path: Path) -> None:
    """A loading process would be slower for a profile that nobody writes."""
    config = tmp_path / "profilerconfig.json"
    config.write_text(
        '{"ProfilingParameters": {"LocalPath": "' + str(tmp_path) + '", "PythonProfilingConfig": "{\'StartStep\': 1}"}}'
    )
    script = (
        "import os, sys, smdebug.tracing.outer_profile as outer\n"
        "outer.profile_until_first_step()\n"
        "assert sys.getprofile() is not None\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(sys.getprofile() is not None)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    environment = {**os.environ, "SMPROFILER_CONFIG_PATH": str(config), "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
