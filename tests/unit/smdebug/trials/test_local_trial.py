import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import (
    SMDebugNotImplementedError,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.reading.run_index import RunIndex
from smdebug.trials import LocalTrial, Trial, create_trial
from smdebug.writing.file_writer import FileWriter
from smdebug.writing.selected_tensor import write_value
from smdebug.writing.step_writer import StepWriter
from tests.unit.smdebug.runs import RunMaker
from tests.unit.smdebug.trials.opened_run import later, open_run


def test_names_and_identity(tmp_path: Path) -> None:
    RunMaker(tmp_path / "run").end()
    trial = open_run(tmp_path / "run")
    assert isinstance(trial, LocalTrial)
    assert trial.name == "run"
    assert create_trial(f"  {tmp_path}/run/ ").name == ""
    assert trial == open_run(tmp_path / "run")
    assert len({trial, open_run(tmp_path / "run"), open_run(tmp_path / "run", name="other")}) == 2


def test_the_arguments_and_attributes_of_smdebug(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0})
    run.end()
    given = LocalTrial(name="a", dirname=tmp_path, parallel=True, check=False, index_mode=True, cache=True)
    placed = LocalTrial("a", tmp_path, None, True, False, True, True)
    assert given == placed
    assert given.cache
    assert placed.cache
    assert given.index_mode
    assert given.trial_dir == str(tmp_path)
    assert given.worker_set == set(given.workers())
    assert given.workers_for_global_step == {0: {"worker_0"}}
    assert given.collection_manager.get_collections() == given.collections()
    locations, _ = given.index_reader.load_tensor_data_from_index_files()
    assert given.index_reader.fetch_tensor_value(locations["loss"][0]["worker_0"]) == 1


def test_a_run_is_read_by_its_index_whatever_index_mode_says(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0})
    run.end()
    for trial in (LocalTrial("a", tmp_path, index_mode=False), create_trial(tmp_path, index_mode=False)):
        assert trial.steps() == [0]
        assert trial.index_mode


def test_running_trial_sees_new_steps_and_names(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0})
    trial = open_run(tmp_path)
    assert trial.steps() == [0]
    assert not trial.has_tensor("late")
    with pytest.raises(TensorUnavailable, match="late"):
        trial.tensor("late")
    run.write_step(5, {"loss": 0.5, "late": 2.0})
    assert trial.has_tensor("late")
    assert trial.tensor("loss").steps() == [0, 5]
    with pytest.raises(StepNotYetAvailable, match="6"):
        trial.tensor("loss").value(6)
    with pytest.raises(StepUnavailable, match="3"):
        trial.tensor("loss").value(3)
    with pytest.raises(TensorUnavailableForStep, match=r"late.*step 0"):
        trial.tensor("late").value(0)
    run.end()
    with pytest.raises(StepUnavailable):
        trial.tensor("loss").value(6)
    assert trial.loaded_all_steps


def test_tensor_names_in_all_combinations(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0, "fc.weight": 1.0}, ModeKeys.TRAIN, 0)
    run.write_step(1, {"loss": 1.0, "smdebug/reductions/mean/gradient/fc": 1.0}, ModeKeys.EVAL, 0)
    run.end()
    trial = open_run(tmp_path)
    assert trial.tensor_names() == ["fc.weight", "gradient/fc", "loss"]
    assert trial.tensor_names(step=0) == ["fc.weight", "loss"]
    assert trial.tensor_names(mode=ModeKeys.EVAL) == ["gradient/fc", "loss"]
    assert trial.tensor_names(step=0, mode=ModeKeys.EVAL, regex="^grad") == ["gradient/fc"]
    assert trial.tensor_names(regex=["weight$", "^gr"]) == ["fc.weight", "gradient/fc"]
    assert trial.tensor_names(collection="gradients") == ["gradient/fc"]
    assert trial.tensor_names(collection=trial.collection("weights"), step=1) == []
    assert trial.tensor_names(collection="new") == []
    assert "new" in trial.collections()
    assert trial.tensor_names(regex=[["weight$", ("^gr",)], "nothing"]) == ["fc.weight", "gradient/fc"]
    assert all(trial.tensor(name) for name in trial.tensor_names(show_prefixed_tensors=True))
    assert trial.tensor_names(step=7) == []
    with pytest.raises(KeyError, match="EVAL"):
        trial.tensor_names(step=7, mode=ModeKeys.EVAL)
    with pytest.raises(KeyError, match="PREDICT"):
        trial.tensor_names(mode=ModeKeys.PREDICT)
    with pytest.raises(ValueError, match="not both"):
        trial.tensor_names(regex="a", collection="gradients")
    with pytest.raises(TypeError):
        trial.tensor_names(collection=3)  # type: ignore[arg-type]


