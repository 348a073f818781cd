"""Tests of rules whose run is late or stalls, or whose other run is absent."""

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import NoMoreData
from smdebug.rules.builtin.stalled_training_rule import StalledTrainingRule
from smdebug.rules.container.rule_config import parse_rule_config
from smdebug.rules.container.verdict import Verdict
from smdebug.rules.evaluator import evaluate, judge
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.trials import create_trial
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker
from tests.unit.smdebug.trials.opened_run import do_in_first_pause
from tests.waiting import wait_until


def judge_run(folder: Path, rule: str, tensors: Path, **more: Any) -> Verdict:
    content = {
        "TrainingJobName": "job",
        "RuleConfigurationName": rule,
        "RuleParameters": {},
        "TensorsS3Uri": str(tensors),
        "OutputPath": str(folder / "rule"),
        "VerdictPath": str(folder / "verdict.json"),
        **more,
    }
    source = folder / "source"
    source.mkdir(exist_ok=True)
    return judge(parse_rule_config(content), source)


def write_finished(path: Path | str, value: float) -> None:
    run = RunMaker(path)
    run.write_step(0, {"loss": np.full(3, value)})
    run.end()


def test_a_run_that_stalls_is_found_while_nothing_comes(tmp_path: Path) -> None:
    run = RunMaker(tmp_path / "run")
    run.write_step(4, {"loss": 1.0})
    verdict = judge_run(tmp_path, "StalledTrainingRule", tmp_path / "run", RuleParameters={"threshold": "1.5"})
    assert (verdict.status, verdict.step) == ("IssuesFound", 4)
    assert re.search(
        r"any tensor at step 4 \(mode GLOBAL, mode step 4\): no step has come for [1-9][\d.]* s", verdict.details
    )
    assert "longer than threshold 1.5 s" in verdict.details


def test_a_run_that_never_begins_is_found_too(tmp_path: Path) -> None:
    verdict = judge_run(tmp_path, "StalledTrainingRule", tmp_path / "none", RuleParameters={"threshold": "0.5"})
    assert verdict.status == "IssuesFound"
    assert re.search(r"any tensor at no step yet: no step has come for [1-9][\d.]* s", verdict.details)


def test_a_run_that_begins_late_or_never_is_not_a_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    do_in_first_pause(monkeypatch, lambda: write_finished(tmp_path / "run", 1.0))
    verdict = judge_run(tmp_path, "StalledTrainingRule", tmp_path / "run", RuleParameters={"threshold": "60"})
    assert verdict.status == "NoIssuesFound"
    RunMaker(tmp_path / "empty", with_collections=False).end()
    assert judge_run(tmp_path, "StalledTrainingRule", tmp_path / "empty").details.startswith("MissingCollectionFiles")


def test_silence_is_reported_once_and_then_steps_are_judged_again(tmp_path: Path) -> None:
    run = RunMaker(tmp_path / "run")
    run.write_step(0, {"loss": 1.0})
    rule = StalledTrainingRule(create_trial(run.out_dir), threshold="500")
    now = 0.0
    # A clock of its own: with the machine's, a thread that is held up would be one more silence.
    rule.begin(lambda: now)

    def go_on() -> None:
        nonlocal now
        try:
            wait_until(lambda: rule.inspected)
            now += 600
            wait_until(lambda: rule.report["RuleTriggered"])
            now += 600
            run.write_step(1, {"loss": 1.0})
        finally:
            run.end()

    thread = threading.Thread(target=go_on)
    thread.start()
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    thread.join()
    # Once in the silence, once because step 1 came late.
    assert rule.report["RuleTriggered"] == 2


@pytest.mark.parametrize(("value", "status"), [(1.0, "IssuesFound"), (2.0, "NoIssuesFound")])
def test_similar_across_runs(tmp_path: Path, value: float, status: str) -> None:
    tensors = tmp_path / "job" / "debug-output"
    write_finished(tensors, 1.0)
    write_finished(tmp_path / "other" / "debug-output", value)
    write_finished(tmp_path / "elsewhere", value)
    beside = judge_run(tmp_path, "SimilarAcrossRuns", tensors, RuleParameters={"other_trials": "other"})
    places = {"far": str(tmp_path / "elsewhere")}
    far = {"other_trials": "far"}
    told = judge_run(tmp_path, "SimilarAcrossRuns", tensors, RuleParameters=far, TensorsS3UriOfJobs=places)
    assert [beside.status, told.status] == [status, status]
    if status == "IssuesFound":
        assert "loss at step 0" in beside.details
        assert "it is the same at step 0 of other" in beside.details


def test_an_other_trial_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    tensors = tmp_path / "job" / "debug-output"
    write_finished(tensors, 1.0)
    verdict = judge_run(tmp_path, "SimilarAcrossRuns", tensors, RuleParameters={"other_trials": "nobody"})
    assert verdict.status == "Error"
    assert "The other trial 'nobody' does not exist: nothing was saved at" in verdict.details
    assert str(tmp_path / "nobody" / "debug-output") in verdict.details
    assert "other_trials is required" in judge_run(tmp_path, "SimilarAcrossRuns", tensors).details


def test_an_other_trial_on_s3(tmp_path: Path, storage: Storage) -> None:
    write_finished(tmp_path / "run", 1.0)
    write_finished("s3://runs/other", 1.0)
    there, nowhere = (
        judge_run(tmp_path, "SimilarAcrossRuns", tmp_path / "run", RuleParameters={"other_trials": f"s3://runs/{name}"})
        for name in ("other", "none")
    )
    assert there.status == "IssuesFound"
    assert nowhere.status == "Error"
    assert "nothing was saved at s3://runs/none" in nowhere.details


def test_what_a_rule_leaves_goes_into_its_folder(tmp_path: Path) -> None:
    write_finished(tmp_path / "run", 1.0)
    verdict = judge_run(
        tmp_path, "MyReport", tmp_path / "run", RuleParameters={"rule_to_invoke": "CreateXgboostReport"}
    )
    assert verdict.status == "NoIssuesFound"
    assert verdict.details.endswith("xgboost_report.ipynb into rule-output/MyReport/ of the job.")
    assert (tmp_path / "rule/xgboost_report.html").is_file()


def test_a_finished_run_is_not_stalled(tmp_path: Path) -> None:
    write_finished(tmp_path / "run", 1.0)
    rule = StalledTrainingRule(create_trial(str(tmp_path / "run")))
    assert evaluate(rule).status == "NoIssuesFound"
    assert not rule.check_idle()
