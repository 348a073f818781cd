"""Tests of pipes that cannot be created."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from emulator.jobs.staging.hosts import Host
from emulator.jobs.staging.pipes import ChannelPipe, open_pipes
from emulator.moto_services.s3.objects import ObjectStore

# A folder in which not even root can create a pipe.
WITHOUT_PIPES = Path("/proc/self/task")


def _list_open_files() -> set[tuple[str, str]]:
    """List the numbers and targets. Files that an earlier test left to be collected may be closed at any time."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            found.add((descriptor.name, str(descriptor.readlink())))
    return found


def test_a_pipe_that_cannot_be_created_leaves_no_open_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data/"}
    channel = {"InputMode": "Pipe", "DataSource": {"S3DataSource": source}}
    request = {"InputDataConfig": [{"ChannelName": "first", **channel}, {"ChannelName": "second", **channel}]}
    host = Host("algo-1", "homogeneousCluster", None)
    store = ObjectStore("123456789012", "us-east-1")
    data = tmp_path / "opt-ml" / "input" / "data"
    data.mkdir(parents=True)
    before = _list_open_files()

    pipes: list[ChannelPipe] = []
    with pytest.raises(OSError, match=r"Operation not permitted|No such file|Permission denied"):
        pipes.extend(open_pipes(request, store, WITHOUT_PIPES, host, [host]))
    assert pipes == []
    assert _list_open_files() <= before

    mkfifo = os.mkfifo
    monkeypatch.setattr(
        os, "mkfifo", lambda name, *rest, **more: mkfifo(name if name == "first_0" else "", *rest, **more)
    )
    with pytest.raises(FileNotFoundError):
        pipes.extend(open_pipes(request, store, data, host, [host]))
    (first,) = pipes
    assert (data / "first_0").is_fifo()
    first.stop()
    assert _list_open_files() <= before
