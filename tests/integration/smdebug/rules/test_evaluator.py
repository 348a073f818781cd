import json
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.mode_keys import ModeKeys
from smdebug.rules.container.verdict import Verdict, write_verdict
from tests.integration.smdebug.rules.rule_container import build_config, capture_log, read_warnings, start_container
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker


def write_gradients(run: RunMaker, values: dict[int, float]) -> None:
    run.write_steps("gradient/fc.weight", {step: np.full(3, value) for step, value in values.items()})


def test_issues_found(evaluate: Any, run: RunMaker, tmp_path: Path) -> None:
    write_gradients(run, {0: 1.0, 10: 1e-9, 20: 1e-12})
    verdict = evaluate("VanishingGradient")
    assert (verdict.status, verdict.step) == ("IssuesFound", 10)
    first, second, *_ = verdict.details.split("\n")
    assert first == (
        "RuleEvaluationConditionMet: Evaluation of the rule VanishingGradient at step 10 "
        "resulted in the condition being met"
    )
    assert second.startswith("gradient/fc.weight at step 10 (mode GLOBAL, mode step 10)")
    assert (tmp_path / "output/rule").is_dir()


def test_no_issues_found(evaluate: Any, run: RunMaker) -> None:
    write_gradients(run, {0: 1.0, 10: 1.0})
    run.end()
    assert evaluate("VanishingGradient") == Verdict(
        "NoIssuesFound", "Rule VanishingGradient found no issue in 2 steps, the last of them 10."
    )


def test_a_rule_that_had_little_to_judge_says_so(
    evaluate: Any, run: RunMaker, caplog: pytest.LogCaptureFixture
) -> None:
    manager = CollectionManager()
    manager.add(Collection("gradients", include_regex="^gradient"))
    manager.add(Collection("losses", include_regex="loss", save_config=SaveConfig(save_interval=500)))
    manager.export(run.out_dir, "worker_0_collections.json")
    for step in range(16):
        tensors = {"gradient/fc.weight": np.ones(3)}
        run.write_step(step, {**tensors, "loss": np.array(1.0)} if step == 0 else tensors)
    run.end()
    with capture_log(caplog):
        verdict = evaluate("LossNotDecreasing", collection_names="losses")
    said = "It had little to judge: values in 1 of 16 saved steps; collection losses is saved every 500 steps."
    assert verdict.status == "NoIssuesFound"
    assert verdict.details.endswith(said)
    assert said in caplog.text


@pytest.mark.parametrize(
    ("parameters", "status", "step"),
    [
        ({"start_step": "5", "end_step": "15"}, "IssuesFound", 10),
        ({"start_step": "11"}, "IssuesFound", 20),
        ({"end_step": "10"}, "NoIssuesFound", None),
        ({"start_step": "100"}, "Error", None),
    ],
)
def test_start_and_end_step(evaluate: Any, run: RunMaker, parameters: Any, status: str, step: int | None) -> None:
    write_gradients(run, {0: 1.0, 10: 1e-9, 20: 1e-12})
    run.end()
    verdict = evaluate("VanishingGradient", **parameters)
    assert (verdict.status, verdict.step) == (status, step)


@pytest.mark.parametrize(
    ("rule", "parameters", "text"),
    [
        ("DoesNotExist", {}, "no built-in rule 'DoesNotExist'. The built-in rules are: AllZero"),
        ("VanishingGradient", {"treshold": "1"}, "no parameter 'treshold'. Its parameters are: threshold, start_step"),
        ("VanishingGradient", {"threshold": "x"}, "parameter threshold is 'x', expected a number"),
        ("VanishingGradient", {"start_step": "x"}, "parameter start_step is 'x', expected a whole number"),
        ("VanishingGradient", {"other_trials": "job-2"}, "compares with no other trial"),
        ("VanishingGradient", {"action_json": "{"}, "actions are not JSON"),
    ],
)
def test_wrong_configuration_is_reported_before_any_tensor_is_saved(
    evaluate: Any, rule: str, parameters: Any, text: str
) -> None:
    verdict = evaluate(rule, **parameters)
    assert verdict.status == "Error"
    assert verdict.details.startswith("SMDebugValueError: ")
    assert text in verdict.details


