from typing import Any

import pytest
from botocore.exceptions import IncompleteReadError

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.storage.s3 import S3Objects, is_s3

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


def test_broken_connections_are_tried_again() -> None:
    client = RangeClient(breaks=2)
    assert S3Objects("s3://b/run", client).get("/e", 0, 10) == CONTENT[:10]
    assert len(client.ranges) == 3
    with pytest.raises(SMDebugError, match=r"Could not read s3://b/run/e.*AWS_ENDPOINT_URL"):
        S3Objects("s3://b/run", RangeClient(breaks=100)).get("/e", 0, 10)
