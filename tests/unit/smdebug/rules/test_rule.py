from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet, TensorUnavailable, TensorUnavailableForStep
from smdebug.rules import RequiredTensors, Rule, invoke_rule
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker


class Above(Rule):
    """Fires where t is above a threshold; notes the steps that it was asked about."""

    def __init__(self, base_trial: Trial, threshold: str = "5", **more: Any) -> None:
        super().__init__(base_trial, **more)
        self.threshold = float(threshold)
        self.asked: list[int] = []

    def invoke_at_step(self, step: int) -> bool:
        self.asked.append(step)
        return bool(self.base_trial.tensor("t").value(step) > self.threshold)


class Required(Above):
    def set_required_tensors(self, step: int) -> None:
        self.req_tensors.add("t", [step])
        self.req_tensors.add("^x", [step], should_match_regex=True)

    def invoke_at_step(self, step: int) -> bool:
        (tensor,) = self.req_tensors.get()
        assert self.req_tensors.get_names() == ["t"]
        assert self.req_tensors.get_tensor_steps("t") == [step]
        self.asked.append(step)
        return bool(tensor.value(step) > self.threshold)


@pytest.fixture
def run(tmp_path: Path) -> RunMaker:
    made = RunMaker(tmp_path)
    made.write_steps("t", {0: 1.0, 500: 9.0, 1000: 2.0, 1500: 7.0})
    made.write_step(2000, {"other": 1.0})
    return made


@pytest.fixture
def trial(run: RunMaker) -> Trial:
    run.end()
    return create_trial(run.out_dir)


def test_constructor_forms(trial: Trial) -> None:
    class Plain(Above):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            Rule.__init__(self, *arguments, **named)

    assert Plain(trial).trials == [trial]
    assert Plain(trial, other_trials=None).other_trials is None
    assert Plain(trial, "[]", [trial]).other_trials == [trial]
    assert Plain(trial, [trial]).other_trials == [trial]
    assert Plain(trial, other_trials=trial).trials == [trial, trial]
    assert Plain(trial, action_str=None).action_str == ""
    assert Plain(trial).report["RuleTriggered"] == 0
    assert Plain(trial).rule_name == "Plain"


@pytest.mark.parametrize("rule_class", [Above, Required])
def test_invoke_rule_visits_saved_steps_and_ends_with_no_more_data(trial: Trial, rule_class: type[Above]) -> None:
    rule = rule_class(trial)
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert [step for step in rule.asked if step < 2000] == [0, 500, 1000, 1500]
    assert rule.report["RuleTriggered"] == 2


def test_bounds(trial: Trial) -> None:
    rule = Above(trial)
    invoke_rule(rule, start_step=1, end_step=1500)
    assert rule.asked == [500, 1000]
    invoke_rule(rule, start_step=None, end_step=500)
    assert rule.asked == [500, 1000, 0]
    invoke_rule(rule, start_step=7, end_step=7)
    with pytest.raises(NoMoreData, match=r"2001.*2000"):
        invoke_rule(rule, start_step=1600, end_step=2002)


def test_raise_eval_cond(trial: Trial) -> None:
    rule = Above(trial)
    with pytest.raises(RuleEvaluationConditionMet, match="rule Above at step 500 resulted in the condition being met"):
        invoke_rule(rule, raise_eval_cond=True)
    assert rule.asked == [0, 500]


def test_condition_that_ends_the_rule(trial: Trial) -> None:
    class Last(Above):
        def invoke(self, step: int) -> None:
            self.asked.append(step)
            raise RuleEvaluationConditionMet("Last", step, end_of_rule=True)

    rule = Last(trial)
    invoke_rule(rule)
    assert rule.asked == [0]


def test_error_of_the_rule_leaves_refreshing_on(trial: Trial) -> None:
    class Broken(Above):
        def invoke_at_step(self, step: int) -> bool:
            assert not self.base_trial.dynamic_refresh
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        invoke_rule(Broken(trial))
    assert trial.dynamic_refresh


def test_required_tensors(trial: Trial) -> None:
    required = RequiredTensors(trial)
    with pytest.raises(TensorUnavailable):
        required.add("nothing", [0])
    required.add("t", [0])
    required.add("t", [500])
    assert required.get_tensor_steps("t", trial) == [0, 500]
    required.fetch()
    required.clear()
    assert required.get_names() == []
    required.add("other", [0])
    with pytest.raises(TensorUnavailableForStep, match=r"other.*step 0"):
        required.fetch()


def test_live_run_is_followed(run: RunMaker) -> None:
    """Each step is judged while the run goes on: the rule itself writes the next one."""

    class Writing(Above):
        def invoke_at_step(self, step: int) -> bool:
            fires = super().invoke_at_step(step)
            if step == 1500:
                run.write_step(3000, {"t": 0.0})
                run.end()
            return fires

    rule = Writing(create_trial(run.out_dir, poll_interval_s=0.002))
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert rule.asked == [0, 500, 1000, 1500, 2000, 3000]


def test_invoke_rule_says_what_it_did(trial: Trial, said: pytest.LogCaptureFixture) -> None:
    with pytest.raises(NoMoreData):
        invoke_rule(Above(trial))
    assert said.messages[0] == "Rule Above is evaluated at global steps from 0 on."
    assert sum("resulted in the condition being met" in message for message in said.messages) == 2
    assert said.messages[-1] == "Rule Above was evaluated at 4 steps; its condition was met at 2 of them."
