"""Fixtures of hooks that end with their test, and of a training for them."""

from collections.abc import Iterator
from typing import Any

import pytest

import smdebug.pytorch as smd
from tests.unit.smdebug.hooks import closing_hooks
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


@pytest.fixture
def make_hook(run: WrittenRun) -> Iterator[MakeHook]:
    def build(**arguments: Any) -> smd.Hook:
        return smd.Hook(**{"out_dir": str(run.path), "save_config": smd.SaveConfig(save_interval=1), **arguments})

    with closing_hooks(build) as make:
        yield make


@pytest.fixture
def training() -> Training:
    return Training()