def test_no_collections(evaluate: Any, tmp_path: Path) -> None:
    RunMaker(tmp_path / "empty", with_collections=False).end()
    verdict = evaluate("VanishingGradient", tensors=str(tmp_path / "empty"))
    assert verdict.status == "Error"
    assert verdict.details.startswith("MissingCollectionFiles: The training job has ended")


def test_no_steps(evaluate: Any, run: RunMaker) -> None:
    run.end()
    verdict = evaluate("VanishingGradient")
    assert verdict.status == "Error"
    assert "the training saved no step" in verdict.details


def test_tensors_that_were_never_saved_are_not_an_issue_and_said_once(
    evaluate: Any, run: RunMaker, caplog: pytest.LogCaptureFixture
) -> None:
    run.write_steps("loss", dict.fromkeys(range(5), 1.0))
    run.end()
    with capture_log(caplog):
        verdict = evaluate("VanishingGradient")
    assert verdict.status == "NoIssuesFound"
    assert "collection gradients" in verdict.details
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warned == [verdict.details]


@pytest.mark.parametrize(
    ("rule", "steps_with_values", "warned"),
    [
        ("VanishingGradient", 16, []),
        ("VanishingGradient", 9, []),
        ("VanishingGradient", 7, ["RuleHadLittleToJudge"]),
        ("VanishingGradient", 1, ["RuleHadLittleToJudge"]),
        ("VanishingGradient", 0, ["RuleWithoutCollection"]),
        ("DeadRelu", 16, ["RuleWithoutCollection"]),
    ],
)
def test_users_of_a_job_are_warned_of_a_verdict_on_little(
    evaluate: Any,
    run: RunMaker,
    reported: Path,
    rule: str,
    steps_with_values: int,
    warned: list[str],
) -> None:
    for step in range(16):
        run.write_step(step, {"gradient/a" if step < steps_with_values else "other": np.ones(3)})
    run.end()
    verdict = evaluate(rule)
    assert verdict.status == "NoIssuesFound"
    assert ("had little to judge" in verdict.details) == ("RuleHadLittleToJudge" in warned)
    assert ("It judged: values in 9 of 16 saved steps." in verdict.details) == (steps_with_values == 9)
    assert read_warnings(reported) == [(code, verdict.details) for code in warned]


@pytest.mark.parametrize(
    ("rule", "parameters"),
    [
        ("LossNotDecreasing", {}),
        ("Overtraining", {}),
        ("UnchangedTensor", {"collection_names": "losses"}),
        ("DeadRelu", {"tensor_regex": "loss"}),
    ],
)
def test_values_are_counted_by_mode(evaluate: Any, run: RunMaker, rule: str, parameters: dict[str, str]) -> None:
    run.write_step(0, {"loss": 1.0}, ModeKeys.TRAIN, 0)
    run.write_step(1, {"loss": 1.0}, ModeKeys.EVAL, 0)
    run.end()
    said = " It had little to judge: values in 1 of 1 saved step of TRAIN and 1 of 1 saved step of EVAL."
    assert evaluate(rule, **parameters).details.endswith(said)


