"""Tests of how rules judge the training and validation losses that `fit` leaves."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.rules.builtin.loss_not_decreasing import LossNotDecreasing
from smdebug.rules.builtin.overfit import Overfit
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.hooks import closing_hooks
from tests.unit.smdebug.rules.builtin.judging import find_firing
from tests.unit.smdebug.tensorflow.frameworks import keras

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).random((40, 4), np.float32)
Y = X @ np.random.default_rng(1).random((4, 2), np.float32)
Train = Callable[[float, float], Trial]


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains for eight epochs, validated on labels that are off by some amount; once for each rate and amount."""

    @cache
    def start(rate: float, offset: float) -> Trial:
        out_dir = str(tmp_path_factory.mktemp("fit") / "run")
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Dense(Y.shape[1], name="d")])
        model.compile(keras.optimizers.SGD(rate), "mse", run_eagerly=True)
        with closing_hooks(smd.KerasHook) as make_hook:
            hook = make_hook(out_dir, save_config=smd.SaveConfig(save_interval=1))
            model.fit(X, Y, batch_size=20, epochs=8, verbose=0, validation_data=(X, Y + offset), callbacks=[hook])
        keras.backend.clear_session()
        return create_trial(out_dir)

    return start


# By day one training, whose losses of both modes a rule compares: other tests judge losses without a training.
@pytest.mark.parametrize(
    ("offset", "is_overfit"),
    [pytest.param(0.0, False, id="same", marks=pytest.mark.nightly), pytest.param(10.0, True, id="other")],
)
def test_overfit_compares_training_and_validation(train: Train, offset: float, is_overfit: bool) -> None:
    trial = train(0.05, offset)
    assert bool(find_firing(Overfit(trial, patience=2, ratio_threshold=0.1))) is is_overfit


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
@pytest.mark.parametrize(("rate", "stands_still"), [(0.05, False), (0.0, True)], ids=["learns", "stands"])
def test_loss_not_decreasing_judges_each_mode(train: Train, mode: str, rate: float, stands_still: bool) -> None:
    trial = train(rate, 0.0)
    # An epoch is two batches of training, and two of validation.
    rule = LossNotDecreasing(trial, num_steps=4, diff_percent=0.01, increase_threshold_percent=100, mode=mode)
    assert bool(find_firing(rule)) is stands_still
