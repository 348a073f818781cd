import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.reading.index_files import parse_index
from smdebug.reading.run_files import LocalRunFiles
from smdebug.reading.step_index import Layouts
from smdebug.trials.local_trial import LocalTrial
from smdebug.trials.trial import Trial
from tests.unit.smdebug.runs import RunMaker


class CountingTrial(LocalTrial):
    """Notes which index files are read."""

    def __init__(self, path: Path) -> None:
        self.index_reads: list[str] = []
        super().__init__(None, str(path))

    def _note(self) -> None:
        read = self._files.read

        def noted(names: Any) -> list[bytes]:
            self.index_reads += [name for name in names if name.startswith("index/")]
            return read(names)

        self._files.read = noted  # type: ignore[method-assign]


def open_counted(path: Path) -> CountingTrial:
    trial = CountingTrial(path)
    trial._note()
    return trial


@pytest.fixture
def run(tmp_path: Path) -> RunMaker:
    run = RunMaker(tmp_path)
    for step in range(6):
        run.write_step(step, {"loss": float(step)}, ModeKeys.TRAIN if step % 2 else ModeKeys.EVAL, step // 2)
    return run


def test_opening_reads_no_index_file_and_a_value_reads_one(run: RunMaker, tmp_path: Path) -> None:
    trial = open_counted(tmp_path)
    assert trial.steps() == list(range(6))
    assert trial.index_reads == []
    assert trial.tensor("loss").value(4) == 4
    # One to know that there is such a tensor, and the one of the step.
    assert trial.index_reads == [f"index/000000000/{step:012}_worker_0.json" for step in (0, 4)]
    assert trial.mode(3) is ModeKeys.TRAIN
    assert len(trial.index_reads) == 3


def test_questions_about_the_whole_run_read_what_is_left_once(run: RunMaker, tmp_path: Path) -> None:
    trial = open_counted(tmp_path)
    assert trial.steps(ModeKeys.EVAL) == [0, 1, 2]
    assert trial.tensor_names() == ["loss"]
    assert trial.modes() == [ModeKeys.EVAL, ModeKeys.TRAIN]
    assert len(trial.index_reads) == 6
    run.write_step(6, {"loss": 1.0, "late": 1.0}, ModeKeys.EVAL, 3)
    assert trial.tensor("late").steps() == [6]
    assert len(trial.index_reads) == 7


def test_steps_that_look_alike_share_their_layout(run: RunMaker, tmp_path: Path) -> None:
    trial = open_counted(tmp_path)
    trial.tensor_names()
    layouts = {id(trial.run_index.at(step)["worker_0"].layout) for step in range(2, 6)}
    assert len(layouts) == 1


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"meta": {}, "tensor_payload": []}'])
def test_damaged_index_file_names_itself_and_leaves_the_rest(
    run: RunMaker, tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "index/000000000/000000000002_worker_0.json"
    path.write_bytes(content)
    run.end()
    trial = Trial(LocalRunFiles(tmp_path), str(tmp_path))
    tensor = trial.tensor("loss")
    assert tensor.steps() == [0, 1, 3, 4, 5]
    with pytest.raises(TensorUnavailableForStep, match=rf"Tensor loss .*step 2.*{path}.*worker_0"):
        tensor.value(2)
    assert trial.steps() == list(range(6))
    assert trial.mode(2) is None
    assert tensor.value(3) == 3
    assert trial.steps(ModeKeys.EVAL) == [0, 2]


def test_index_file_that_is_gone_when_it_is_needed(run: RunMaker, tmp_path: Path) -> None:
    trial = open_counted(tmp_path)
    (tmp_path / "index/000000000/000000000002_worker_0.json").unlink()
    assert trial.tensor("loss").steps() == [0, 1, 3, 4, 5]
    with pytest.raises(TensorUnavailableForStep, match="No such file"):
        trial.tensor("loss").value(2)


def pack(*entries: dict[str, Any], shapes: Any = ()) -> Any:
    content = {"meta": {"mode": "TRAIN", "mode_step": 2, "event_file_name": "events/e"}, "tensor_payload": entries}
    return Layouts().pack(parse_index(json.dumps({**content, "shape_payload": shapes}).encode(), 4, "w", "index/x"))


@pytest.mark.parametrize("checksums", [(1, 2**32 - 1), (None, None), (1, None), (None, 7)])
def test_checksums_come_back_as_they_were(checksums: tuple[Any, Any]) -> None:
    entries = [
        {"tensorname": name, "start_idx": 0, "length": 9, **({} if crc is None else {"crc32c": crc})}
        for name, crc in zip("ab", checksums, strict=True)
    ]
    index = pack(*entries)
    assert tuple(index.find(name).location.crc32c for name in "ab") == checksums


def test_of_two_entries_of_one_name_the_later_counts() -> None:
    index = pack(*({"tensorname": "a", "start_idx": start, "length": 9} for start in (0, 9)))
    assert index.find("a").location.start_idx == 9
    assert index.find("b") is None


def test_shape_beside_a_value_hides_nothing() -> None:
    shapes = [{"tensorname": "a", "originalname": "o", "shape": [2]}]
    saved = pack({"tensorname": "a", "start_idx": 0, "length": 9}, shapes=shapes).find("a")
    assert saved.location is not None
    assert saved.shape.shape == (2,)


def test_values_of_many_steps_are_read_exactly(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    for step in range(40):
        run.write_step(step, {"a": np.full(250_000, step, np.float32), "b": float(step)})
    run.end()
    trial = Trial(LocalRunFiles(tmp_path), str(tmp_path))
    for name in ("b", "b", "a", "b"):
        assert [value.flat[0] for value in trial.tensor(name).values().values()] == list(range(40))
    # What is read is not kept, the operating system has it.
    assert trial.reader.cache.kept == 0
    assert trial.reader.events.fetched == trial.reader.events.returned


def replace_files(folder: Path, source: Path, *names: str) -> None:
    """Replace files of a run by those of another one, as a second process with the same worker's name does."""
    for name in names:
        for path in source.glob(name):
            path.replace(folder / path.relative_to(source))


@pytest.mark.parametrize("with_other_tensors", [False, True])
def test_a_step_that_a_second_process_replaced_is_read_again(tmp_path: Path, *, with_other_tensors: bool) -> None:
    first, second = RunMaker(tmp_path / "run"), RunMaker(tmp_path / "second")
    first.write_step(0, {"loss": 1.0})
    second.write_step(0, {"accuracy": 0.5, "loss": 2.0} if with_other_tensors else {"loss": 2.0})
    first.end()
    trial = LocalTrial(None, str(tmp_path / "run"))
    assert trial.tensor("loss").steps() == [0]
    replace_files(tmp_path / "run", tmp_path / "second", "events/*/*", "index/*/*")
    assert trial.tensor("loss").value(0) == 2


def test_an_index_file_that_follows_its_event_file_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = RunMaker(tmp_path / "run"), RunMaker(tmp_path / "second")
    first.write_step(0, {"loss": 1.0})
    second.write_step(0, {"loss": 2.0})
    trial = LocalTrial(None, str(tmp_path / "run"))
    assert trial.tensor("loss").steps() == [0]
    replace_files(tmp_path / "run", tmp_path / "second", "events/*/*")
    pauses: list[float] = []

    def replace_index(seconds: float) -> None:
        pauses.append(seconds)
        if seconds:
            replace_files(tmp_path / "run", tmp_path / "second", "index/*/*")

    monkeypatch.setattr("smdebug.reading.record_reader.time.sleep", replace_index)
    assert trial.tensor("loss").value(0) == 2
    assert len(pauses) == 2


def test_a_damaged_file_is_waited_for_once(run: RunMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "events/000000000000/000000000000_worker_0.tfevents").write_bytes(b"damaged")
    pauses: list[float] = []
    monkeypatch.setattr("smdebug.reading.record_reader.time.sleep", pauses.append)
    trial = LocalTrial(None, str(tmp_path))
    for _ in range(3):
        with pytest.raises(TensorUnavailableForStep, match="is damaged at byte 0"):
            trial.tensor("loss").value(0)
    assert len(list(filter(None, pauses))) == 1
