"""Tests of rules of one's own: their source, their parameters, and their errors."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.save_config import SaveConfig
from smdebug.rules.container.rule_config import parse_rule_config
from smdebug.rules.container.verdict import Verdict
from smdebug.rules.evaluator import judge
from tests.integration.smdebug.rules.rule_container import build_config, capture_log, read_warnings
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker

CUSTOM = """
from limits import LIMIT
from smdebug.rules import Rule


class Base(Rule):
    pass


class AboveLimit(Base):
    def __init__(self, base_trial, factor="1", other_trials=None, patience: int = 3):
        assert isinstance(patience, int)
        super().__init__(base_trial, other_trials=other_trials)
        self.limit = float(factor) * LIMIT

    def invoke_at_step(self, step):
        if self.limit < 0:
            raise RuntimeError("a negative limit")
        others = [trial.tensor("loss").value(0) for trial in self.other_trials or ()]
        return self.base_trial.tensor("loss").value(step) > self.limit + sum(others)


class NoRule:
    pass
"""


@pytest.fixture
def custom(evaluate: Any, storage: Storage) -> Any:
    storage.put("rules/my_rule.py", CUSTOM.encode())
    storage.put("rules/limits.py", b"LIMIT = 2.0\n")
    storage.put("rules/notes.txt", b"")

    def evaluate_custom(rule: str = "AboveLimit", source: str = "s3://runs/rules", **parameters: str) -> Verdict:
        verdict: Verdict = evaluate(rule, source_s3_uri=source, **parameters)
        return verdict

    yield evaluate_custom
    sys.modules.pop("limits", None)


def test_custom_rule(custom: Any, run: RunMaker) -> None:
    run.write_steps("loss", {0: 1.0, 3: 5.0, 4: 9.0})
    run.end()
    assert (custom().status, custom().step) == ("IssuesFound", 3)
    assert custom(factor="3", patience="5").step == 4
    assert custom(factor="3", end_step="4").status == "NoIssuesFound"
    assert custom("NoRule").details == (
        "SMDebugValueError: NoRule in my_rule.py is not a rule: derive it from smdebug.rules.Rule."
    )


ASKING = """
from smdebug.exceptions import TensorUnavailable
from smdebug.rules import Rule


class Asks(Rule):
    def __init__(self, base_trial, by="collection", name="lossses"):
        super().__init__(base_trial)
        self.by, self.name = by, name

    def set_required_tensors(self, step):
        if self.by == "requirement":
            self.req_tensors.add(self.name, [step], should_match_regex=True)

    def invoke_at_step(self, step):
        if self.by == "name":
            try:
                return self.base_trial.tensor(self.name).value(step) > 9
            except TensorUnavailable:
                return False
        names = self.req_tensors.get_names()
        if self.by in ("collection", "regex"):
            names = self.base_trial.tensor_names(step=step, **{self.by: self.name})
        return any(self.base_trial.tensor(name).value(step) > 9 for name in names)
