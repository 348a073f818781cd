"""Tests of the emulator's memory: it does not grow with the data sent through."""

import hashlib
import re
import time
from pathlib import Path
from typing import Any

from boto3.s3.transfer import TransferConfig

from tests.running_emulator import RunningEmulator

MIB = 1024**2
SIZE = 80 * MIB
MOST = 100 * MIB
PARTS = TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=16 * MIB)


def read_memory(pid: int, line: str) -> int:
    found = re.search(rf"{line}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def read_digest(s3: Any, key: str, **asked: str) -> tuple[str, int]:
    digest, size = hashlib.md5(usedforsecurity=False), 0
    for piece in s3.get_object(Bucket="large", Key=key, **asked)["Body"].iter_chunks(MIB):
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest(), size


def test_large_objects_and_many_log_lines_take_no_memory(tmp_path: Path) -> None:
    block = bytes(range(256)) * 4099
    with (tmp_path / "large").open("wb") as target:
        while target.tell() < SIZE:
            target.write(block[: SIZE - target.tell()])
    with (tmp_path / "large").open("rb") as source:
        expected = hashlib.file_digest(source, "md5").hexdigest(), SIZE
    with RunningEmulator(tmp_path / "state", runtime="process", warm=False) as emulator:
        s3, logs = emulator.client("s3"), emulator.client("logs")
        s3.create_bucket(Bucket="large")
        logs.create_log_group(logGroupName="g")
        logs.create_log_stream(logGroupName="g", logStreamName="s")
        s3.put_object(Bucket="large", Key="small", Body=b"small")
        before = read_memory(emulator.process.pid, "VmRSS")
        with (tmp_path / "large").open("rb") as body:
            s3.put_object(Bucket="large", Key="one", Body=body)
        s3.upload_file(str(tmp_path / "large"), "large", "parts", Config=PARTS)
        s3.copy({"Bucket": "large", "Key": "parts"}, "large", "copied", Config=PARTS)
        s3.copy_object(Bucket="large", Key="whole", CopySource="large/parts")
        for key in ("one", "parts", "copied", "whole"):
            assert read_digest(s3, key) == expected
        assert read_digest(s3, "one", Range=f"bytes={SIZE // 2}-{SIZE // 2 + 2}")[1] == 3
        now = int(time.time() * 1000)
        for _ in range(20):
            lines = [{"timestamp": now, "message": "x" * 1000}] * 900
            logs.put_log_events(logGroupName="g", logStreamName="s", logEvents=lines)
        assert logs.filter_log_events(logGroupName="g", filterPattern="nowhere")["events"] == []
        assert read_memory(emulator.process.pid, "VmHWM") - before < MOST
