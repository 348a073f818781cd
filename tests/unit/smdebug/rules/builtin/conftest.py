"""Fixtures of runs of the real smdebug, for rules."""

from collections.abc import Callable
from pathlib import Path

import pytest

from smdebug.trials import Trial, create_trial


@pytest.fixture
def upstream_run(recorded_runs: Path) -> Callable[[str], Trial]:
    return lambda case: create_trial(str(recorded_runs / case / "run"))
