"""Tests of copied and pickled models that hold hooks."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smdebug.capture.hook import BaseHook
from smdebug.capture.one_process import AbsentHook
from smdebug.capture.singleton import del_hook


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Any]:
    made = BaseHook(out_dir=str(tmp_path / "run"), dry_run=True)
    yield made
    made.close()
    del_hook()


def test_a_copy_of_a_model_shares_the_hook(hook: Any) -> None:
    model = {"callbacks": [hook.save_scalar]}
    copied = copy.deepcopy(model)
    assert copied is not model
    assert copied["callbacks"][0].__self__ is hook


def test_a_pickled_model_has_callbacks_that_do_nothing(hook: Any) -> None:
    (callback,) = pickle.loads(pickle.dumps([hook.save_scalar]))
    assert callback("x", 1, sm_metric=True) is None
    assert isinstance(pickle.loads(pickle.dumps(hook)), AbsentHook)


def test_an_absent_hook_is_copied_and_pickled_like_anything() -> None:
    absent = pickle.loads(pickle.dumps(copy.deepcopy(AbsentHook())))
    assert absent.begin_step(object(), ()) is None
    with pytest.raises(AttributeError):
        absent.__len__()