"""


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "collection lossses. There is no collection lossses. Did you mean losses? The run has 1 tensor: loss."),
        ({"by": "regex"}, "regex lossses. The run has 1 tensor: loss."),
        ({"by": "requirement"}, "regex lossses. The run has 1 tensor: loss."),
        ({"by": "name"}, "tensor lossses. The run has 1 tensor: loss."),
        ({"name": "losses"}, ""),
        ({"by": "regex", "name": "^loss"}, ""),
        ({"by": "requirement", "name": "^loss"}, ""),
        ({"by": "name", "name": "loss"}, ""),
        ({"by": "nothing"}, ""),
    ],
)
def test_custom_rule_that_finds_none_of_its_tensors_judged_nothing(
    evaluate: Any, storage: Storage, run: RunMaker, reported: Path, parameters: dict[str, str], said: str
) -> None:
    storage.put("rules/asks.py", ASKING.encode())
    run.write_steps("loss", {0: 1.0, 1: 2.0})
    run.end()
    verdict = evaluate("Asks", source_s3_uri="s3://runs/rules", **parameters)
    assert verdict.status == "NoIssuesFound"
    if said:
        opening = "Rule Asks judged nothing. It found none of what it looks at in the steps up to 1: "
        assert verdict.details.startswith(opening + said)
        assert read_warnings(reported) == [("RuleWithoutCollection", verdict.details)]
    else:
        assert verdict.details == "Rule Asks found no issue in 2 steps, the last of them 1."
        assert read_warnings(reported) == []


@pytest.mark.parametrize("source", [None, "s3://runs/rules/my_rule.py"])
def test_a_rule_whose_name_is_missing_is_told_so(
    tmp_path: Path, custom: Any, run: RunMaker, source: str | None
) -> None:
    config = build_config(tmp_path, run.out_dir, "", **({} if source is None else {"source_s3_uri": source}))
    (tmp_path / "source").mkdir()
    details = judge(parse_rule_config(config), tmp_path / "source").details
    assert " my-rule is the RuleConfigurationName: the parameter rule_to_invoke is missing." in details
    assert "is missing" not in custom("Nothing").details


def test_what_another_run_without_steps_lacks_is_told(
    evaluate: Any, storage: Storage, run: RunMaker, tmp_path: Path
) -> None:
    """It has collections, and not yet a step of which it could be said that they were not due."""
    source = ASKING.replace("self, base_trial, by", "self, base_trial, other_trials=None, by")
    source = source.replace("super().__init__(base_trial)", "super().__init__(base_trial, other_trials=other_trials)")
    source = source.replace("self.base_trial.tensor_names(step=step,", "self.trials[1].tensor_names(")
    storage.put("rules/asks.py", source.encode())
    run.write_steps("loss", {0: 1.0, 1: 2.0})
    run.end()
    other = RunMaker(tmp_path / "other")
    manager = CollectionManager()
    manager.add(Collection("mine", "^mine", save_config=SaveConfig()))
    manager.export(other.out_dir, "worker_0_collections.json")
    other.end()
    config = build_config(tmp_path, run.out_dir, "Asks", source_s3_uri="s3://runs/rules", name="mine")
    config["TensorsS3UriOfJobs"] = {"other": other.out_dir}
    config["RuleParameters"]["other_trials"] = "other"
    (tmp_path / "source").mkdir()
    verdict = judge(parse_rule_config(config), tmp_path / "source")
    assert (
        "collection mine. The collection mine is there, and its include_regex ^mine found no tensor" in verdict.details
    )


def test_actions_that_are_not_json_are_reported_before_the_code_is_loaded(custom: Any, storage: Storage) -> None:
    storage.put("rules/my_rule.py", f"{CUSTOM}\nraise RuntimeError('imported')\n".encode())
    assert custom().details.startswith("RuntimeError: imported")
    assert custom(action_json="{").details.startswith("SMDebugValueError: A rule's actions are not JSON")


def test_custom_rule_with_other_trials(custom: Any, run: RunMaker, tmp_path: Path) -> None:
    run.write_steps("loss", {0: 3.0})
    run.end()
    for name in ("job-2", "job-3"):
        other = RunMaker(tmp_path / name / "debug-output")
        other.write_steps("loss", {0: 1.0})
        other.end()
    assert custom(other_trial_0="job-2").status == "NoIssuesFound"
    assert custom(other_trials="job-2, job-3", factor="0.4").status == "IssuesFound"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"factor": "-1"}, "RuntimeError: a negative limit (my_rule.py, line 18)"),
        ({"factor": "x"}, "ValueError: could not convert string to float: 'x' (my_rule.py, line 14)"),
        ({"color": "red"}, "no parameter 'color'. Its parameters are: factor, other_trials, patience."),
        ({"patience": "x"}, "Rule AboveLimit: parameter patience is 'x', expected a whole number"),
        ({"rule": "Missing"}, "no class 'Missing'. The classes there are: AboveLimit, Base, NoRule."),
        ({"source": "s3://runs/nothing"}, "holds no .py file"),
        ({"source": "s3://runs/nothing/rule.py"}, "s3://runs/nothing/rule.py does not exist"),
        ({"source": "s3://runs/rules/broken.py"}, "broken.py is not Python"),
        ({"source": "s3://runs/escape"}, "leaves the folder"),
        ({"source": "https://example.com/rule.py"}, "give s3://bucket/prefix/file.py."),
    ],
)
def test_custom_rule_that_fails(
    custom: Any,
    run: RunMaker,
    storage: Storage,
    parameters: Any,
    text: str,
) -> None:
    storage.put("rules/broken.py", b"class (:\n") if "broken" in text else None
    storage.put("escape/../../out.py", b"") if "leaves" in text else None
    run.write_steps("loss", {0: 1.0})
    verdict = custom(**parameters)
    assert verdict.status == "Error"
    assert text in verdict.details


def test_a_custom_rules_error_is_one_line_with_its_place_and_the_log_has_the_traceback(
    evaluate: Any, storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    storage.put("traced/rule.py", b"import told_limits\nclass Traced: pass\n")
    storage.put("traced/told_limits.py", b"import json\n\nLIMIT = json.loads('{x')\n")
    with capture_log(caplog):
        details = evaluate("Traced", source_s3_uri="s3://runs/traced").details
    assert details.startswith("JSONDecodeError: Expecting property name")
    assert details.endswith(" (told_limits.py, line 3)")
    assert re.search(r"Traceback(?s:.*)rule\.py\", line 1(?s:.*)told_limits\.py\", line 3", caplog.text)


@pytest.mark.parametrize(
    ("statement", "details"),
    [
        ("raise ValueError('first' + chr(10) + '  second')", "ValueError: first second (sub/mine.py, line 4)"),
        ("assert step < 0", "AssertionError (sub/mine.py, line 4)"),
        ("raise ValueError(5000 * 'x')", f"ValueError: {(1024 - 34) * 'x'} (sub/mine.py, line 4)"),
    ],
)
def test_an_error_of_a_step_has_its_place(
    evaluate: Any, run: RunMaker, storage: Storage, statement: str, details: str
) -> None:
    source = (
        f"from smdebug.rules import Rule\nclass Mine(Rule):\n    def invoke_at_step(self, step):\n        {statement}\n"
    )
    storage.put("mine/sub/mine.py", source.encode())
    run.write_steps("loss", {0: 1.0})
    assert evaluate("Mine", source_s3_uri="s3://runs/mine").details == details
