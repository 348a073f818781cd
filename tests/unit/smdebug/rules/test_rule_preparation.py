"""Tests of custom rules that are configured or written wrongly."""

from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Rule
from smdebug.rules.container.rule_config import RuleConfig, parse_rule_config
from smdebug.rules.container.rule_preparation import load_custom_class, prepare_rule
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker


class Forgetful(Rule):
    """A rule that leaves out the constructor of its base class."""

    def __init__(self, base_trial: Trial) -> None:
        self.limit = len(base_trial.steps())

    def invoke_at_step(self, step: int) -> bool:
        return step > self.limit


class Blind(Rule):
    """A rule whose constructor takes no trial."""

    def __init__(self) -> None:
        self.limit = 1

    def invoke_at_step(self, step: int) -> bool:
        return step > self.limit


def make_config(**parameters: Any) -> RuleConfig:
    return parse_rule_config(
        {
            "TrainingJobName": "job",
            "RuleConfigurationName": "mine",
            "RuleParameters": parameters,
            "TensorsS3Uri": "run",
            "OutputPath": "rule",
            "VerdictPath": "verdict.json",
        }
    )


def test_a_rule_without_its_source_is_told_where_to_name_it() -> None:
    with pytest.raises(
        SMDebugValueError, match=r"no built-in rule 'Mine'.*For a rule of your own, source_s3_uri gives"
    ):
        prepare_rule(make_config(rule_to_invoke="Mine"), None)


def test_a_source_on_the_disk_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=r"source_s3_uri is 'mine\.py': upload"):
        load_custom_class(make_config(source_s3_uri="mine.py"), tmp_path)


def test_a_constructor_that_leaves_out_its_base_is_named(tmp_path: Path) -> None:
    run = RunMaker(tmp_path / "run")
    run.write_step(0, {"loss": 1.0})
    run.end()
    prepared = prepare_rule(make_config(), Forgetful)
    with pytest.raises(SMDebugValueError, match=r"Forgetful\.__init__ has to call super\(\)\.__init__\(base_trial\)"):
        prepared.build(create_trial(str(tmp_path / "run")))


def test_a_constructor_without_a_trial_is_named() -> None:
    with pytest.raises(SMDebugValueError, match=r"Blind\.__init__ takes no trial: make base_trial its first argument"):
        prepare_rule(make_config(), Blind)