def test_values_shapes_reductions(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    reductions = {"smdebug/reductions/abs_mean/w": np.float32(9)}
    run.write_step(0, {"w": weight, **reductions}, shapes={"w": (2, 3)})
    run.write_step(1, reductions, shapes={"w": (2, 3)})
    run.write_step(2, {"w": weight * 2})
    run.end()
    tensor = open_run(tmp_path).tensor("w")
    np.testing.assert_array_equal(tensor.value(0), weight)
    assert tensor.original_name == "w"
    assert tensor.shapes() == {0: (2, 3), 1: (2, 3), 2: (2, 3)}
    assert tensor.reduction_value(0, "mean", abs=True) == 9
    assert tensor.reduction_value(0, "mean") == weight.mean()
    assert tensor.reduction_values(1) == {("mean", True): 9}
    assert tensor.reduction_values(2) == {}
    with pytest.raises(TensorUnavailableForStep, match=r"w.*step 1.*reduction_value") as caught:
        tensor.value(1)
    assert caught.value.has_reductions
    with pytest.raises(TensorUnavailableForStep, match="mean of w"):
        tensor.reduction_value(1, "mean")
    with pytest.raises(SMDebugValueError, match="median"):
        tensor.reduction_value(0, "median")
    assert tensor.prev_steps(1, 5) == [0, 1]
    assert tensor.prev_steps(2, 2) == [1, 2]
    assert tensor.prev_steps(2) == [0, 1, 2]
    with pytest.raises(SMDebugNotImplementedError):
        tensor.step(0)


def test_values_of_a_mode_and_a_worker(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, workers=2)
    for step, mode in enumerate([ModeKeys.TRAIN, ModeKeys.EVAL]):
        for rank in range(2):
            run.write_step(step, {"t": 10 * step + rank}, mode, 0, f"worker_{rank}")
    run.end()
    tensor = open_run(tmp_path).tensor("t")
    assert {step: value.item() for step, value in tensor.values().items()} == {0: 0, 1: 10}
    assert {step: value.item() for step, value in tensor.values(ModeKeys.EVAL, "worker_1").items()} == {0: 11}
    assert tensor.workers(0, ModeKeys.EVAL) == ["worker_0", "worker_1"]
    with pytest.raises(TensorUnavailableForStep):
        tensor.workers(9)


def test_cache_gives_copies(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"t": np.ones(3)})
    run.end()
    tensor = open_run(tmp_path, cache=True).tensor("t")
    tensor.value(0)[:] = 5
    (tmp_path / "events/000000000000/000000000000_worker_0.tfevents").unlink()
    assert tensor.value(0).tolist() == [1, 1, 1]


@pytest.mark.parametrize("bad", [(3, 2), (-1, None), (1,), ("0", None)])
def test_wrong_range(tmp_path: Path, bad: tuple[int, ...]) -> None:
    RunMaker(tmp_path)
    with pytest.raises(AssertionError, match="range_steps"):
        open_run(tmp_path, range_steps=bad)


def test_range(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("t", dict.fromkeys(range(6), 1.0))
    run.end()
    assert open_run(tmp_path, range_steps=[2, 4]).steps() == [2, 3]


def test_a_collection_that_the_run_lacks_is_told_once(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0})
    trial = open_run(tmp_path)
    trial.collection("mine").include("^l")
    for name in ("misspelt", "mine", "misspelt"):
        trial.tensor_names(collection=name, step=0)
    assert [record.getMessage() for record in said.records] == [
        f"{tmp_path} has no collection misspelt. trial.collections() lists them."
    ]


def test_collections_that_grow_and_ones_of_the_reader(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"odd": 1.0})
    trial = open_run(tmp_path)
    trial.collection("mine").include("^o")
    assert trial.tensor_names(collection="late") == []
    run.write_collections({"late": {"later"}})
    run.write_step(1, {"later": 1.0})
    assert trial.tensor_names(collection="late") == ["later"]
    assert trial.tensor_names(collection="mine") == ["odd"]


