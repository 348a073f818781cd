"""Tests of channels in FastFile mode: no copies, and no writes to S3's files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_runtime.process.namespace_grant import NamespaceGrant, probe_namespaces
from emulator.moto_services.s3.backend import open_s3
from tests.integration.emulator.jobs.job_harness import ACCOUNT, REGION, JobHarness, open_job_harness

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
def harness(tmp_path: Path) -> Iterator[JobHarness]:
    """A harness whose S3 is on the disk, as an emulator's is."""
    from moto.logs.models import logs_backends

    logs_backends[ACCOUNT][REGION].groups.clear()
    s3 = open_s3(tmp_path / "state" / "s3")
    try:
        with open_job_harness(tmp_path) as opened:
            yield opened
    finally:
        s3.close()


def run(harness: JobHarness, **members: Any) -> tuple[list[str], dict[str, Any], list[str]]:
    """Run a job of two channels, and return what its log says before what the script found, and that."""
    for key in ("d/a.csv", "d/sub/b.csv"):
        harness.s3.put(harness.bucket, key, key.encode())
    harness.s3.put(
        harness.bucket, "twice", json.dumps([{"prefix": f"s3://{harness.bucket}/d/"}, "a.csv", "a.csv"]).encode()
    )
    channels = [
        {
            "ChannelName": name,
            "InputMode": mode,
            "DataSource": {"S3DataSource": {"S3DataType": kind, "S3Uri": f"s3://{harness.bucket}/{key}"}},
        }
        for name, mode, kind, key in (
            ("fast", "FastFile", "S3Prefix", "d/"),
            ("listed", "FastFile", "ManifestFile", "twice"),
            ("plain", "File", "S3Prefix", "d/"),
        )
    ]
    done = harness.run(harness.request(script=SCRIPT, InputDataConfig=channels, **members))
    assert done["TrainingJobStatus"] == "Completed", done
    *notes, printed = harness.log(LOG, "job/")
    assert [harness.s3.get(harness.bucket, key) for key in ("d/a.csv", "d/sub/b.csv")] == [b"d/a.csv", b"d/sub/b.csv"]
    return notes, *json.loads(printed)


def test_files_are_those_that_s3_has_and_cannot_be_written_to(harness: JobHarness) -> None:
    if not probe_namespaces().mounts:
        pytest.skip("the kernel grants no namespaces")
    notes, found, refused = run(harness)
    assert notes == []
    assert found == {
        "fast/a.csv": ["d/a.csv", 3],
        "fast/sub/b.csv": ["d/sub/b.csv", 2],
        "listed/a.csv": ["d/a.csv", 3],
        "plain/a.csv": ["d/a.csv", 1],
        "plain/sub/b.csv": ["d/sub/b.csv", 1],
    }
    assert refused == ["Read-only file system"] * 2


def test_without_mounts_they_are_copies(harness: JobHarness) -> None:
    harness.runtime.grant = NamespaceGrant(mounts=False, network=False, refusal="not here")
    (note,), found, refused = run(harness)
    assert "FastFile channels (fast, listed) are downloaded" in note
    assert note.endswith("there are no mounts.")
    assert {links for _, links in found.values()} == {1}
    assert refused == []


def test_without_second_names_they_are_copies(harness: JobHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("pathlib.Path.hardlink_to", refuse)
    (note,), found, _ = run(harness)
    assert note.endswith("no second names of files.")
    assert {links for _, links in found.values()} == {1}
