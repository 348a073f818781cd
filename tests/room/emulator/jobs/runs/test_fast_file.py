"""Channels in FastFile mode: no byte is copied, and nothing that S3 has can be written to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from container_runtime.process.namespace_grant import NamespaceGrant, probe_namespaces
from emulator.moto_services.s3.backend import open_s3
from tests.room.emulator.jobs.job_room import ACCOUNT, REGION, open_room

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.room.emulator.jobs.job_room import Room

LOG = "/aws/sagemaker/TrainingJobs"
SCRIPT = """
data = ml / "input/data"
found = {str(path.relative_to(data)): [path.read_text(), path.stat().st_nlink] for path in data.rglob("*.csv")}
refused = []
for name in ("fast/a.csv", "fast/new"):
    try:
        open(data / name, "r+" if name.endswith("csv") else "x").write("changed")
    except OSError as error:
        refused.append(error.strerror)
print(json.dumps([found, refused]))
"""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A room whose S3 is on the disk, as an emulator's is."""
    from moto.logs.models import logs_backends

    logs_backends[ACCOUNT][REGION].groups.clear()
    s3 = open_s3(tmp_path / "state" / "s3")
    try:
        with open_room(tmp_path) as opened:
            yield opened
    finally:
        s3.close()


def run(room: Room, **members: Any) -> tuple[list[str], dict[str, Any], list[str]]:
    """Run a job of two channels, and return what its log says before what the script found, and that."""
    for key in ("d/a.csv", "d/sub/b.csv"):
        room.s3.put(room.bucket, key, key.encode())
    room.s3.put(room.bucket, "twice", json.dumps([{"prefix": f"s3://{room.bucket}/d/"}, "a.csv", "a.csv"]).encode())
    channels = [
        {
            "ChannelName": name,
            "InputMode": mode,
            "DataSource": {"S3DataSource": {"S3DataType": kind, "S3Uri": f"s3://{room.bucket}/{key}"}},
        }
        for name, mode, kind, key in (
            ("fast", "FastFile", "S3Prefix", "d/"),
            ("listed", "FastFile", "ManifestFile", "twice"),
            ("plain", "File", "S3Prefix", "d/"),
        )
    ]
    done = room.run(room.request(script=SCRIPT, InputDataConfig=channels, **members))
    assert done["TrainingJobStatus"] == "Completed", done
    *notes, printed = room.log(LOG, "job/")
    assert [room.s3.get(room.bucket, key) for key in ("d/a.csv", "d/sub/b.csv")] == [b"d/a.csv", b"d/sub/b.csv"]
    return notes, *json.loads(printed)


def test_files_are_those_that_s3_has_and_cannot_be_written_to(room: Room) -> None:
    if not probe_namespaces().mounts:
        pytest.skip("the kernel grants no namespaces")
    notes, found, refused = run(room)
    assert notes == []
    assert found == {
        "fast/a.csv": ["d/a.csv", 3],
        "fast/sub/b.csv": ["d/sub/b.csv", 2],
        "listed/a.csv": ["d/a.csv", 3],
        "plain/a.csv": ["d/a.csv", 1],
        "plain/sub/b.csv": ["d/sub/b.csv", 1],
    }
    assert refused == ["Read-only file system"] * 2


def test_without_mounts_they_are_copies(room: Room) -> None:
    room.runtime.grant = NamespaceGrant(mounts=False, network=False, refusal="not here")
    (note,), found, refused = run(room)
    assert "FastFile channels (fast, listed) are downloaded" in note
    assert note.endswith("there are no mounts.")
    assert {links for _, links in found.values()} == {1}
    assert refused == []


def test_without_second_names_they_are_copies(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("pathlib.Path.hardlink_to", refuse)
    (note,), found, _ = run(room)
    assert note.endswith("no second names of files.")
    assert {links for _, links in found.values()} == {1}
