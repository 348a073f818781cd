"""Tests of tensor values shared by rules, in little memory."""

import gc
import shutil
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import TensorUnavailableForStep
from smdebug.format.tensor_location import TensorLocation
from smdebug.reading.record_reader import RecordReader
from smdebug.reading.records import decoder as record_decoder
from smdebug.reading.records.template import RecordTemplate, learn_template
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker

TENSORS: dict[str, Any] = {
    "a": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b": np.arange(5, dtype=np.int8),
    "c": np.array(2.5),
    "d": np.array([True, False]),
    "e": np.array(["x", "yz"]),
    "f": np.arange(70_000, dtype=np.float64),
    "g": np.zeros(0),
    "h": np.arange(3, dtype=np.float16),
}


def write_run(folder: Path, steps: int = 4) -> Trial:
    run = RunMaker(folder)
    for step in range(steps):
        changed = {n: v if v.dtype.kind in "Ub" else (v + step).astype(v.dtype) for n, v in TENSORS.items()}
        run.write_step(step, changed)
    run.end()
    return create_trial(str(folder))


def locate(trial: Trial, name: str, step: int) -> TensorLocation:
    location = trial.tensor(name).saved(step)["worker_0"].location
    assert location is not None
    return location


@pytest.mark.parametrize("prefetched", [True, False])
def test_shared_values_are_those_of_the_trial(tmp_path: Path, prefetched: bool) -> None:
    trial = write_run(tmp_path)
    for step in trial.steps():
        if prefetched:
            trial.reader.prefetch([locate(trial, name, step) for name in TENSORS])
        for name in TENSORS:
            found = trial.reader.read_shared(name, locate(trial, name, step), step)
            expected = create_trial(str(tmp_path)).tensor(name).value(step)
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            assert np.array_equal(found, expected)
            assert found.flags.aligned
            assert not found.flags.writeable


def test_only_the_first_record_of_a_kind_is_decoded_field_by_field(tmp_path: Path, monkeypatch: Any) -> None:
    trial = write_run(tmp_path)
    learned: list[int] = []

    def learn(record: memoryview, name: str) -> RecordTemplate | None:
        learned.append(len(record))
        return learn_template(record, name)

    monkeypatch.setattr(record_decoder, "learn_template", learn)
    for step in (*trial.steps(), *trial.steps()):
        trial.reader.read_shared("a", locate(trial, "a", step), step)
        trial.tensor("a").value(step)
    # Step 0 is left out of its tfrecord, so they are shorter than all others.
    assert learned == [locate(trial, "a", step).length for step in (0, 1)]


def test_damage_is_reported_as_the_trial_reports_it(tmp_path: Path) -> None:
    trial = write_run(tmp_path)
    trial.reader.read_shared("a", locate(trial, "a", 0), 0)
    damaged, missing = (tmp_path / locate(trial, "a", step).event_file_name for step in (1, 2))
    content = bytearray(damaged.read_bytes())
    content[locate(trial, "a", 1).start_idx + locate(trial, "a", 1).length - 10] ^= 1
    damaged.write_bytes(content)
    missing.unlink()
    for step, message in ((1, "CRC-32C"), (2, "is missing")):
        locations = [locate(trial, name, step) for name in TENSORS]
        trial.reader.prefetch(locations)
        with pytest.raises(TensorUnavailableForStep, match=message):
            trial.reader.read_shared("a", locations[0], step)
    assert trial.reader.read_shared("a", locate(trial, "a", 3), 3)[0, 0] == 3


def test_little_is_kept(tmp_path: Path) -> None:
    trial = write_run(tmp_path, steps=6)
    reader = RecordReader(trial.run_index, 0, limit=200)
    arrays = [reader.read_shared("a", locate(trial, "a", step), step) for step in trial.steps()]
    assert reader.cache.kept <= 200
    assert reader.read_shared("a", locate(trial, "a", 5), 5) is arrays[5]
    assert reader.read_shared("a", locate(trial, "a", 0), 0) is not arrays[0]
    big = locate(trial, "f", 0)
    assert reader.read_shared("f", big, 0) is not reader.read_shared("f", big, 0)


def test_choice_follows_names_and_collections(tmp_path: Path) -> None:
    trial = write_run(tmp_path)
    tensors = trial.step_tensors
    assert trial.step_tensors is tensors
    assert tensors.choose(0, ["mine"], ["^a$"]) == ["a"]
    trial.collection("mine").add_tensor_name("b")
    assert tensors.choose(0, ["mine"], ["^a$"]) == ["a", "b"]
    trial.collection("mine").include("c")
    assert tensors.choose(1, ["mine"], ["^a$"]) == ["a", "b", "c"]


@pytest.mark.slow
def test_a_run_written_again_is_read_again(tmp_path: Path) -> None:
    old, again = write_run(tmp_path), write_run(tmp_path / "other")
    assert old.reader.read_shared("a", locate(old, "a", 1), 1)[0, 0] == 1
    shutil.rmtree(tmp_path)
    run = RunMaker(tmp_path)
    run.write_step(1, {"a": TENSORS["a"] - 7})
    run.end()
    new = create_trial(str(tmp_path))
    assert new == old, "one path, one name"
    assert new.reader.read_shared("a", locate(new, "a", 1), 1)[0, 0] == -7
    # What is shared goes with its trial.
    shared = weakref.ref(again.step_tensors)
    del again
    gc.collect()
    assert shared() is None


def test_steps_before(tmp_path: Path) -> None:
    tensors = write_run(tmp_path).step_tensors
    assert tensors.steps_before(2, 2) == (1, 2)
    assert tensors.steps_before(2, 9) == (0, 1, 2)
    assert tensors.steps_before(9, 2) == ()