def test_few_steps_of_the_judged_mode_are_not_little(evaluate: Any, run: RunMaker) -> None:
    for step in range(12):
        mode = ModeKeys.EVAL if step % 4 == 3 else ModeKeys.TRAIN
        run.write_step(step, {"loss": 12.0 - step}, mode, step // 4 if mode is ModeKeys.EVAL else step)
    run.end()
    details = evaluate("LossNotDecreasing", num_steps="1").details
    assert details.endswith(" It judged: values in 3 of 9 saved steps of TRAIN and 3 of 3 saved steps of EVAL.")


def test_a_mode_without_losses_is_named(evaluate: Any, run: RunMaker) -> None:
    run.write_steps("loss", {0: 1.0, 1: 0.5}, ModeKeys.TRAIN)
    run.end()
    details = evaluate("LossNotDecreasing", mode="EVAL").details
    assert details.endswith(
        "(collection losses, collection_names or tensor_regex). Losses were saved in mode TRAIN, but none in mode "
        "EVAL, which the rule has to judge: set mode to one that has losses, or leave it out."
    )


def test_regex_that_matches_nothing_is_not_an_issue(evaluate: Any, run: RunMaker) -> None:
    run.write_steps("loss", {0: 1.0})
    run.end()
    verdict = evaluate("ExplodingTensor", tensor_regex="^nothing$")
    assert verdict.status == "NoIssuesFound"
    assert "found none of what it looks at" in verdict.details


@pytest.mark.parametrize(
    ("regex", "tensor_names", "advice"),
    [
        (None, (), "The collection relu_output is there, and has no include_regex that selects tensors: give it one."),
        ("^r$", (), "The collection relu_output is there, and its include_regex ^r$ found no tensor: correct it."),
        (None, ("x",), "The collection relu_output was saved with 1 tensor, none of which is what the rule looks at."),
    ],
)
def test_an_existing_collection_is_not_suggested(
    evaluate: Any, run: RunMaker, regex: str | None, tensor_names: tuple[str, ...], advice: str
) -> None:
    manager = CollectionManager()
    manager.add(Collection("relu_output", regex, tensor_names, save_config=SaveConfig()))
    manager.export(run.out_dir, "worker_0_collections.json")
    run.write_steps("loss", {0: 1.0, 1: 1.0})
    run.end()
    assert evaluate("DeadRelu").details.endswith(f" {advice}")


@pytest.mark.parametrize(
    ("rule", "there", "advice"),
    [
        ("VanishingGradient", "trees", "XGBoost has no such tensors: the rule is for neural networks."),
        ("Confusion", "trees", "Add the collection predictions to the job's DebugHookConfig."),
        (
            "Confusion",
            "outputs",
            "DebugHookConfig, or, for a Keras model, outputs, which has the predictions there.",
        ),
    ],
)
def test_the_advice_is_one_for_the_frameworks_run(
    evaluate: Any, run: RunMaker, rule: str, there: str, advice: str
) -> None:
    run.write_collections({there: set()})
    run.write_steps("loss", {0: 1.0})
    run.end()
    assert evaluate(rule).details.endswith(f" {advice}")


@pytest.mark.parametrize("name", ["gradients", "mine"])
def test_a_collection_that_was_never_due_is_not_to_be_added(evaluate: Any, run: RunMaker, name: str) -> None:
    late = SaveConfig({mode: SaveConfigMode(2, start_step=1000) for mode in ModeKeys})
    manager = CollectionManager()
    manager.add(Collection(name, "^gradient", save_config=late))
    manager.export(run.out_dir, "worker_0_collections.json")
    run.write_steps("loss", {0: 1.0, 14: 1.0}, ModeKeys.TRAIN)
    run.end()
    assert evaluate("AllZero", collection_names=name).details.endswith(
        f" The collection {name} is to be saved at none of the steps up to 14 of mode TRAIN (save_interval 2, "
        "start_step 1000): change its save configuration, or train for longer."
    )


@pytest.mark.parametrize(
    ("rule", "parameters", "advice"),
    [
        ("DeadRelu", {}, "Add the collection relu_output to the job's DebugHookConfig."),
        ("VanishingGradient", {}, "Add the collection gradients to the job's DebugHookConfig."),
        (
            "AllZero",
            {"collection_names": "weights,mine"},
            "weights to the job's DebugHookConfig. Add the collection mine",
        ),
        ("AllZero", {"collection_names": "wieghts"}, "There is no collection wieghts. Did you mean weights?"),
        ("DeadRelu", {"tensor_regex": "^r$,^s$"}, "was saved with a name that tensor_regex ^r$,^s$ finds."),
    ],
)
def test_what_is_not_there_is_named(
    evaluate: Any, run: RunMaker, rule: str, parameters: dict[str, str], advice: str
) -> None:
    run.write_steps("other", {0: 1.0, 1: 1.0})
    run.end()
    assert advice in evaluate(rule, **parameters).details


def test_reductions_that_tell_nothing_are_not_an_issue_and_said_once(
    evaluate: Any, run: RunMaker, caplog: pytest.LogCaptureFixture
) -> None:
    run.write_steps("smdebug/reductions/mean/gradient/a", dict.fromkeys(range(5), 1.0))
    run.end()
    with capture_log(caplog):
        verdict = evaluate("VanishingGradient")
    assert verdict.status == "NoIssuesFound"
    assert "could evaluate no step. TensorUnavailableForStep: Tensor gradient/a" in verdict.details
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1
    assert "passes over step 0" in warned[0]


def test_damaged_files_are_an_error(evaluate: Any, run: RunMaker) -> None:
    write_gradients(run, {0: 1.0})
    run.end()
    (event_file,) = Path(run.out_dir).glob("events/*/*")
    event_file.write_bytes(b"")
    verdict = evaluate("VanishingGradient")
    assert verdict.status == "Error"
    assert str(event_file) in verdict.details


def test_verdict_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "output/verdict.json"
    write_verdict(Verdict("Error", "x"), path)
    write_verdict(Verdict("IssuesFound", "é", 3), path)
    assert json.loads(path.read_text()) == {"RuleEvaluationStatus": "IssuesFound", "StatusDetails": "é", "Step": 3}
    assert [child.name for child in path.parent.iterdir()] == ["verdict.json"]
    # The service reads 64 KiB; a character takes up to 12 bytes of JSON.
    write_verdict(Verdict("Error", "\U0001f600" * 1_000_000), path)
    assert path.stat().st_size < 1 << 16


def test_container_on_s3(tmp_path: Path, storage: Storage) -> None:
    run = RunMaker("s3://runs/job/debug-output")
    write_gradients(run, {0: 1.0})
    process = start_container(tmp_path, build_config(tmp_path, run.out_dir, "VanishingGradient"))
    writer = threading.Thread(target=lambda: write_gradients(run, {7: 1e-10}))
    writer.start()
    output, _ = process.communicate(timeout=400)
    writer.join()
    assert process.returncode == 0, output
    assert json.loads((tmp_path / "output/verdict.json").read_text())["Step"] == 7
    assert "IssuesFound: RuleEvaluationConditionMet" in output


def test_sigterm_ends_it_at_once_without_a_verdict(tmp_path: Path, run: RunMaker) -> None:
    write_gradients(run, {0: 1.0})
    process = start_container(tmp_path, build_config(tmp_path, run.out_dir, "VanishingGradient"))
    assert process.stdout
    assert "waits for the tensors" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=400)
    assert process.returncode == 143
    assert not (tmp_path / "output/verdict.json").exists()


def test_error_in_a_container_has_its_traceback_in_the_log(tmp_path: Path) -> None:
    process = start_container(tmp_path, build_config(tmp_path, str(tmp_path), "Nothing"))
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 1
    assert "Traceback" in output
    assert json.loads((tmp_path / "output/verdict.json").read_text())["RuleEvaluationStatus"] == "Error"


def test_no_configuration(tmp_path: Path) -> None:
    process = start_container(tmp_path, None)
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 1
    assert "There is no rule configuration" in output
    assert "SMDEBUG_RULE_CONFIG_PATH" in output
