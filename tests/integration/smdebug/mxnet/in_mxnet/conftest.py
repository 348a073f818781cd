"""Fixtures of hooks that end with their test, and of reset block names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
import pytest

import smdebug.mxnet as smd
from tests.integration.smdebug.mxnet.in_mxnet.small_training import EVERY_STEP, MakeHook
from tests.unit.smdebug.hooks import closing_hooks, plain_environment, run, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.smdebug.written_run import WrittenRun

__all__ = ["plain_environment", "run", "said"]


@pytest.fixture(autouse=True)
def _first_names() -> Iterator[None]:
    with mx.name.NameManager():
        yield


@pytest.fixture
def make_hook(run: WrittenRun) -> Iterator[MakeHook]:
    """Makes the hook of a run, every step saved unless said otherwise; closed when the test ends."""

    def build(**options: Any) -> smd.Hook:
        return smd.Hook(out_dir=str(run.path), **{"save_config": EVERY_STEP, **options})

    with closing_hooks(build) as make:
        yield make
