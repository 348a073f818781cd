"""Tests of the report and the plot of a rule evaluation."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.rule_pictures import judge_firing, make_firings
from smdebug.rules import Rule
from smdebug.rules.builtin import find_built_in_rule, list_names
from smdebug.rules.evaluator import evaluate, evaluate_to_end
from smdebug.rules.report.rule_pages import describe_rule
from smdebug.rules.report.rule_plot import draw_plot
from smdebug.rules.report.rule_report import RuleReport
from smdebug.rules.watched_quantity import MOST_POINTS, WatchedQuantity
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker

PICTURES = Path(__file__).parents[4] / "docs" / "rules"
FIRINGS = make_firings()
# These have no threshold that is a number.
UNMEASURED = {"SimilarAcrossRuns"}


def read_report(folder: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found: dict[str, Any] = json.loads((folder / "report.json").read_text(), parse_constant=refuse)
    return found


def test_every_rule_that_can_fire_has_a_picture() -> None:
    can_fire = {name for name in list_names() if find_built_in_rule(name).can_fire}
    assert set(FIRINGS) == can_fire
    assert {path.stem for path in PICTURES.iterdir()} == can_fire


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRINGS)
def test_verdict_report_and_picture_of_a_firing(name: str, tmp_path: Path) -> None:
    judge_firing(name, FIRINGS[name], tmp_path)
    report = read_report(tmp_path)
    assert report["RuleEvaluationStatus"] == "IssuesFound"
    finding = report["Finding"]
    first, second, heading, *advice = report["StatusDetails"].split("\n")
    assert first.endswith(f"the rule {name} at step {finding['Step']} resulted in the condition being met")
    place = f"{finding['Tensor']} at step {finding['Step']} (mode {finding['Mode']}, mode step {finding['ModeStep']})"
    assert second.startswith(place)
    if name not in UNMEASURED:
        assert f"{finding['Threshold']:g}" in second
        assert any(f"{finding['Value']:.{digits}g}" in second for digits in (4, 6))
    assert (heading, [f"- {line}" for line in find_built_in_rule(name).advice]) == ("What to do:", advice)
    assert finding["WhatToDo"] == list(find_built_in_rule(name).advice)
    series = [each for each in report["Series"] if each["Steps"][-1] == finding["Step"]]
    assert any(each["Values"][-1] == pytest.approx(finding["Value"]) for each in series), report
    assert report["StepsEvaluated"]["Last"] == finding["Step"]
    assert report["StepsEvaluated"]["First"] == report["StepsEvaluated"]["PassedOver"] == 0
    assert report["RuleParameters"].keys() >= FIRINGS[name].parameters.keys()
    drawn = (tmp_path / "plot.svg").read_text()
    assert drawn == (PICTURES / f"{name}.svg").read_text(), "draw it again: python -m examples.rule_pictures docs/rules"
    texts = [element.text or "" for element in ElementTree.fromstring(drawn).iter() if element.tag.endswith("text")]
    shown = " ".join(texts)
    assert second in shown
    assert any(text.startswith(f"{finding['Value']:.4g}") for text in texts)


@pytest.mark.parametrize("name", FIRINGS)
def test_each_rule_says_in_three_lines_what_to_do(name: str) -> None:
    advice = find_built_in_rule(name).advice
    assert len(advice) == 3
    assert all(20 < len(line) <= 120 and line.endswith(".") for line in advice)
    page = describe_rule(find_built_in_rule(name))
    assert all(f"\n* {line}" in page for line in advice)


def test_advice_is_not_what_a_long_name_cuts_off(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_steps(f"gradient/{'block.' * 300}weight", {0: 0.0})
    run.end()
    rule = find_built_in_rule("VanishingGradient")(create_trial(run.out_dir))
    details = evaluate(rule).details
    assert len(details) == 1024
    assert details.endswith("\n".join(f"- {line}" for line in rule.advice))


class Mine(Rule):
    """With attributes of its own where built-in rules keep their parameters and what they found."""

    def __init__(self, base_trial: Any, measured: Callable[[int], Any]) -> None:
        super().__init__(base_trial)
        self.values = [1.0, 2.0]
        self.measured = measured

    def invoke_at_step(self, step: int) -> bool:
        self.watch("measured", step, self.measured(step), np.float32(2))  # type: ignore[arg-type]
        self.finding = "it is so"  # type: ignore[assignment]
        return step == 2


def write_report(rule: Rule, folder: Path) -> dict[str, Any]:
    report = RuleReport("R", "R", "run", {"given": "1"}, rule)
    report.write(evaluate_to_end(rule, 0, None, folder, report), folder)
    ElementTree.fromstring((folder / "plot.svg").read_text())
    return read_report(folder)


@pytest.fixture
def three_steps(tmp_path: Path) -> Trial:
    run = RunMaker(tmp_path / "run")
    run.write_steps("loss", {step: np.float32(step) for step in range(3)})
    run.end()
    return create_trial(run.out_dir)


@pytest.mark.parametrize(
    ("measured", "values"),
    [
        (np.float32, [0.0, 1.0, 2.0]),
        (lambda step: np.array([step]), [0.0, 1.0, 2.0]),
        (lambda _: 1e20, [1e20] * 3),
        (lambda step: 1.7e308 * (-1) ** step, [1.7e308, -1.7e308, 1.7e308]),
        (lambda step: step * 5e-324, [0.0, 5e-324, 1e-323]),
    ],
)
def test_a_custom_rule_may_measure_any_number(
    three_steps: Trial, measured: Callable[[int], Any], values: list[float], tmp_path: Path
) -> None:
    report = write_report(Mine(three_steps, measured), tmp_path)
    assert report["RuleEvaluationStatus"] == "IssuesFound"
    assert report["StatusDetails"].endswith("it is so")
    assert (report["RuleParameters"], report["Finding"]) == ({"given": "1"}, None)
    assert (report["Series"][0]["Values"], report["Series"][0]["Threshold"]) == (values, 2.0)


def test_a_threshold_may_be_infinite(three_steps: Trial, tmp_path: Path) -> None:
    rule = find_built_in_rule("TensorVariance")(three_steps, tensor_regex=".", max_threshold="inf")
    assert write_report(rule, tmp_path)["RuleParameters"]["max_threshold"] == "inf"
    equal = WatchedQuantity("tiny", None, "above")
    for step in range(2):
        equal.add(step, 5e-324 * step, "t", None)
    ElementTree.fromstring(draw_plot("x", [equal], 1))


def test_the_nearest_value_of_a_step_counts() -> None:
    above, below = WatchedQuantity("x", 2.0, "above"), WatchedQuantity("x", 2.0, "below")
    for quantity in (above, below):
        for value, tensor in ((math.nan, "a"), (1.0, "b"), (3.0, "c"), (math.nan, "d")):
            quantity.add(5, value, tensor, None)
        quantity.add(6, math.inf, "e", "worker_0")
    assert (above.steps, above.values, above.tensors) == ([5, 6], [3.0, math.inf], ["c", "e"])
    assert (below.values, below.tensors) == ([1.0, math.inf], ["b", "e"])
    assert above.to_json()["Values"] == [3.0, "inf"]


def test_a_long_series_is_thinned_and_keeps_its_extremes() -> None:
    quantity = WatchedQuantity("x", 100.0, "above")
    for step in range(10 * MOST_POINTS):
        quantity.add(step, 50.0 if step == 12_345 else math.sin(step), "t", None)
    assert MOST_POINTS <= len(quantity.steps) < 2 * MOST_POINTS
    assert quantity.steps == sorted(quantity.steps)
    assert quantity.values[quantity.steps.index(12_345)] == 50.0


def test_plot_of_what_cannot_be_drawn_is_still_a_picture() -> None:
    empty, odd = WatchedQuantity("<a & b>", None, "above"), WatchedQuantity("b", math.inf, "below")
    odd.add(3, math.nan, "t", None)
    wide = WatchedQuantity("c", 1e-7, "below")
    for step, value in enumerate((1.0, 1e-3, 1e-9)):
        wide.add(step, value, "t", None)
    picture = draw_plot("<x>", [empty, odd, wide], 2)
    ElementTree.fromstring(picture)
    # Far apart and above 0: the axis counts decades.
    assert {">1<", ">1e-06<"} <= set(re.findall(r">[^<>]+<", picture))


@pytest.mark.parametrize(
    ("fires", "values", "found"),
    [("above", (3.0, 4.0), 1), ("at or above", (3.0, 4.0), 2), ("below", (3.0, 2.0), 1)],
)
def test_a_quantity_says_where_it_fires(fires: Any, values: tuple[float, ...], found: int) -> None:
    quantity = WatchedQuantity("q", 3.0, fires)
    for step, value in enumerate(values):
        quantity.add(step, value, "t", None)
    assert [step for step in range(3) if quantity.fires_at(step)] == [0, 1][-found:]


@pytest.mark.parametrize("value", [0.0, 3.0, -3.0, 1e300])
def test_a_single_value_is_a_bar_with_its_name(value: float) -> None:
    quantity = WatchedQuantity("q", 1.0, "above")
    quantity.add(500, value, "gradient/" + "very_long_" * 9 + "weight", None)
    for fired_at in (None, 500):
        shapes = list(ElementTree.fromstring(draw_plot("x", [quantity], fired_at)).iter())
        bar = next(shape for shape in shapes if shape.tag.endswith("rect") and shape.get("fill-opacity"))
        assert (float(bar.get("height", "")) > 20) is (value != 0)
        assert sum(shape.tag.endswith("circle") for shape in shapes) == (fired_at is not None)
        assert any((shape.text or "").startswith(f"{value:.4g} gradient/ver…") for shape in shapes)


def test_the_dot_is_in_the_panel_that_fired() -> None:
    innocent, guilty = WatchedQuantity("innocent", 3.0, "above"), WatchedQuantity("guilty", 3.0, "above")
    for step in range(2):
        innocent.add(step, 1.0, "t", None)
        guilty.add(step, 2.5 + step, "t", None)
    assert draw_plot("x", [innocent, guilty], 1).count('r="5"') == 1
    assert draw_plot("x", [innocent], 1).count('r="5"') == 1
    assert draw_plot("x", [innocent, guilty], None).count('r="5"') == 0


def test_each_mode_has_a_line_with_its_name() -> None:
    quantity = WatchedQuantity("q", 3.0, "above")
    for step in range(9):
        quantity.add(step, 1.0 + step % 3, "t", None, "EVAL" if step % 3 == 2 else "TRAIN")
    picture = draw_plot("x", [quantity], 5)
    lines = [each for each in ElementTree.fromstring(picture).iter() if each.tag.endswith("polyline")]
    assert [len(line.get("points", "").split()) for line in lines] == [6, 3, 2, 2]
    assert [line.get("stroke-dasharray") is None for line in lines] == [True, False, False, True]
    assert {">TRAIN<", ">EVAL<"} <= set(re.findall(r">[^<>]+<", picture))
    assert quantity.to_json()["Modes"] == ["TRAIN", "TRAIN", "EVAL"] * 3
