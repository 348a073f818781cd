"""Tests of small tensors measured together: the same answers as one by one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.reading.record_reader import RecordReader
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.builtin import find_built_in_rule
from smdebug.rules.measuring.row_measures import MEASURES, measure
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.object_storage import BUCKET, Storage
from tests.unit.smdebug.runs import RunMaker

RULES: list[tuple[str, dict[str, str]]] = [
    ("AllZero", {"tensor_regex": ".*", "threshold": "50"}),
    ("ExplodingTensor", {}),
    ("ExplodingTensor", {"only_nan": "True"}),
    ("VanishingGradient", {"threshold": "0.001"}),
    ("TensorVariance", {"tensor_regex": "weight|labels|fc9", "max_threshold": "50", "min_threshold": "0.01"}),
    ("UnchangedTensor", {"tensor_regex": "weight|loss", "num_steps": "2"}),
    ("WeightUpdateRatio", {"large_threshold": "4", "small_threshold": "0.001"}),
]


def make_tensors(step: int, seed: int) -> dict[str, Any]:
    """Tensors of several kinds; now and then one of them is all that a rule looks for."""
    random = np.random.default_rng([seed, step])
    tensors: dict[str, Any] = {}
    for kind_of_tensor in ("", "gradient/"):
        for number in range(6):
            name = f"{kind_of_tensor}fc{number}.weight"
            values: np.ndarray = random.standard_normal((12, 20)).astype(np.float32 if number < 4 else np.float64)
            kind = random.integers(80)
            if kind == 0:
                values[:] = 0
            elif kind == 1:
                values[1, 2] = np.nan
            elif kind == 2:
                values[0, 0] = -np.inf
            elif kind == 3:
                values *= 1e-6
            elif kind == 4:
                values *= 100
            elif kind == 5:
                values += 1e4
            elif kind == 6:
                values = (np.arange(240).reshape(12, 20) / 7).astype(values.dtype)
            tensors[name] = values
    tensors |= {"labels": np.arange(3), "empty": np.zeros(0), "half": np.ones(3, np.float16), "words": np.array(["a"])}
    return tensors | {"loss": np.float32(step), "smdebug/reductions/abs_mean/gradient/fc9": 0.5}


def ask(rule: BuiltInRule) -> list[tuple[int, bool | str, str]]:
    """Of each step the answer and what was found."""
    answers: list[tuple[int, bool | str, str]] = []
    for step in rule.base_trial.steps():
        rule.finding = None
        try:
            answer: bool | str = rule.invoke_at_step(step)
        except TensorUnavailableForStep:
            answer = "unavailable"
        answers.append((step, answer, str(rule.finding)))
    return answers


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), RULES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 4))])
def test_rules_answer_the_same_together_and_one_by_one(
    name: str, parameters: dict[str, str], seed: int, tmp_path: Path
) -> None:
    run = RunMaker(tmp_path)
    for step in range(12):
        run.write_step(step, make_tensors(step, seed), ModeKeys.TRAIN, step)
    run.end()
    together = find_built_in_rule(name)(create_trial(str(tmp_path)), **parameters)
    alone = find_built_in_rule(name)(create_trial(str(tmp_path)), **parameters)
    alone.tensors.stack = lambda *_, **__: None  # type: ignore[method-assign]
    selected: list[bool] = []
    stack = together.tensors.stack

    def count(*given: Any, **named: Any) -> Any:
        found = stack(*given, **named)
        selected.append(found is not None)
        return found

    together.tensors.stack = count  # type: ignore[method-assign]
    answers = ask(together)
    assert answers == ask(alone)
    assert any(selected), "most steps were judged together"
    # Alone, a rule looks at no tensor after the one that fires.
    quiet = {step for step, answer, _ in answers if answer is False}
    assert quiet
    for quantity, theirs in alone.watched_quantities.items():
        ours = together.watched_quantities[quantity]
        assert ours.steps == theirs.steps
        kept = [at for at, step in enumerate(ours.steps) if step in quiet]
        np.testing.assert_allclose([ours.values[at] for at in kept], [theirs.values[at] for at in kept], rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e4])
def test_measures_against_numpy(dtype: Any, offset: float) -> None:
    random = np.random.default_rng(0)
    matrix = (random.standard_normal((7, 4096)) * 10.0 ** np.arange(-3, 4)[:, None] + offset).astype(dtype)
    matrix[3, :5] = 0
    wide = matrix.astype(np.float64)
    expected = {
        "abs_mean": np.abs(wide).mean(axis=1),
        "variance": wide.var(axis=1),
        "zeros": (matrix == 0).sum(axis=1),
        "first": wide[:, 0],
        "size": np.full(7, 4096.0),
    }
    assert expected.keys() == MEASURES.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(MEASURES[name](matrix)[name], values, rtol=1e-4, err_msg=name)


def write_run(folder: Path | str, steps: int = 4, tensors: int = 5) -> Trial:
    run = RunMaker(folder)
    for step in range(steps):
        run.write_step(step, {f"t{number}": np.full(100, step + number, np.float32) for number in range(tensors)})
    run.end()
    return create_trial(str(folder))


def learn(trial: Trial, step: int) -> None:
    """Reads a step one by one, from which the form of the records is known."""
    tensors = trial.step_tensors
    for place in tensors.saved(tensors.names(step), step):
        tensors.read(place)


def test_what_was_read_together_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = write_run(tmp_path)
    tensors = trial.step_tensors
    names = tensors.names(1)
    assert tensors.stack(names, 1) is None, "how its records are built is not known yet"
    learn(trial, 1)
    rows = tensors.stack(names, 2)
    assert rows is not None
    assert measure(rows, "abs_mean").tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    part = tensors.stack(["t1", "t3"], 2)
    assert part is not None
    assert part.stack is rows.stack
    assert (part.names, measure(part, "first").tolist()) == (["t1", "t3"], [3.0, 5.0])
    monkeypatch.setattr(trial.reader, "read", lambda *_: pytest.fail("it was read before"))
    for place in tensors.saved(names, 2):
        found = tensors.read(place)
        assert found is not None
        assert found.tolist() == [2.0 + int(place.name[1])] * 100
        assert not found.flags.writeable


def test_a_stack_that_holds_none_of_the_names_is_not_an_answer(tmp_path: Path) -> None:
    trial = write_run(tmp_path)
    tensors = trial.step_tensors
    learn(trial, 1)
    assert tensors.stack(tensors.names(2), 2) is not None
    assert tensors.stack([], 2) is None
    for step in trial.steps():
        # Neither rule's tensors are there, while the first one's stack of all tensors is.
        for name, parameters in (
            ("AllZero", {"tensor_regex": "."}),
            ("VanishingGradient", {}),
            ("WeightUpdateRatio", {}),
        ):
            assert find_built_in_rule(name)(trial, **parameters).invoke_at_step(step) is (
                name == "AllZero" and step == 0
            )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), RULES)
def test_rules_find_the_same_without_the_reader_of_small_tensors(
    tmp_path: Path, name: str, parameters: dict[str, str]
) -> None:
    run = RunMaker(tmp_path)
    for step in range(12):
        run.write_step(step, make_tensors(step, 1))
    run.end()
    findings = []
    for with_stacks in (True, False):
        trial = create_trial(str(tmp_path))
        trial.reader = RecordReader(trial.run_index, 0, with_stacks=with_stacks)
        rule = find_built_in_rule(name)(trial, **parameters)
        findings.append([(rule.invoke_at_step(step), str(rule.finding)) for step in trial.steps()])
        if not with_stacks:
            assert all(trial.step_tensors.stack(trial.step_tensors.names(step), step) is None for step in trial.steps())
    assert findings[0] == findings[1]


def test_on_s3(storage: Storage) -> None:
    trial = write_run(f"s3://{BUCKET}/run")
    learn(trial, 1)
    rows = trial.step_tensors.stack(trial.step_tensors.names(2), 2)
    assert rows is not None
    assert measure(rows, "abs_mean").tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_damaged_record_is_left_to_the_single_reader(tmp_path: Path) -> None:
    trial = write_run(tmp_path)
    tensors = trial.step_tensors
    learn(trial, 1)
    (event_file,) = (path for path in tmp_path.glob("events/*/*") if "000000000002" in path.name)
    content = bytearray(event_file.read_bytes())
    content[-50] ^= 1
    event_file.write_bytes(content)
    assert tensors.stack(tensors.names(2), 2) is None
    event_file.unlink()
    assert tensors.stack(tensors.names(2), 2) is None
    assert tensors.stack(tensors.names(3), 3) is not None


def test_large_tensors_and_several_workers_are_read_one_by_one(tmp_path: Path) -> None:
    run = RunMaker(tmp_path / "large")
    for step in range(3):
        run.write_step(step, {name: np.ones(70_000, np.float32) for name in "ab"})
    run.end()
    trial = create_trial(str(tmp_path / "large"))
    learn(trial, 1)
    assert trial.step_tensors.stack(["a", "b"], 2) is None
    run = RunMaker(tmp_path / "two", workers=2)
    for step in range(3):
        for worker in run.workers:
            run.write_step(step, {name: np.ones(10, np.float32) for name in "ab"}, worker=worker)
    run.end()
    trial = create_trial(str(tmp_path / "two"))
    learn(trial, 1)
    assert trial.step_tensors.stack(["a", "b"], 2) is None


def test_old_stacks_are_dropped(tmp_path: Path) -> None:
    trial = write_run(tmp_path, steps=9)
    size = 100 * 5 * 4
    trial.reader = RecordReader(trial.run_index, 0, limit=4 * size)
    learn(trial, 1)
    tensors = trial.step_tensors
    assert all(tensors.stack(tensors.names(step), step) is not None for step in range(2, 9))
    kept = [step for step in trial.steps() if locate_file(trial, step) in trial.reader.cache]
    assert kept == [5, 6, 7, 8]
    assert trial.reader.cache.kept == 4 * size


def locate_file(trial: Trial, step: int) -> str:
    return trial.run_index.at(step)["worker_0"].event_file_name
