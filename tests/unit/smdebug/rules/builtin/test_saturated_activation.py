from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.rules.builtin.saturated_activation import SaturatedActivation
from smdebug.rules.measuring.activations import compute_inactive_percent
from tests.unit.smdebug.rules.builtin.judging import find_firing, get_finding, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def count_saturated(inputs: NDArray[Any], low: float, high: float, inactivity: float) -> float:
    nodes = [inputs[(slice(None), *position)] for position in np.ndindex(*inputs.shape[1:])]
    inside = [100.0 * sum(low <= value <= high for value in node) / len(node) for node in nodes]
    return 100.0 * sum(share < inactivity for share in inside) / len(nodes)


def make_layer(saturated: int, value: float) -> NDArray[Any]:
    inputs = np.random.default_rng(1).uniform(-1.5, 1.5, (6, 10)).astype(np.float32)
    inputs[:, :saturated] = value
    return inputs


@pytest.mark.parametrize("shape", [(40, 9), (8, 2, 3)])
def test_agrees_with_counting(shape: tuple[int, ...]) -> None:
    inputs = np.random.default_rng(5).normal(scale=12, size=shape)
    for inactivity in (1.0, 50.0, 90.0):
        found = compute_inactive_percent((inputs >= -9.4999) & (inputs <= 9.4999), inactivity)
        assert found == pytest.approx(count_saturated(inputs, -9.4999, 9.4999, inactivity))


@pytest.mark.parametrize(
    ("name", "outside", "inside"),
    [
        ("dense0_tanh_input_0", 9.5, 9.49),
        ("tanh1_input_0", -9.5, -9.49),
        ("tanh_2/inputs", 9.5, 9.49),
        ("dense0_sigmoid_input_0", 17.0, 16.9),
        ("sigmoid0_input_0", -23.1, -22.9),
        ("layer.sigmoid_input_0", 17.0, 16.9),
    ],
)
def test_names_of_every_framework(tmp_path: Path, name: str, outside: float, inside: float) -> None:
    steps = [{name: make_layer(6, inside)}, {name: make_layer(5, outside)}, {name: make_layer(6, outside)}]
    rule = SaturatedActivation(write_run(tmp_path, steps))
    assert find_firing(rule) == [2]
    finding = get_finding(rule)
    assert (finding.tensor, finding.value, finding.threshold) == (name, 60.0, 50.0)


@pytest.mark.parametrize(("function", "limit"), [(np.tanh, 10.0), (lambda x: 1 / (1 + np.exp(-x)), 18.0)])
def test_unnamed_module_is_known_by_what_it_does(tmp_path: Path, function: Any, limit: float) -> None:
    healthy, saturated = make_layer(5, limit), make_layer(6, limit)
    steps = [{"act_input_0": each, "act_output_0": function(each)} for each in (healthy, saturated)]
    assert find_firing(SaturatedActivation(write_run(tmp_path, steps))) == [1]
    identity = [{"act_input_0": saturated, "act_output_0": saturated}]
    assert find_firing(SaturatedActivation(write_run(tmp_path / "identity", identity))) == []


def test_both_functions_fit_where_all_is_saturated(tmp_path: Path) -> None:
    """tanh(40) and sigmoid(40) are both 1: judged by both ranges, until smaller inputs tell which one it is."""
    inputs = [np.full((4, 3), value, dtype=np.float32) for value in (40.0, 12.0, 1.0, 12.0)]
    trial = write_run(tmp_path, [{"act_input_0": each, "act_output_0": np.tanh(each)} for each in inputs])
    assert find_firing(SaturatedActivation(trial)) == [0, 3]


def test_chosen_tensor_of_unknown_function_is_measured_by_both_ranges(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"x": make_layer(6, 10.0)}, {"x": make_layer(6, 18.0)}], collections={"mine": {"x"}})
    assert find_firing(SaturatedActivation(trial, tensor_regex="^x$")) == [1]
    assert find_firing(SaturatedActivation(trial, collection_names="mine")) == [1]
    assert find_firing(SaturatedActivation(trial)) == []


def test_reductions(tmp_path: Path) -> None:
    inside = {f"smdebug/reductions/{name}/tanh_input_0": value for name, value in (("min", -9.0), ("max", 9.0))}
    trial = write_run(tmp_path, [inside, {**inside, "smdebug/reductions/max/tanh_input_0": 20.0}])
    rule = SaturatedActivation(trial)
    assert rule.invoke_at_step(0) is False
    with pytest.raises(TensorUnavailableForStep, match="min and max"):
        rule.invoke_at_step(1)


def test_ranges_must_be_ranges(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="threshold_tanh_min 3 is above threshold_tanh_max 2"):
        SaturatedActivation(write_run(tmp_path, [{}]), threshold_tanh_min="3", threshold_tanh_max="2")
