from pathlib import Path

import pytest

from smdebug.exceptions import TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    run = RunMaker(tmp_path, with_collections=False)
    run.write_collections({"inputs": {"in_10", "in_9"}})
    everything = {"in_9": 9.0, "in_10": 10.0, "labels": 1.0, "labels_1": 2.0, "prediction": 3.0, "other_labels": 4.0}
    run.write_step(0, everything, ModeKeys.TRAIN, 0)
    run.write_step(1, {"in_9": 90.0, "labels": 7.0}, ModeKeys.EVAL, 0)
    run.write_step(2, {"smdebug/reductions/mean/predictions": 1.0}, ModeKeys.EVAL, 1)
    run.end()
    return create_trial(str(tmp_path))


def test_inputs_labels_predictions_in_the_order_of_their_numbers(trial: Trial) -> None:
    assert [value.item() for value in trial.inputs(0)] == [9, 10]
    assert [value.item() for value in trial.labels(0)] == [1, 4, 2]
    assert [value.item() for value in trial.predictions(0)] == [3]


def test_steps_of_a_mode(trial: Trial) -> None:
    assert [value.item() for value in trial.inputs(0, ModeKeys.EVAL)] == [90]
    assert [value.item() for value in trial.labels(0, mode=ModeKeys.EVAL)] == [7]
    assert trial.labels(5, ModeKeys.EVAL) == []
    assert trial.predictions(1) == []


def test_reductions_alone_are_not_values(trial: Trial) -> None:
    with pytest.raises(TensorUnavailableForStep, match="predictions"):
        trial.predictions(2)
