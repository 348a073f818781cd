"""Tests of the files of one step: content, order, and agreement."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c

from smdebug.format.locations import get_event_path, get_index_path
from smdebug.format.tfevent.data_types import DATA_TYPE_NUMBERS
from smdebug.format.tfevent.decoding import decode_event
from smdebug.format.tfevent.encoding import Heads, encode_heads
from smdebug.format.tfevent.framing import CONSTANT_FOOTER, read_record
from smdebug.mode_keys import ModeKeys
from smdebug.moments import STEP
from smdebug.writing import step_writer
from smdebug.writing.step_writer import HeadCache, StepWriter

KIB = 1024


@pytest.fixture
def writer(tmp_path: Path) -> StepWriter:
    return StepWriter(f"{tmp_path}/", "w", 3, ModeKeys.TRAIN, 2)


def add(writer: StepWriter, name: str, array: np.ndarray, true_dtype: str | None = None) -> None:
    content = memoryview(array.tobytes())
    writer.add_tensor(name, DATA_TYPE_NUMBERS[array.dtype.name], array.shape, content, true_dtype)


def read_index(folder: Path) -> dict[str, Any]:
    index: dict[str, Any] = json.loads((folder / get_index_path(3, "w")).read_text())
    return index


def read_values(folder: Path) -> dict[str, Any]:
    """Read each tensor where the index says that it is, and compare it with its checksum."""
    index = read_index(folder)
    data = (folder / index["meta"]["event_file_name"]).read_bytes()
    found, end = {}, 0
    for entry in index["tensor_payload"]:
        assert entry["start_idx"] == end, "one follows the other"
        payload, end = read_record(data, entry["start_idx"])
        assert end == entry["start_idx"] + entry["length"]
        assert entry["crc32c"] == crc32c(payload)
        assert data[end - 4 : end] == CONSTANT_FOOTER
        event = decode_event(payload)
        (value,) = event.values
        assert (event.step, value.tag) == (3, entry["tensorname"])
        found[value.tag] = (value.tensor, value.mode, value.mode_step, event.wall_time, entry.get("dtype"))
    assert end == len(data)
    return found


@pytest.mark.parametrize("size", [0, 1, 64 * KIB - 1, 64 * KIB, 256 * KIB - 1, 256 * KIB, 3 * KIB * KIB])
def test_tensors_of_any_size_are_where_the_index_says(tmp_path: Path, writer: StepWriter, size: int) -> None:
    array = np.arange(size).astype(np.uint8)
    for name in ("a", "bc", "def"):
        add(writer, name, array)
    writer.close()
    found = read_values(tmp_path)
    assert list(found) == ["a", "bc", "def"]
    for tensor, mode, mode_step, _, dtype in found.values():
        np.testing.assert_array_equal(tensor, array)
        assert (mode, mode_step, dtype) == (ModeKeys.TRAIN, 2, None)


def test_large_tensors_begin_at_multiples_of_64_bytes(tmp_path: Path, writer: StepWriter) -> None:
    """A reader that maps the file into memory returns them without a copy."""
    array = np.frombuffer(np.random.default_rng(0).bytes(256 * KIB + 5), np.uint8)
    names = ["x" * length for length in range(1, 70)]
    for name in names:
        add(writer, name, array)
    writer.close()
    data = (tmp_path / get_event_path(3, "w")).read_bytes()
    starts: list[int] = []
    for _ in names:
        starts.append(data.index(array.tobytes(), starts[-1] + 1 if starts else 0))
    assert [start % 64 for start in starts] == [0] * len(names)
    assert read_values(tmp_path).keys() == set(names)


def test_small_and_large_tensors_follow_each_other_with_their_types(tmp_path: Path, writer: StepWriter) -> None:
    sizes = [4, 256 * KIB, 4, 64 * KIB, 4]
    for number, size in enumerate(sizes):
        add(writer, str(number), np.zeros(size, np.uint8), "bool" if number % 2 else None)
    writer.close()
    found = read_values(tmp_path)
    assert [tensor.size for tensor, *_ in found.values()] == sizes
    assert [dtype for *_, dtype in found.values()] == [None, "bool", None, "bool", None]


def test_steps_share_the_heads_of_records_that_stay_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []

    def encode(name: str, *others: Any) -> Heads:
        encoded.append(name)
        return encode_heads(name, *others)

    monkeypatch.setattr(step_writer, "encode_heads", encode)
    heads = HeadCache()
    for step in range(3):
        writer = StepWriter(str(tmp_path), "w", step + 1, heads=heads)
        for name in ("a", "b"):
            add(writer, name, np.arange(step, step + 2))
        writer.close()
    assert encoded == ["a", "b"]


def test_a_step_is_reported_once_it_is_visible(writer: StepWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[tuple[str, bool]] = []
    monkeypatch.setattr(step_writer, "report_moment", lambda moment: reported.append((moment, writer.is_visible)))
    writer.close()
    assert reported == []
    add(writer, "a", np.arange(2))
    writer.close()
    assert reported == [(STEP, True)]


@pytest.mark.parametrize("true_dtype", [None, "int8"])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_many_numbers_at_once_are_written_like_one_at_a_time(
    tmp_path: Path, true_dtype: str | None, shape: tuple[int, ...]
) -> None:
    values = np.array([1.5, -2.5, 4.0], np.float32)
    names = ["first", 'quoted "', "smdebug/reductions/min/é"]
    files = []
    for folder in ("together", "each"):
        writer = StepWriter(str(tmp_path / folder), "w", 3)
        writer.stamp(ModeKeys.EVAL, 1, 2.5)
        add(writer, "before", values)
        if folder == "together":
            writer.add_numbers(names, 1, memoryview(values.tobytes()), true_dtype, shape)
        else:
            for name, value in zip(names, values, strict=True):
                add(writer, name, value.reshape(shape), true_dtype)
        add(writer, "after", values)
        writer.close()
        event, index = (tmp_path / folder / path(3, "w") for path in (get_event_path, get_index_path))
        files.append((event.read_bytes(), json.loads(index.read_text())))
    assert files[0] == files[1]


@pytest.mark.slow
@pytest.mark.parametrize("add_records", ["tensors", "numbers"])
def test_no_more_than_a_megabyte_waits_in_memory(tmp_path: Path, writer: StepWriter, add_records: str) -> None:
    def measure() -> int:
        return sum(path.stat().st_size for path in tmp_path.rglob("*.tmp"))

    number = memoryview(np.float32(1.5).tobytes())
    count = 0
    while not measure():
        if add_records == "tensors":
            add(writer, f"t{count}", np.zeros(60 * KIB, np.uint8))
        else:
            names = [f"{count}/{name}" for name in range(500)]
            writer.add_numbers(names, 1, memoryview(bytes(number) * len(names)))
        count += 1
        assert count < 1000
    assert KIB * KIB <= measure() < KIB * KIB + 100 * KIB
    writer.close()
    assert len(read_values(tmp_path)) == count * (1 if add_records == "tensors" else 500)


def test_what_is_added_to_a_closed_step_follows_what_was_there(tmp_path: Path, writer: StepWriter) -> None:
    additions: list[Callable[[], None]] = [
        lambda: add(writer, "tensor", np.arange(3)),
        lambda: add(writer, "large", np.zeros(100 * KIB, np.uint8)),
        lambda: writer.add_numbers(["number"], 1, memoryview(np.float32(1.5).tobytes())),
        lambda: writer.add_text("text", ["a", "é"]),
    ]
    for count, add_one in enumerate(additions, start=1):
        assert writer.closed is (count > 1)
        add_one()
        assert not writer.closed
        writer.close()
        assert writer.closed
        assert len(read_values(tmp_path)) == count
    writer.add_shape("shape", (2, 3), "its own name")
    assert not writer.closed
    writer.close()
    assert len(read_values(tmp_path)) == 4
    assert read_index(tmp_path)["shape_payload"] == [
        {"tensorname": "shape", "originalname": "its own name", "shape": [2, 3]}
    ]
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_step_of_shapes_alone_has_no_event_file(tmp_path: Path, writer: StepWriter) -> None:
    assert writer.is_empty
    writer.add_shape("s", (np.int64(2), 3))  # type: ignore[arg-type]
    assert not writer.is_empty
    assert not writer.is_visible
    writer.close()
    assert writer.is_visible
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [Path(get_index_path(3, "w")).name]
    assert read_index(tmp_path) == {
        "meta": {"mode": "TRAIN", "mode_step": 2},
        "tensor_payload": [],
        "shape_payload": [{"tensorname": "s", "originalname": "s", "shape": [2, 3]}],
    }


def test_a_step_without_content_leaves_no_file(tmp_path: Path, writer: StepWriter) -> None:
    writer.close()
    assert not list(tmp_path.iterdir())
    assert not writer.is_visible


def test_records_have_the_mode_and_time_that_were_stamped_last(tmp_path: Path, writer: StepWriter) -> None:
    for name, mode, mode_step, timestamp in (("a", ModeKeys.EVAL, 7, 12.5), ("b", ModeKeys.PREDICT, 8, 13.5)):
        writer.stamp(mode, mode_step, timestamp)
        add(writer, name, np.arange(2))
    writer.close()
    found = {name: (mode, mode_step, time) for name, (_, mode, mode_step, time, _) in read_values(tmp_path).items()}
    assert found == {"a": (ModeKeys.EVAL, 7, 12.5), "b": (ModeKeys.PREDICT, 8, 13.5)}
    # The index has the mode that the step was opened with.
    assert read_index(tmp_path)["meta"]["mode"] == "TRAIN"


def test_what_was_aborted_stays_away_from_what_is_visible(tmp_path: Path, writer: StepWriter) -> None:
    add(writer, "a", np.arange(2))
    writer.close()
    add(writer, "b", np.zeros(100 * KIB, np.uint8))
    writer.abort()
    writer.close()
    assert list(read_values(tmp_path)) == ["a"]
    assert not list(tmp_path.rglob("*.tmp"))


def test_its_event_file_is_below_the_run(tmp_path: Path, writer: StepWriter) -> None:
    assert writer.event_path == f"{tmp_path}/{get_event_path(3, 'w')}"
    assert (writer.mode, writer.mode_step) == (ModeKeys.TRAIN, 2)
    plain = StepWriter(str(tmp_path), "w", 4)
    assert (plain.mode, plain.mode_step) == (ModeKeys.GLOBAL, 4)


def test_a_time_ends_with_its_block_even_after_an_error(tmp_path: Path, writer: StepWriter) -> None:
    with suppress(ValueError), writer.stamped(12.5):
        add(writer, "a", np.arange(2))
        raise ValueError
    add(writer, "b", np.arange(2))
    writer.close()
    times = {name: time for name, (_, _, _, time, _) in read_values(tmp_path).items()}
    assert times["a"] == 12.5
    assert times["b"] > 1e9
