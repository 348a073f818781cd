import json
import math
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugError, SMDebugValueError, TensorUnavailable
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.inspection.__main__ import answer
from smdebug.inspection.questions import QUESTIONS
from smdebug.inspection.watched_run import NoTensorsError, WatchedRun
from smdebug.mode_keys import ModeKeys
from smdebug.reading.run_files import LocalRunFiles
from smdebug.trials import Trial
from tests.unit.smdebug.rules.builtin.judging import write_run
from tests.unit.smdebug.runs import RunMaker


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Twenty steps in which a gradient vanishes; every fourth is an evaluation."""
    generator = np.random.default_rng(0)
    steps: list[dict[str, Any]] = []
    modes: list[ModeKeys] = []
    for step in range(20):
        spread = generator.normal(size=(8, 8)) * 10.0**-step
        tensors: dict[str, Any] = {"loss": np.float32(2.0 - step / 20), "gradient/layer.weight": spread}
        tensors["labels"] = np.array([0, 1, 2, 1] * 4)
        tensors["scores"] = np.eye(3)[[0, 1, 1, 1] * 4]
        if step == 7:
            tensors["loss"] = np.float32(math.nan)
        if step == 9:
            tensors |= {"words": np.array(["<b>", "\u202eabc"]), "empty": np.zeros((0, 4))}
        steps.append(tensors)
        modes.append(ModeKeys.EVAL if step % 4 == 3 else ModeKeys.TRAIN)
    return write_run(tmp_path_factory.mktemp("run"), steps, modes)


def ask(trial: Trial, question: str, **arguments: Any) -> dict[str, Any]:
    found = QUESTIONS[question](WatchedRun(trial.path), arguments)
    return dict(json.loads(json.dumps(found, allow_nan=False)))


def test_a_series_is_what_the_trial_says(trial: Trial) -> None:
    lines = ask(trial, "series", tensors=["loss"])["series"]
    expected = {step: trial.tensor("loss").value(step).item() for step in trial.tensor("loss").steps()}
    shown = {step: value for line in lines for step, value in zip(line["steps"], line["mean"], strict=True)}
    assert shown == {**expected, 7: None}
    assert [line["notFinite"] for line in lines] == [{"count": 0, "first": []}, {"count": 1, "first": [[7, "NaN"]]}]


def test_the_statistics_of_very_large_numbers_are_finite(tmp_path: Path) -> None:
    large = np.array([1.5e308, 1.5e308, -1.5e308, 1.5e308])
    trial = write_run(tmp_path, [{"large": large, "loss": np.float64(1.5e308)} for _ in range(4)])
    found = ask(trial, "values", tensor="large")
    assert (found["mean"], found["std"]) == pytest.approx((0.75e308, 1.5e308 * math.sqrt(0.75)))
    (line,) = ask(trial, "series", tensors=["loss"], points="2")["series"]
    assert line["mean"] == [1.5e308, 1.5e308]
    shares = ask(trial, "histogram", tensor="large", scale="value", bins="2")["shares"]
    assert shares[0] == [0.25, 0.75]


def test_a_series_has_the_times_at_which_its_steps_were_saved(trial: Trial, tmp_path: Path) -> None:
    assert "timesMs" not in ask(trial, "series", tensors=["loss"])["series"][0]
    written = {path: path.stat().st_mtime for path in Path(trial.path).rglob("*.tfevents")}
    for line in ask(trial, "series", tensors=["loss"], times="1")["series"]:
        assert len(line["timesMs"]) == len(line["steps"])
        for step, moment in zip(line["steps"], line["timesMs"], strict=True):
            (at,) = (mtime for path, mtime in written.items() if int(path.name.split("_")[0]) == step)
            assert at - 5 < moment / 1000 < at + 0.1
    run = shutil.copytree(trial.path, tmp_path / "run")
    next(run.rglob("*000000000000_worker_0.tfevents")).write_bytes(b"")
    found = QUESTIONS["series"](WatchedRun(str(run)), {"tensors": ["loss"], "times": "1"})["series"]
    assert found[0]["timesMs"][0] is None


def test_each_mode_and_worker_is_a_series_with_its_name(trial: Trial, tmp_path: Path) -> None:
    lines = ask(trial, "series", tensors=["loss"])["series"]
    assert [(line["mode"], line["worker"], line["known"]) for line in lines] == [
        ("TRAIN", "worker_0", 15),
        ("EVAL", "worker_0", 5),
    ]
    assert lines[1]["steps"] == [3, 7, 11, 15, 19]
    run = RunMaker(tmp_path, workers=2)
    for step in range(4):
        for rank, worker in enumerate(run.workers):
            run.write_step(step, {"loss": np.float32(10 * rank + step)}, ModeKeys.TRAIN, step, worker)
    run.end()
    for worker, expected in (("", [[0, 1, 2, 3], [10, 11, 12, 13]]), ("worker_1", [[10, 11, 12, 13]])):
        found = QUESTIONS["series"](WatchedRun(str(tmp_path)), {"tensors": ["loss"], "worker": worker})["series"]
        assert [line["mean"] for line in found] == expected
    assert found[0]["worker"] == "worker_1"


@pytest.mark.slow
def test_tensors_are_in_the_order_of_the_model_and_a_heat_map_shows_all(tmp_path: Path) -> None:
    layers = [f"layer.{number}" for number in range(600)]
    run = RunMaker(tmp_path)
    for step in range(3):
        mode = ModeKeys.EVAL if step == 2 else ModeKeys.TRAIN
        values = {name: np.float32(1 / 3) for name in [*layers, *(f"gradient/{name}" for name in reversed(layers))]}
        run.write_step(step, values, mode, step)
    run.end()
    watched = WatchedRun(str(tmp_path))
    found = QUESTIONS["heat-map"](watched, {"collection": "gradients"})
    assert found["tensors"] == [f"gradient/{name}" for name in layers]
    assert found["modes"] == ["TRAIN", "TRAIN", "EVAL"]
    assert found["values"][599] == [0.333333] * 3
    assert QUESTIONS["heat-map"](watched, {"regex": "", "columns": 120})["known"] == 1200
    described = QUESTIONS["describe"](watched, {})
    assert [each["name"] for each in described["tensors"]][:600] == layers
    gradients = {each["name"]: each["tensors"] for each in described["collections"]}["gradients"]
    assert gradients == found["tensors"]


def test_a_heat_map_of_many_rows_has_fewer_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smdebug.inspection.questions._MOST_CELLS", 400)
    steps = [{f"tensor/{number}": np.float32(step) for number in range(40)} for step in range(30)]
    run = WatchedRun(write_run(tmp_path, steps).path)
    for regex, columns in (("", 10), ("/1$", 30)):
        assert len(QUESTIONS["heat-map"](run, {"regex": regex})["steps"]) == columns


def test_a_long_series_becomes_bands_of_all_that_was_read(trial: Trial) -> None:
    line = ask(trial, "series", tensors=["gradient/layer.weight"], reduction="abs_mean", points=3)["series"][0]
    assert len(line["steps"]) == 3
    steps = [step for step in range(20) if step % 4 != 3]
    every = [float(trial.tensor("gradient/layer.weight").reduction_value(s, "mean", abs=True)) for s in steps]
    assert line["max"] == pytest.approx([max(every[at : at + 5]) for at in range(0, 15, 5)])
    assert line["min"] == pytest.approx([min(every[at : at + 5]) for at in range(0, 15, 5)])


def test_of_many_steps_few_are_read_and_that_is_reported(trial: Trial) -> None:
    lines = ask(trial, "series", tensors=["loss"], most=3)["series"]
    assert [(line["steps"], line["read"], line["known"]) for line in lines] == [([0, 10], 2, 13), ([19], 1, 7)]


def test_a_mode_is_shown_by_itself(trial: Trial) -> None:
    (line,) = ask(trial, "series", tensors=["loss"], mode="EVAL")["series"]
    assert line["steps"] == [3, 7, 11, 15, 19]


def test_a_gradient_that_vanishes_is_seen_to_in_its_histogram(trial: Trial) -> None:
    found = ask(trial, "histogram", tensor="gradient/layer.weight", columns=20)
    edges = np.array(found["edges"])
    centres = [float(np.dot((edges[:-1] + edges[1:]) / 2, row)) for row in found["shares"]]
    assert centres[0] > -2
    assert centres[-1] < -18
    assert all(abs(sum(row) - 1) < 1e-4 for row in found["shares"])


def test_a_heat_map_has_a_row_a_tensor_and_gaps_where_nothing_was_saved(trial: Trial) -> None:
    found = ask(trial, "heat-map", collection="gradients")
    assert found["tensors"] == ["gradient/layer.weight"]
    assert len(found["values"][0]) == len(found["steps"]) == 20
    assert ask(trial, "heat-map", regex="^empty|^loss")["values"][1] == ["NaN"] * 20


def test_a_heat_map_reads_the_tensors_of_a_step_with_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [{f"tensor/{number}": np.float32(step + number) for number in range(40)} for step in range(30)]
    run = WatchedRun(write_run(tmp_path, steps).path)
    reads: list[str] = []
    read_range = LocalRunFiles.read_range

    def count(files: LocalRunFiles, name: str, start: int, length: int) -> memoryview:
        reads.append(name)
        return read_range(files, name, start, length)

    monkeypatch.setattr(LocalRunFiles, "read_range", count)
    found = QUESTIONS["heat-map"](run, {"regex": "^tensor"})
    assert found["values"] == [[step + int(name[7:]) for step in range(30)] for name in found["tensors"]]
    assert (len(found["tensors"]), len(reads), len(set(reads))) == (40, 30, 30)


def test_values_of_every_kind(trial: Trial) -> None:
    found = ask(trial, "values", tensor="gradient/layer.weight", step=0)
    assert (found["shape"], found["dtype"]) == ([8, 8], "float64")
    assert found["plane"] == trial.tensor("gradient/layer.weight").value(0).tolist()
    assert ask(trial, "values", tensor="words")["texts"] == ["<b>", "\u202eabc"]
    assert ask(trial, "values", tensor="empty")["mean"] is None
    assert ask(trial, "values", tensor="loss", step=7)["plane"] == [["NaN"]]


def test_confusion_counts_pairs(trial: Trial) -> None:
    found = ask(trial, "confusion", labels="labels", predictions="scores")
    assert found["counts"] == [[4, 0, 0], [0, 8, 0], [0, 4, 0]]


def test_what_a_run_holds(trial: Trial) -> None:
    found = ask(trial, "describe")
    assert found["steps"] == {"count": 20, "first": 0, "last": 19}
    assert found["modes"] == ["TRAIN", "EVAL"]
    assert {each["name"]: each["tensors"] for each in found["collections"]}["losses"] == ["loss"]
    assert {"name": "loss", "saved": ["value"]} in found["tensors"]
    assert found["ended"]


@pytest.mark.parametrize(
    ("question", "arguments", "kind"),
    [
        ("series", {"tensors": []}, SMDebugValueError),
        ("series", {"tensors": ["no"]}, TensorUnavailable),
        ("series", {"tensors": ["loss"], "reduction": "median"}, SMDebugValueError),
        ("series", {"tensors": ["loss"], "mode": "train"}, SMDebugValueError),
        ("series", {"tensors": ["loss"], "points": "-1"}, SMDebugValueError),
        ("histogram", {"tensor": "words"}, SMDebugValueError),
        ("histogram", {"tensor": "loss", "scale": "other"}, SMDebugValueError),
        ("heat-map", {"regex": "("}, SMDebugValueError),
        ("values", {"tensor": "loss", "step": 99}, SMDebugError),
        ("values", {"tensor": "loss", "index": "a"}, SMDebugValueError),
        ("confusion", {"labels": "words", "predictions": "scores", "step": 9}, SMDebugError),
    ],
)
def test_what_cannot_be_answered_is_reported(
    trial: Trial, question: str, arguments: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        ask(trial, question, **arguments)


def test_a_damaged_file_takes_one_number_and_not_the_run(tmp_path: Path) -> None:
    found = write_run(tmp_path, [{"loss": np.float32(1.0)}, {"loss": np.float32(2.0)}])
    event_file = sorted(tmp_path.glob("events/*/*.tfevents"))[0]
    content = bytearray(event_file.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    event_file.write_bytes(content)
    (line,) = ask(found, "series", tensors=["loss"])["series"]
    assert line["mean"] == [None, 2.0]
    assert (line["unread"], line["notFinite"]) == (1, {"count": 0, "first": []})


def test_a_run_that_is_none_or_has_only_begun(tmp_path: Path) -> None:
    with pytest.raises(NoTensorsError, match="No tensors have been saved yet"):
        WatchedRun(str(tmp_path))
    RunMaker(tmp_path, workers=2).write_collections()
    (tmp_path / "collections" / "000000000" / "worker_1_collections.json").unlink()
    with pytest.raises(NoTensorsError, match="Not all workers"):
        WatchedRun(str(tmp_path))


def test_a_value_that_is_too_large_is_named(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smdebug.inspection.questions.MOST_BYTES", 100)
    found = ask(trial, "values", tensor="gradient/layer.weight")
    assert "are shown" in found["tooLarge"]
    assert "plane" not in found
    with pytest.raises(SMDebugValueError, match=r"Its value takes 0\.0 GB"):
        ask(trial, "histogram", tensor="gradient/layer.weight")
    monkeypatch.setattr("smdebug.inspection.watched_run.MOST_BYTES", 100)
    line = ask(trial, "series", tensors=["gradient/layer.weight"])["series"][0]
    assert (line["read"], line["unread"], line["notFinite"]["count"]) == (15, 15, 0)


@pytest.mark.parametrize(
    "line", ["", "[]", "{}", '{"path": 3}', '{"path": "/nowhere", "question": "x", "arguments": {}}']
)
def test_a_line_that_is_not_a_question_is_answered(line: str) -> None:
    from collections import OrderedDict

    assert answer(line, OrderedDict(), OrderedDict()).keys() == {"error", "kind"}


def ask_process(runs: OrderedDict[str, WatchedRun], trial: Trial, question: str, **arguments: Any) -> dict[str, Any]:
    line = json.dumps({"path": trial.path, "question": question, "arguments": arguments})
    return dict(answer(line, runs, OrderedDict())["answer"])


def test_a_first_look_lists_a_long_run_and_enters_few_of_its_steps(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smdebug.inspection.watched_run._FEW_STEPS", 5)
    runs: OrderedDict[str, WatchedRun] = OrderedDict()
    described = ask_process(runs, trial, "describe")
    assert described["steps"] == {"count": 20, "first": 0, "last": 19}
    assert (described["ended"], described["complete"]) == (trial.loaded_all_steps, False)
    assert {"loss", "labels", "scores"} <= {each["name"] for each in described["tensors"]}
    # As a query has it.
    lines = ask_process(runs, trial, "series", tensors=["loss"], most="5")["series"]
    shown = {step: value for line in lines for step, value in zip(line["steps"], line["mean"], strict=True)}
    assert (sum(line["known"] for line in lines), len(shown), min(shown), max(shown)) == (20, 5, 0, 19)
    assert shown == {step: trial.tensor("loss").value(step).item() for step in shown}
    # Nothing that was asked so far needed every step.
    assert len(runs[trial.path].trial.steps()) == 5


@pytest.mark.parametrize(
    ("question", "arguments", "expected"),
    [
        ("series", {"tensors": ["loss"], "most": 100}, 20),
        ("series", {"tensors": ["loss"], "most": 5, "mode": "EVAL"}, 5),
        ("series", {"tensors": ["words"], "most": 5}, 1),
        ("series", {"tensors": ["loss"], "most": 5, "first": 3, "last": 5}, 3),
        ("heat-map", {"regex": "^gradient", "columns": 40}, 20),
    ],
)
def test_what_a_first_look_does_not_know_is_answered_from_all_steps(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, question: str, arguments: dict[str, Any], expected: int
) -> None:
    monkeypatch.setattr("smdebug.inspection.watched_run._FEW_STEPS", 5)
    for earlier in ([], ["describe"]):
        runs: OrderedDict[str, WatchedRun] = OrderedDict()
        for each in earlier:
            ask_process(runs, trial, each)
        found = ask_process(runs, trial, question, **arguments)
        steps = found.get("steps") or [step for line in found["series"] for step in line["steps"]]
        assert len(steps) == expected


def test_a_first_reading_of_a_growing_run_becomes_outdated(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("smdebug.inspection.watched_run._FEW_STEPS", 5)
    going_on = Path(shutil.copytree(trial.path, tmp_path / "run"))
    (going_on / END_OF_JOB_FILE).unlink()
    run = WatchedRun(str(going_on), few=True)
    assert run.suffices("describe", {})
    monkeypatch.setattr("smdebug.inspection.watched_run._PREVIEW_SECONDS", -1.0)
    assert not run.suffices("describe", {})
    assert not run.suffices("series", {"tensors": ["loss"], "most": 5})
