from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.rules.builtin.dead_relu import DeadRelu
from smdebug.rules.measuring.activations import compute_inactive_percent
from tests.unit.smdebug.rules.builtin.judging import find_firing, get_finding, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def count_dead(outputs: NDArray[Any], inactivity: float) -> float:
    """The documented share, unit by unit."""
    units = [outputs[(slice(None), *position)] for position in np.ndindex(*outputs.shape[1:])]
    dead = [unit for unit in units if 100.0 * sum(value > 0 for value in unit) / len(unit) < inactivity]
    return 100.0 * len(dead) / len(units)


def make_layer(dead: int, units: int = 10, samples: int = 8) -> NDArray[Any]:
    outputs = np.ones((samples, units), dtype=np.float32)
    outputs[:, :dead] = 0
    return outputs


@pytest.mark.parametrize("shape", [(200, 7), (16, 3, 4, 4), (1, 5)])
@pytest.mark.parametrize("inactivity", [0.0, 1.0, 40.0, 100.0])
def test_agrees_with_counting(shape: tuple[int, ...], inactivity: float) -> None:
    outputs = np.maximum(np.random.default_rng(3).standard_normal(shape) - 0.5, 0)
    assert compute_inactive_percent(outputs > 0, inactivity) == pytest.approx(count_dead(outputs, inactivity))


@pytest.mark.parametrize(
    "name",
    [
        "dense0_relu_output_0",
        "relu0_output_0",
        "relu1_output_0",
        "features.relu_output_0",
        "re_lu_1/outputs",
        "relu/outputs_0",
        "ReLU_output_0",
        "relu6_output_0",
    ],
)
def test_names_of_every_framework(tmp_path: Path, name: str) -> None:
    rule = DeadRelu(write_run(tmp_path, [{name: make_layer(5)}, {name: make_layer(6)}]))
    assert find_firing(rule) == [1]
    finding = get_finding(rule)
    assert (finding.tensor, finding.step, finding.value, finding.threshold) == (name, 1, 60.0, 50.0)


@pytest.mark.parametrize("name", ["leaky_re_lu/outputs", "leakyrelu0_output_0", "prelu1_output_0", "1_output_0"])
def test_other_functions_are_left_alone(tmp_path: Path, name: str) -> None:
    rule = DeadRelu(write_run(tmp_path, [{name: make_layer(10)}]))
    assert find_firing(rule) == []
    assert rule.inspected == 0


def test_unnamed_relu_is_known_by_what_it_does(tmp_path: Path) -> None:
    given = np.random.default_rng(0).standard_normal((8, 10)).astype(np.float32) - 10
    pairs = {"2_input_0": given, "2_output_0": np.maximum(given, 0), "3_input_0": given, "3_output_0": np.tanh(given)}
    rule = DeadRelu(write_run(tmp_path, [pairs]))
    assert find_firing(rule) == [0]
    assert get_finding(rule).tensor == "2_output_0"
    saturated = {"3_input_0": given, "3_output_0": np.minimum(given, 0)}
    assert find_firing(DeadRelu(write_run(tmp_path / "rest", [saturated]))) == []


def test_collection_and_regex(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"act_output_0": make_layer(6)}], collections={"relu_output": {"act_output_0"}})
    assert find_firing(DeadRelu(trial)) == [0]
    assert find_firing(DeadRelu(trial, tensor_regex="^act_output")) == [0]
    assert find_firing(DeadRelu(trial, tensor_regex="^other")) == []


def test_thresholds(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"relu_output_0": make_layer(6)}])
    assert find_firing(DeadRelu(trial, threshold_layer="60")) == []
    assert find_firing(DeadRelu(trial, threshold_layer="59.9")) == [0]
    assert find_firing(DeadRelu(trial, threshold_inactivity="0")) == []


@pytest.mark.parametrize(
    ("reduction", "value", "fires"), [("max", 0.0, True), ("abs_max", 0.0, True), ("min", 0.1, False)]
)
def test_reductions_that_tell(tmp_path: Path, reduction: str, value: float, fires: bool) -> None:
    rule = DeadRelu(write_run(tmp_path, [{f"smdebug/reductions/{reduction}/relu_output_0": value}]))
    assert bool(find_firing(rule)) is fires


def test_reductions_that_do_not_tell(tmp_path: Path) -> None:
    rule = DeadRelu(write_run(tmp_path, [{"smdebug/reductions/max/relu_output_0": 1.0}]))
    with pytest.raises(TensorUnavailableForStep, match="relu_output_0"):
        rule.invoke_at_step(0)


def test_wrong_parameter(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="threshold_layer is '101', expected a number from 0 to 100"):
        DeadRelu(write_run(tmp_path, [{}]), threshold_layer="101")