def test_underscores_in_the_path(tmp_path: Path) -> None:
    run = RunMaker(tmp_path / "my__run")
    run.write_step(0, {"t": 1.0})
    tensor = open_run(tmp_path / "my__run").tensor("t")
    assert tensor.workers(0) == ["worker_0"]
    assert tensor.value(0, worker="worker_0") == 1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"path": "  "}, SMDebugValueError, "path"),
        ({}, SMDebugValueError, "path"),
        ({"path": "x", "out_dir": "x"}, SMDebugValueError, "one run"),
        ({"path": "s3://"}, SMDebugValueError, "s3://bucket/prefix"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        create_trial(**arguments)  # type: ignore[call-overload]


def test_writer_of_another_thread_is_followed(tmp_path: Path) -> None:
    """A reader that polls while steps are written sees each of them once, whole and in order."""
    run = RunMaker(tmp_path)
    trial = open_run(tmp_path)
    steps = range(0, 60, 3)

    def write() -> None:
        for step in steps:
            with FileWriter(str(tmp_path), "worker_0", step) as writer:
                writer.write_tensor(np.full(1000, step), "t")
        run.end()

    thread = later(write)
    seen = []
    step = trial.wait_for_next_step(0)
    while step is not None:
        seen.append(int(trial.tensor("t").value(step).mean()))
        step = trial.wait_for_next_step(step + 1)
    thread.join()
    assert seen == list(steps)


@pytest.mark.parametrize("text", ["many", "", "1,5"])
def test_variable_that_is_not_a_number_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0})
    run.end()
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", text)
    with pytest.raises(SMDebugValueError, match="SMDEBUG_TRAINING_END_DELAY_REFRESH must be a number"):
        open_run(tmp_path).steps()
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", text)
    with pytest.raises(SMDebugValueError, match="SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW must be a number"):
        open_run(tmp_path)


def test_any_text_may_be_a_tensors_name(tmp_path: Path) -> None:
    names = ["a\0b", "ключ/值 😀", "../../etc/passwd", "a\nb", " ", "smdebug", "x:0"]
    run = RunMaker(tmp_path)
    run.write_step(0, {name: float(number) for number, name in enumerate(names)})
    run.end()
    trial = open_run(tmp_path)
    assert trial.tensor_names() == sorted(names)
    assert [float(trial.tensor(name).value(0)[0]) for name in names] == list(range(len(names)))


def test_modes_of_all_global_steps(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0}, ModeKeys.TRAIN, 0)
    run.write_step(1, {"loss": 1.0}, ModeKeys.EVAL, 0)
    trial = open_run(tmp_path)
    assert trial._global_to_mode == {0: (ModeKeys.TRAIN, 0), 1: (ModeKeys.EVAL, 0)}
    run.write_step(4, {"loss": 1.0})
    assert trial._global_to_mode[4] == (ModeKeys.GLOBAL, 4)


def test_a_trial_is_asked_from_several_threads(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, workers=2)
    for step in range(60):
        for worker in run.workers:
            run.write_step(step, {"t": float(step)}, ModeKeys.TRAIN, step, worker)
    run.end()
    problems: list[object] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            trial = open_run(tmp_path)
            start = threading.Barrier(4)

            def ask(trial: Trial = trial, start: threading.Barrier = start) -> None:
                start.wait()
                for step in range(60):
                    tensor = trial.tensor("t")
                    found = tensor.workers(step), tensor.steps(ModeKeys.TRAIN), float(tensor.value(step)[0])
                    if found != (["worker_0", "worker_1"], list(range(60)), step):
                        problems.append((step, found))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    assert problems == []


