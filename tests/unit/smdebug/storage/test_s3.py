from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import IncompleteReadError

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.storage.s3 import READ_AHEAD_BYTES, S3Objects, S3RunFiles, is_s3

CONTENT = bytes(range(256)) * 8192


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("s3://b/k/l", (True, "b", "k/l")),
        ("s3://b", (True, "b", "")),
        ("s3://b/", (True, "b", "")),
        ("/x", (False, "", "")),
    ],
)
def test_is_s3(path: str, parts: tuple[bool, str, str]) -> None:
    assert is_s3(path) == parts


@pytest.mark.parametrize("path", ["s3://", "s3:///key", "bucket/key", ""])
def test_path_without_a_bucket(path: str) -> None:
    with pytest.raises(SMDebugValueError, match="s3://bucket/prefix"):
        S3Objects(path, object())


class Body:
    def __init__(self, content: bytes, *, breaks: bool) -> None:
        self.content, self.breaks = content, breaks

    def read(self) -> bytes:
        if self.breaks:
            raise IncompleteReadError(actual_bytes=1, expected_bytes=2)
        return self.content


class RangeClient:
    """Serves ranges of one object; the first answers break off."""

    def __init__(self, breaks: int = 0) -> None:
        self.breaks = breaks
        self.ranges: list[tuple[int, int]] = []

    def get_object(self, **request: Any) -> dict[str, Any]:
        start, end = (int(part) for part in request["Range"].removeprefix("bytes=").split("-"))
        self.ranges.append((start, end))
        self.breaks -= 1
        return {"Body": Body(CONTENT[start : end + 1], breaks=self.breaks >= 0)}


def test_read_ahead_serves_what_follows() -> None:
    client = RangeClient()
    files = S3RunFiles("s3://b/run", client)
    for start in range(1000, READ_AHEAD_BYTES, 50_000):
        assert bytes(files.read_range("e", start, 100)) == CONTENT[start : start + 100]
    assert client.ranges == [(1000, 1000 + READ_AHEAD_BYTES - 1)]
    files.read_range("e", 0, 10)
    files.read_range("other", 1000, 10)
    assert len(client.ranges) == 3


def test_end_of_the_object_is_not_asked_for_again_as_something_else() -> None:
    files = S3RunFiles("s3://b/run", RangeClient())
    assert len(files.read_range("e", len(CONTENT) - 10, 100)) == 10


def test_kept_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smdebug.storage.s3._KEEP_BYTES", 2 * READ_AHEAD_BYTES)
    client = RangeClient()
    files = S3RunFiles("s3://b/run", client)
    for name in "abc":
        files.read_range(name, 0, 10)
    files.read_range("c", 10, 10)
    assert len(client.ranges) == 3
    files.read_range("a", 0, 10)
    assert len(client.ranges) == 4


def test_broken_connections_are_tried_again() -> None:
    client = RangeClient(breaks=2)
    assert S3Objects("s3://b/run", client).get("/e", 0, 10) == CONTENT[:10]
    assert len(client.ranges) == 3
    with pytest.raises(SMDebugError, match=r"Could not read s3://b/run/e.*AWS_ENDPOINT_URL"):
        S3Objects("s3://b/run", RangeClient(breaks=100)).get("/e", 0, 10)
