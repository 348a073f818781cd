from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.rules.builtin.vanishing_gradient import VanishingGradient
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker


def open_run(folder: Path, tensors: dict[str, Any]) -> Trial:
    run = RunMaker(folder)
    run.write_step(0, tensors, ModeKeys.TRAIN, 0)
    run.end()
    return create_trial(str(folder))


@pytest.mark.parametrize(("abs_mean", "fires"), [(0.0, True), (9e-8, True), (1e-7, False), (float("nan"), False)])
def test_threshold_is_exclusive(tmp_path: Path, abs_mean: float, fires: bool) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"gradient/w": np.array([abs_mean])})
    run.end()
    assert VanishingGradient(create_trial(str(tmp_path)), threshold="1e-7").invoke_at_step(0) is fires


@pytest.mark.parametrize("name", ["gradient/Net_fc.weight", "gradient/dense0_weight", "gradients/d1/kernelGrad"])
def test_names_of_every_framework(tmp_path: Path, name: str) -> None:
    rule = VanishingGradient(open_run(tmp_path, {name: np.full(4, -1e-8), "fc.weight": np.zeros(4)}))
    assert rule.invoke_at_step(0) is True
    assert rule.finding is not None
    assert rule.finding.tensor == name
    assert rule.finding.value == pytest.approx(1e-8)
    assert f"{name} at step 0 (mode TRAIN, mode step 0), worker_0: the mean of its absolute" in str(rule.finding)


def test_names_without_a_collection(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, with_collections=False)
    run.write_collections({"gradients": set()})
    run.write_step(0, {"gradients/d1/kernelGrad": np.zeros(3)})
    run.end()
    trial = create_trial(str(tmp_path))
    trial.collection("gradients").include_regex = ["^nothing"]
    assert VanishingGradient(trial).invoke_at_step(0) is True


def test_cancelling_values_have_not_vanished(tmp_path: Path) -> None:
    rule = VanishingGradient(open_run(tmp_path, {"gradient/a": np.array([1.0, -1.0])}), threshold="0.5")
    assert rule.invoke_at_step(0) is False
    assert rule.finding is None
    assert rule.inspected == 1


def test_saved_reduction_is_used(tmp_path: Path) -> None:
    tensors = {"gradient/a": np.ones(3), "smdebug/reductions/abs_mean/gradient/a": np.array([1e-9])}
    assert VanishingGradient(open_run(tmp_path, tensors)).invoke_at_step(0) is True


def test_reductions_that_do_not_tell(tmp_path: Path) -> None:
    trial = open_run(tmp_path, {"smdebug/reductions/mean/gradient/a": 1e-9})
    with pytest.raises(TensorUnavailableForStep, match="absolute mean"):
        VanishingGradient(trial).invoke_at_step(0)


def test_every_worker_is_judged(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, workers=2)
    run.write_step(0, {"gradient/a": np.ones(3)})
    run.write_step(0, {"gradient/a": np.zeros(3)}, worker="worker_1")
    run.end()
    rule = VanishingGradient(create_trial(str(tmp_path)))
    assert rule.invoke_at_step(0) is True
    assert rule.finding is not None
    assert rule.finding.worker == "worker_1"


def test_agrees_with_plain_numpy_on_a_real_run(upstream_run: Any) -> None:
    trial, threshold = upstream_run("pt_save_all"), 0.05
    for step in trial.steps():
        means = [np.abs(trial.tensor(n).value(step)).mean() for n in trial.tensor_names(step=step, regex="^gradient")]
        assert VanishingGradient(trial, threshold=threshold).invoke_at_step(step) == any(m < threshold for m in means)


def test_wrong_parameter(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="threshold is '-1', expected a number of at least 0"):
        VanishingGradient(open_run(tmp_path, {}), threshold="-1")
