"""Tests of what taps take from an optimizer."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit.smdebug.tensorflow.frameworks import keras, load_frameworks, tf

pytestmark = pytest.mark.slow


def make_scaling_optimizer() -> Any:
    """Keras 3's, before its first step."""
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), initial_scale=1024.0)


def make_constant_optimizer() -> Any:
    return keras.optimizers.SGD(loss_scale_factor=1024.0)


def make_keras_2_optimizer() -> Any:
    """Keras 2's of the same name, as far as taps look at it: interop/test_keras_2.py has the real one by night."""
    return SimpleNamespace(initial_scale=1024.0, get_unscaled_gradients=lambda gradients: gradients)


@pytest.mark.parametrize(
    ("make_optimizer", "saved"),
    [
        (make_scaling_optimizer, 2.0),
        (make_constant_optimizer, 2.0),
        (make_keras_2_optimizer, 2048.0),
        (SimpleNamespace, 2048.0),
    ],
    ids=["keras 3", "constant", "keras 2", "no scale"],
)
def test_a_loss_scale_is_undone_where_gradients_have_it(make_optimizer: Any, saved: float) -> None:
    load_frameworks()
    from smdebug.tensorflow.steps.taps import Collector

    variable, gradient = tf.Variable([1.0]), tf.constant([2048.0])
    names: Any = SimpleNamespace(gradients={id(variable): "gradients/a"}, refresh=lambda: None)
    wants: Any = SimpleNamespace(gradients={"gradients/a"})
    collector = Collector(names, wants, lambda *_: None)
    collector.add_gradients(make_optimizer(), [(gradient, variable)])
    np.testing.assert_array_equal(collector.get_values()["gradients/a"], [saved])
