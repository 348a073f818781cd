import json
import mmap
from pathlib import Path

import numpy as np
import pytest

from smdebug.exceptions import IndexReaderException, SMDebugValueError
from smdebug.format.tensor_location import TensorLocation
from smdebug.mode_keys import ModeKeys
from smdebug.reading.index_files import parse_index
from smdebug.reading.reader import FileReader
from smdebug.reading.records.decoder import read_tensor
from smdebug.reading.run_files import LocalRunFiles
from tests.unit.smdebug.runs import RunMaker

EVENT = "events/000000000003/000000000003_worker_0.tfevents"
INDEX = "index/000000000/000000000003_worker_0.json"


def write(folder: Path, **tensors: object) -> dict[str, TensorLocation]:
    RunMaker(folder).write_step(3, tensors)
    index = parse_index((folder / INDEX).read_bytes(), 3, "worker_0", INDEX)
    return {location.tensorname: location for location in index.tensors}


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "uint64", "complex64", "bool", "int64"])
def test_dtypes_come_back_as_they_were(tmp_path: Path, dtype: str) -> None:
    written = np.array([[0, 1, 2], [3, 4, 100]]).astype(dtype)
    read = read_tensor(LocalRunFiles(tmp_path), write(tmp_path, t=written)["t"])
    assert read.dtype == written.dtype
    np.testing.assert_array_equal(read, written)


@pytest.mark.parametrize("size", [0, 1, 100, 300_000])
def test_array_belongs_to_the_caller(tmp_path: Path, size: int) -> None:
    locations = write(tmp_path, before="x", t=np.arange(size, dtype=np.float64))
    files = LocalRunFiles(tmp_path)
    read = read_tensor(files, locations["t"])
    assert read.flags.writeable
    assert read.flags.aligned
    read[...] = -1
    np.testing.assert_array_equal(read_tensor(files, locations["t"]), np.arange(size))
    assert read_tensor(files, locations["before"]).tolist() == ["x"]


def test_large_values_are_mapped_and_not_copied(tmp_path: Path) -> None:
    """Our files hold them aligned; what is written into such an array never reaches the file."""
    value = np.arange(300_000, dtype=np.float64)
    locations = write(tmp_path, a="odd", first=value, b=1.0, second=value + 1)
    content = (tmp_path / EVENT).read_bytes()
    files = LocalRunFiles(tmp_path)
    for name, expected in (("first", value), ("second", value + 1)):
        read = read_tensor(files, locations[name])
        assert isinstance(read.base, mmap.mmap)
        assert read.ctypes.data % 64 == 0
        np.testing.assert_array_equal(read, expected)
        read[:] = -1
    assert (tmp_path / EVENT).read_bytes() == content


@pytest.mark.parametrize("flipped", [0, 5, 30, -1])
def test_one_changed_byte_is_noticed(tmp_path: Path, flipped: int) -> None:
    locations = write(tmp_path, first=np.ones(50), second=np.ones(50))
    damaged = locations["second"]
    content = bytearray((tmp_path / EVENT).read_bytes())
    at = damaged.start_idx + (flipped if flipped >= 0 else damaged.length - 5)
    content[at] ^= 1
    (tmp_path / EVENT).write_bytes(content)
    files = LocalRunFiles(tmp_path)
    with pytest.raises(IndexReaderException, match=rf"{EVENT}.*byte {damaged.start_idx}"):
        read_tensor(files, damaged)
    assert read_tensor(files, locations["first"]).sum() == 50


@pytest.mark.parametrize("kept", [0, 3, 400])
def test_cut_file(tmp_path: Path, kept: int) -> None:
    locations = write(tmp_path, t=np.ones(50_000))
    with (tmp_path / EVENT).open("r+b") as file:
        file.truncate(kept)
    with pytest.raises(IndexReaderException, match=rf"{EVENT}.*ends at byte"):
        read_tensor(LocalRunFiles(tmp_path), locations["t"])


def test_index_that_names_another_record(tmp_path: Path) -> None:
    write(tmp_path, a=1.0, b=2.0)
    path = tmp_path / INDEX
    index = json.loads(path.read_text())
    first, second = index["tensor_payload"]
    first["tensorname"], second["tensorname"] = "b", "a"
    location = parse_index(json.dumps(index).encode(), 3, "worker_0", INDEX).tensors[0]
    with pytest.raises(IndexReaderException, match="it holds a instead of b"):
        read_tensor(LocalRunFiles(tmp_path), location)


def test_missing_file(tmp_path: Path) -> None:
    location = write(tmp_path, t=1.0)["t"]
    (tmp_path / EVENT).unlink()
    with pytest.raises(FileNotFoundError):
        read_tensor(LocalRunFiles(tmp_path), location)


def test_whole_file(tmp_path: Path) -> None:
    write(tmp_path, a=np.arange(3), b="text")
    tensors = list(FileReader(tmp_path / EVENT).read_tensors())
    assert [(name, step, value.tolist()) for name, step, value, *_ in tensors] == [
        ("a", 3, [0, 1, 2]),
        ("b", 3, ["text"]),
    ]
    assert tensors[0][3] is ModeKeys.GLOBAL
    with pytest.raises(SMDebugValueError, match="does not match its checksum"):
        list(FileReader(tmp_path / EVENT).read_tensors(check="full"))
    assert len(list(FileReader(tmp_path / EVENT).read_tensors(check="no"))) == 2
