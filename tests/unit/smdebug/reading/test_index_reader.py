import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import IndexReaderException
from smdebug.mode_keys import ModeKeys
from smdebug.reading.index_files import IndexFinder, parse_index, parse_index_name
from smdebug.reading.index_reader import LocalIndexReader, ReadIndexFilesCache, S3IndexReader
from smdebug.reading.run_files import LocalRunFiles
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker

META = {"mode": "TRAIN", "mode_step": 2, "event_file_name": "events/e"}


def parse(content: Any) -> Any:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return parse_index(raw, 4, "worker_0", "index/here.json")


def test_parses_what_is_there_and_ignores_the_rest() -> None:
    index = parse(
        {
            "meta": {**META, "more": 1},
            "tensor_payload": [{"tensorname": "a", "start_idx": "0", "length": 178, "crc32c": 7, "extra": None}],
            "shape_payload": [{"tensorname": "b", "originalname": "o", "shape": [4, 3]}],
        }
    )
    assert (index.mode, index.mode_step) == (ModeKeys.TRAIN, 2)
    assert (index.tensors[0].start_idx, index.tensors[0].crc32c, index.tensors[0].true_dtype) == (0, 7, None)
    assert index.shapes[0].shape == (4, 3)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"meta": {',
        b"[]",
        {"tensor_payload": []},
        {"meta": {}, "tensor_payload": []},
        {"meta": META},
        {"meta": {**META, "mode": "train"}, "tensor_payload": []},
        {"meta": META, "shape_payload": [{"tensorname": "b", "shape": []}]},
        {"meta": META, "tensor_payload": [{"tensorname": "b"}]},
        {"meta": {**META, "mode_step": math.inf}, "tensor_payload": []},
        {"meta": META, "tensor_payload": [{"tensorname": "b", "start_idx": math.inf, "length": 1}]},
    ],
)
def test_damage_names_file_and_step(content: Any) -> None:
    with pytest.raises(IndexReaderException, match=r"index/here\.json.*step 4"):
        parse(content)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("index/000000001/000000001234_worker_0.json", (1234, "worker_0")),
        (
            "index/000000000/000000000002__job-worker_replica-0_device-GPU-1.json",
            (2, "/job:worker/replica:0/device:GPU:1"),
        ),
        ("a__b/index/000000000/000000000002_algo-1.json", (2, "algo-1")),
        ("index/000000000/000000000002_worker_0.json.tmp", None),
        ("index/000000000/notes.json", None),
    ],
)
def test_names(name: str, expected: tuple[int, str] | None) -> None:
    assert parse_index_name(name) == expected


class CountingFiles(LocalRunFiles):
    """Notes which index files were read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.read_names: list[str] = []
        self.starts: list[str] = []

    def read(self, names: Any) -> list[bytes]:
        self.read_names += names
        return super().read(names)

    def list_index_files(self, start_after: str) -> tuple[list[str], bool]:
        self.starts.append(start_after)
        return super().list_index_files(start_after)


def read_steps(reader: IndexFinder, awaited: int | None = None) -> list[int]:
    return [found.step for found in reader.find_new(awaited)[0]]


def test_finds_each_file_once(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    files = CountingFiles(tmp_path)
    reader = IndexFinder(files, None)
    run.write_steps("a", {0: 1.0, 999: 1.0, 1000: 1.0})
    assert read_steps(reader) == [0, 999, 1000]
    run.write_steps("a", {1001: 1.0})
    assert read_steps(reader) == [1001]
    assert read_steps(reader) == []
    assert files.read_names == []


def test_looks_back_only_a_little_and_finds_late_files(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    files = CountingFiles(tmp_path)
    reader = IndexFinder(files, None)
    run.write_steps("a", dict.fromkeys(range(0, 200, 2), 1.0))
    assert len(read_steps(reader)) == 100
    run.write_steps("a", {197: 1.0, 5: 1.0})
    assert read_steps(reader) == [197]
    assert files.starts[-1].endswith("000000000136_worker_0.json")
    # A worker that is awaited at an old step makes the listing start there.
    assert read_steps(reader, awaited=4) == [5]


def test_range(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("a", dict.fromkeys(range(10), 1.0))
    assert read_steps(IndexFinder(LocalRunFiles(tmp_path), (2, 5))) == [2, 3, 4]
    assert read_steps(IndexFinder(LocalRunFiles(tmp_path), (8, None))) == [8, 9]


def test_read_index_files_cache() -> None:
    cache = ReadIndexFilesCache()
    cache.cache_limit = 3
    for number in range(4):
        assert cache.has_not_read(f"index/{number}")
        cache.add(f"index/{number}", None)
    cache.add("index/4", "index/2")
    assert cache.lookup_set == {"index/2", "index/3", "index/4"}
    cache.add("index/5", "index/4")
    assert len(cache.lookup_set) == 4, "as many as the limit are all kept"
    assert ReadIndexFilesCache().cache_limit == 1000


def test_a_cache_below_its_limit_keeps_what_is_before_the_token() -> None:
    cache = ReadIndexFilesCache()
    cache.add("index/0", None)
    cache.add("index/1", "index/1")
    assert cache.lookup_set == {"index/0", "index/1"}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", "s3"])
def test_local_and_s3_index_reader(place: str, tmp_path: Path, storage: Storage) -> None:
    path = str(tmp_path) if place == "folder" else "s3://runs/job"
    RunMaker(path).write_steps("a", {0: 1.5, 1: 2.5, 2: 3.5})
    reader = LocalIndexReader(path) if place == "folder" else S3IndexReader(path)
    names = reader.list_index_files()
    assert len(names) == 3
    assert reader.list_index_files(names[1]) == names[2:]
    assert [index.step for index in reader.read_index_files(range_steps=(1, None))] == [1, 2]
    assert [index.step for index in reader.read_index_files(range_steps=(None, 2))] == [0, 1]
    assert reader.load_tensor_data_from_index_files(range_steps=(1, 2))[0]["a"].keys() == {1}
    everything, token = reader.load_tensor_data_from_index_files()
    assert everything["a"].keys() == {0, 1, 2}
    assert token == names[2]
    places, token = reader.load_tensor_data_from_index_files(names[0])
    assert token == names[2]
    assert places["a"].keys() == {1, 2}
    assert reader.fetch_tensor_value(places["a"][2]["worker_0"]).tolist() == [3.5]
    for later in (token, "index/999999999"):
        assert reader.load_tensor_data_from_index_files(later) == ({}, later)


def test_a_damaged_file_is_named_with_its_folder(tmp_path: Path) -> None:
    RunMaker(tmp_path).write_steps("a", {0: 1.5})
    (damaged,) = tmp_path.glob("index/*/*.json")
    damaged.write_text("{")
    with pytest.raises(IndexReaderException, match=re.escape(str(damaged))):
        LocalIndexReader(str(tmp_path)).read_index_files()
