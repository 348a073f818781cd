"""Channels in Pipe mode as data sets of TensorFlow."""

import importlib
import io
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from emulator.jobs.staging.pipes import wrap_record
from smdebug.absent_modules import SCRIPT_PACKAGES
from smdebug.script_packages.sagemaker_tensorflow.records import read_lines, read_tf_records
from tests.unit.smdebug.tensorflow.frameworks import tf

RECORDS = [b"one", b"", b"\x0a\x23\xd7\xce in a record", b"x" * 1000]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package as a script imports it."""
    monkeypatch.syspath_prepend(str(SCRIPT_PACKAGES))
    monkeypatch.delitem(sys.modules, "sagemaker_tensorflow", raising=False)
    return importlib.import_module("sagemaker_tensorflow")


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The /opt/ml of a job with a channel in Pipe mode and one in File mode."""
    for folder in ("input/config", "input/data"):
        (tmp_path / folder).mkdir(parents=True)
    modes = {"train": {"TrainingInputMode": "Pipe"}, "test": {"TrainingInputMode": "File"}}
    (tmp_path / "input/config/inputdataconfig.json").write_text(json.dumps(modes))
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", str(tmp_path))
    return tmp_path


def encode_tf_records(folder: Path) -> bytes:
    with tf.io.TFRecordWriter(str(folder / "records")) as writer:
        for record in RECORDS:
            writer.write(record)
    return (folder / "records").read_bytes()


def test_tf_records_are_what_tensorflow_writes(tmp_path: Path) -> None:
    assert list(read_tf_records(io.BytesIO(encode_tf_records(tmp_path)))) == RECORDS


def test_lines_are_without_their_ends() -> None:
    assert list(read_lines(io.BytesIO(b"a,1\r\nb\n\nlast"))) == [b"a,1", b"b", b"", b"last"]


@pytest.mark.parametrize(
    ("read", "content", "said"),
    [
        (read_tf_records, b"\x09", "ends within a record: 1 of 12 bytes"),
        (read_tf_records, b"\x09" + bytes(11) + b"cut", "ends within a record: 3 of 9 bytes"),
    ],
)
def test_damage_is_reported(read: Any, content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(read(io.BytesIO(content)))


def test_each_epoch_reads_the_next_pipe(job: Path, package: Any) -> None:
    def feed() -> None:
        for epoch in (0, 1):
            with (job / f"input/data/train_{epoch}").open("wb") as pipe:
                pipe.write(b"".join(wrap_record(b"%d %s" % (epoch, record)) for record in RECORDS))

    for epoch in (0, 1):
        os.mkfifo(job / f"input/data/train_{epoch}")
    feeder = threading.Thread(target=feed)
    feeder.start()
    data = package.PipeModeDataset(channel="train")
    found = [record.numpy() for record in data.repeat(2)]
    feeder.join()
    assert found == [b"%d %s" % (epoch, record) for epoch in (0, 1) for record in RECORDS]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"channel": "test"}, "no channel 'test' in Pipe mode"),
        ({"channel": "none"}, "no channel 'none' in Pipe mode"),
        ({"channel": "train", "record_format": "CSV"}, "use one of RecordIO, TFRecord, TextLine"),
    ],
)
def test_a_data_set_that_cannot_be_is_refused(job: Path, package: Any, options: dict[str, str], said: str) -> None:
    with pytest.raises(package.PipeModeDatasetException, match=said):
        package.PipeModeDataset(**options)
