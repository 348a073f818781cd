"""Tests of the Python profile of a step in which the hook is closed."""

from pathlib import Path

import pytest

from tests.interop.test_python_profiles import SCRIPT, list_profiles
from tests.unit.smdebug.scripts import RunScript


@pytest.mark.slow
def test_a_close_within_a_profiled_step_keeps_its_profile(tmp_path: Path, run_torch_script: RunScript) -> None:
    """Upstream ends with an error there, and loses the profile in progress."""
    done = run_torch_script(SCRIPT.read_text(), "pytorch", str(tmp_path), "modes evaluated closed")
    assert done.returncode == 0, done.stderr
    found = list_profiles(tmp_path)
    assert "eval-3-forwardpassend_posthookclose-*-end" in found
    assert "prestepzero-*-end_posthookclose-*-end" in found
