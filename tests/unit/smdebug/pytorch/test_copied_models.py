"""Tests of models that a script copies or pickles during capture."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

from tests.unit.smdebug.pytorch.small_training import MakeHook
from tests.unit.smdebug.written_run import WrittenRun

X = torch.ones(1, 4)


@pytest.fixture
def model(make_hook: MakeHook) -> torch.nn.Module:
    """A model within an evaluation that is saved: no optimizer ends that step, so all its hooks are in place."""
    hook = make_hook(save_all=True)
    # No class of this module: its name holds what a pickled model is looked through for.
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    hook.register_module(model)
    model.eval()(X)
    return model


def test_what_a_copy_computes_is_not_the_models(model: torch.nn.Module, run: WrittenRun) -> None:
    copy.deepcopy(model)(X + 10)
    expected = model(X).detach()
    assert run.steps == [0]
    values = run.values(0)
    assert {name for name in values if "output" in name} == {"Sequential_output_0", "0_output_0", "1_output_0"}
    np.testing.assert_array_equal(values["Sequential_output_0"], expected)


def test_a_pickled_model_needs_no_smdebug(model: torch.nn.Module) -> None:
    file = io.BytesIO()
    torch.save(model, file)
    for pickled in (file.getvalue(), *(pickle.dumps(model, protocol) for protocol in range(2, 6))):
        assert b"smdebug" not in pickled
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    torch.testing.assert_close(loaded(X), model(X))
