"""Runs of the real smdebug, for rules to be tried on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from smdebug.trials import Trial, create_trial

if TYPE_CHECKING:
    from collections.abc import Callable

INTEROP_DATA = Path(__file__).parents[4] / "interop_data"


@pytest.fixture
def original_run() -> Callable[[str], Trial]:
    return lambda case: create_trial(str(INTEROP_DATA / case / "run"))