@pytest.mark.parametrize(
    "ask", ["tensor_names", "names_of_step", "steps", "tensor_steps", "value", "has_passed_step", "global_step"]
)
def test_what_is_not_a_mode_is_refused(tmp_path: Path, ask: str) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0}, ModeKeys.TRAIN, 0)
    trial = open_run(tmp_path)
    mode: Any = "TRAIN"
    questions: dict[str, Callable[[], object]] = {
        "tensor_names": lambda: trial.tensor_names(mode=mode),
        "names_of_step": lambda: trial.tensor_names(step=0, mode=mode),
        "steps": lambda: trial.steps(mode),
        "tensor_steps": lambda: trial.tensor("loss").steps(mode),
        "value": lambda: trial.tensor("loss").value(0, mode),
        "has_passed_step": lambda: trial.has_passed_step(0, mode),
        "global_step": lambda: trial.global_step(mode, 0),
    }
    with pytest.raises(SMDebugValueError, match=r"'TRAIN' is not a mode: use one of modes\.TRAIN, modes\.EVAL"):
        questions[ask]()


@pytest.mark.parametrize("step", ["a", None, [1]])
def test_what_is_not_a_step_is_refused(tmp_path: Path, step: Any) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0})
    trial = open_run(tmp_path)
    loss = trial.tensor("loss")
    for ask in (loss.value, loss.shape, loss.workers, loss.reduction_values, loss.prev_steps, trial.has_passed_step):
        with pytest.raises(SMDebugTypeError, match=r"is not a step: give a number, one of trial\.steps\(\)\."):
            ask(step)
    number_of_numpy: Any = np.int64(0)
    assert loss.value(number_of_numpy) == loss.value(0)


def test_path_may_be_a_path_object(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0})
    assert create_trial(tmp_path).steps() == [0]
    assert create_trial(out_dir=tmp_path).steps() == [0]


@pytest.mark.parametrize("comes", ["before the next step", "with the next step", "before the end"])
def test_what_a_hook_adds_to_its_newest_step_is_seen(tmp_path: Path, comes: str) -> None:
    """Scripts save the accuracy of an epoch when its last step is over, and visible."""
    run = RunMaker(tmp_path, workers=2)
    run.write_step(0, {"loss": 1.0}, worker="worker_1")
    writer = StepWriter(str(tmp_path), "worker_0", 0)
    write_value(writer, "loss", 1.0)
    writer.close()
    trial = open_run(tmp_path)
    assert trial.tensor_names(step=0) == ["loss"]
    assert trial.tensor("loss").value(0).tolist() == [1]
    write_value(writer, "accuracy", 0.5)
    writer.close()
    if comes == "with the next step":
        for worker in run.workers:
            run.write_step(1, {"loss": 2.0}, worker=worker)
    elif comes == "before the end":
        run.end()
    assert trial.tensor("accuracy").steps() == [0]
    assert trial.tensor("accuracy").value(0).tolist() == [0.5]
    assert trial.tensor("accuracy").workers(0) == ["worker_0"]
    assert trial.tensor("loss").workers(0) == ["worker_0", "worker_1"]
    assert trial.tensor_names(step=0) == ["accuracy", "loss"]


def test_index_file_that_was_damaged_and_is_written_again_is_read(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"loss": 1.0})
    (path,) = tmp_path.glob("index/*/*.json")
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    trial = open_run(tmp_path)
    assert trial.tensor_names() == []
    path.write_bytes(whole)
    assert trial.tensor_names() == ["loss"]
    assert trial.tensor("loss").value(0) == 1
    assert not trial.run_index.damage


@pytest.mark.slow
def test_earlier_steps_of_a_rare_tensor_are_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunMaker(tmp_path)
    for step in range(300):
        rare = {"rare": 1.0} if step in (3, 9, 200) else {}
        run.write_step(step, {"loss": 1.0, **rare}, ModeKeys.TRAIN if step % 2 else ModeKeys.EVAL, step // 2)
    tensor = open_run(tmp_path).tensor("rare")
    assert tensor.prev_steps(299, 2) == [9, 200]
    looked_at: list[int] = []
    has = RunIndex.has

    def count(index: RunIndex, step: int, tname: str) -> bool:
        looked_at.append(step)
        return has(index, step, tname)

    monkeypatch.setattr(RunIndex, "has", count)
    assert tensor.prev_steps(199, 5) == tensor.prev_steps(199) == [3, 9]
    assert tensor.prev_steps(149, 2, ModeKeys.TRAIN) == [1, 4]
    assert tensor.prev_steps(149, 1, ModeKeys.EVAL) == [100]
    assert len(looked_at) < 100
    run.write_step(300, {"rare": 1.0}, ModeKeys.TRAIN, 150)
    run.end()
    assert tensor.prev_steps(400, 3) == [9, 200, 300]
