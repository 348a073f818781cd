from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.rules.builtin.exploding_tensor import ExplodingTensor, count_exploded
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker

NAN, INF = np.nan, np.inf


def open_run(folder: Path, tensors: dict[str, Any]) -> Trial:
    run = RunMaker(folder)
    run.write_step(0, tensors)
    run.end()
    return create_trial(str(folder))


@pytest.mark.parametrize(
    ("values", "both", "nan"),
    [
        ([1.0, 2.0], 0, 0),
        ([NAN, 1.0, NAN], 2, 2),
        ([INF, -INF, 0.0], 2, 0),
        ([NAN, INF], 2, 1),
        ([], 0, 0),
        ([complex(0, NAN)], 1, 1),
    ],
)
def test_count(values: list[Any], both: int, nan: int) -> None:
    assert count_exploded(np.array(values), only_nan=False) == both
    assert count_exploded(np.array(values), only_nan=True) == nan


@pytest.mark.parametrize("values", [np.array(["nan"]), np.array([1]), np.array([True])])
def test_other_types_cannot_explode(values: Any) -> None:
    assert count_exploded(values, only_nan=False) == 0


@pytest.mark.parametrize(
    ("parameters", "fires"),
    [
        ({}, True),
        ({"only_nan": "True"}, False),
        ({"collection_names": "losses"}, False),
        ({"tensor_regex": "weight$"}, True),
        ({"collection_names": "losses", "tensor_regex": "^gradient"}, False),
        ({"collection_names": "losses,weights"}, True),
    ],
)
def test_choice_of_tensors(tmp_path: Path, parameters: dict[str, str], fires: bool) -> None:
    trial = open_run(tmp_path, {"fc.weight": np.array([1, INF]), "loss": 1.0, "gradient/a": np.ones(2)})
    rule = ExplodingTensor(trial, **parameters)
    assert rule.invoke_at_step(0) is fires
    if fires:
        assert rule.finding is not None
        assert (rule.finding.tensor, rule.finding.value, rule.finding.threshold) == ("fc.weight", 1, 0)
        assert "1 of its 2 values is NaN or infinite; the rule allows none" in str(rule.finding)


@pytest.mark.parametrize(
    ("reduction", "value", "fires"),
    [("max", INF, True), ("abs_min", NAN, True), ("sum", INF, False), ("std", NAN, False), ("min", 1.0, False)],
)
def test_reductions_stand_in_where_they_tell(tmp_path: Path, reduction: str, value: float, fires: bool) -> None:
    rule = ExplodingTensor(open_run(tmp_path, {f"smdebug/reductions/{reduction}/a": value}))
    assert rule.invoke_at_step(0) is fires


def test_healthy_real_run(upstream_run: Any) -> None:
    trial = upstream_run("pt_save_all")
    rule = ExplodingTensor(trial)
    assert [rule.invoke_at_step(step) for step in trial.steps()] == [False] * 3
    assert rule.inspected > 50
