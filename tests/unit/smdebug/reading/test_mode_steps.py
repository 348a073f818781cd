"""Tests of the containers of smdebug's Tensor, used on their own."""

import numpy as np
import pytest

from smdebug.format.tensor_location import TensorLocation, TensorShape
from smdebug.mode_keys import ModeKeys
from smdebug.reading.tensor import ModeSteps, Step

LOCATION = TensorLocation("t", "events/000000000003/000000000003_worker_0.tfevents", 0, 80, None, None)


def test_step() -> None:
    step = Step(3, value=np.ones(2), location=LOCATION)
    assert step.reduction_value("mean", abs=False) is None
    assert step.reduction_location("mean", abs=False) is None
    step.set_reduction_value("mean", False, np.asarray(1, np.float32))
    step.set_reduction_location("l2", True, LOCATION)
    assert step.reduction_values() == {("mean", False): 1}
    assert step.reduction_locations() == {("l2", True): LOCATION}
    assert step.reduction_value("mean", abs=False) == 1
    assert step.reduction_value("mean", abs=True) is None
    assert step.reduction_location("l2", abs=True) == LOCATION


def test_mode_steps() -> None:
    steps = ModeSteps(ModeKeys.TRAIN)
    assert not steps.has_step(3)
    with pytest.raises(KeyError):
        steps.step(3)
    steps.set_step_location(7, "worker_1", LOCATION)
    steps.set_step_value(3, "worker_0", np.arange(3))
    steps.set_step_shape(3, "worker_0", TensorShape("t", "t", (3,)))
    steps.set_step_reduction_value(3, "worker_0", "max", False, np.asarray(2))
    steps.set_step_reduction_location(3, "worker_0", "max", False, LOCATION)
    assert steps.mode is ModeKeys.TRAIN
    assert steps.steps() == [3, 7]
    assert steps.step(7)["worker_1"].location == LOCATION
    found = steps.step(3)["worker_0"]
    assert found.value is not None
    assert found.value.tolist() == [0, 1, 2]
    assert found.shape == ("t", "t", (3,))
    assert found.reduction_value("max", abs=False) == 2
    assert found.reduction_location("max", abs=False) == LOCATION
