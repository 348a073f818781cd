"""Fixtures of hooks, and of two logical CPUs for replica strategies.

The hooks end with their test.
"""

from collections.abc import Iterator
from typing import Any

import pytest

import smdebug.tensorflow as smd
from tests.unit.smdebug.hooks import closing_hooks
from tests.unit.smdebug.tensorflow.frameworks import keras, load_frameworks
from tests.unit.smdebug.tensorflow.small_models import MakeHook
from tests.unit.smdebug.written_run import WrittenRun

WAYS = {"graph": {}, "jit": {"jit_compile": True}, "eager": {"run_eagerly": True}}


@pytest.fixture(scope="session", autouse=True)
def loaded_frameworks() -> None:
    """Have no test pay for the import, or see its warnings."""
    load_frameworks()


@pytest.fixture
def make_hook(run: WrittenRun) -> Iterator[MakeHook]:
    def build(**arguments: Any) -> "smd.KerasHook":
        return smd.KerasHook(str(run.path), **{"save_config": smd.SaveConfig(save_interval=1), **arguments})

    with closing_hooks(build) as make:
        yield make
    keras.mixed_precision.set_global_policy("float32")
    keras.backend.clear_session()


@pytest.fixture(params=["graph", pytest.param("jit", marks=pytest.mark.nightly), "eager"])
def way(request: pytest.FixtureRequest) -> dict[str, bool]:
    """Arguments of compile for each way that Keras has to run a step; XLA, which compiles for seconds, at night."""
    return WAYS[request.param]


@pytest.fixture(params=["graph", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("jit", "eager"))])
def main_way(request: pytest.FixtureRequest) -> dict[str, bool]:
    """The same; by day only the way that Keras chooses by itself."""
    return WAYS[request.param]


@pytest.fixture(params=["eager", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("graph", "jit"))])
def quick_way(request: pytest.FixtureRequest) -> dict[str, bool]:
    """The same; by day only without a graph, which takes longer to make than a few steps to run."""
    return WAYS[request.param]


@pytest.fixture(params=["eager", pytest.param("graph", marks=pytest.mark.nightly)])
def quick_way_without_xla(request: pytest.FixtureRequest) -> dict[str, bool]:
    """The same for models that XLA does not take, or of which it says nothing new."""
    return WAYS[request.param]
