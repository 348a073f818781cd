"""Tests of the decoding of the engine's log stream into lines."""

import io

import pytest

from container_runtime.docker.log import assemble_lines, parse_timestamp, read_frames
from container_runtime.runtime import MAX_LINE_BYTES, LogLine

FIRST = b"2025-01-01T00:00:00.5Z "
LATER = b"2025-01-01T00:00:01.123456789Z "
FIRST_MS = 1_735_689_600_500


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (b"2025-01-01T00:00:00Z text", "1735689600.000000000"),
        (b"2025-01-01T00:00:00.5Z", "1735689600.500000000"),
        (b"1970-01-01T00:00:01.000000001Z", "1.000000001"),
    ],
)
def test_time_stamp(stamp: bytes, expected: str) -> None:
    assert parse_timestamp(stamp) == expected


def test_pieces_of_one_line_are_joined_though_the_other_stream_speaks_between() -> None:
    frames = [(1, FIRST + b"ab"), (2, LATER + b"err\n"), (1, LATER + b"cd\n"), (1, LATER + b"last")]
    assert [line.text for line in assemble_lines(iter(frames))] == ["err", "abcd", "last"]
    assert next(assemble_lines(iter([frames[0], frames[2]]))) == LogLine(FIRST_MS, "abcd")


def test_a_line_without_end_is_cut() -> None:
    piece = FIRST + b"x" * (MAX_LINE_BYTES // 2)
    lines = list(assemble_lines(iter([(1, piece)] * 3)))
    assert [len(line.text) for line in lines] == [MAX_LINE_BYTES, MAX_LINE_BYTES // 2]


def test_frames_are_read_until_the_stream_ends_even_within_one() -> None:
    stream = b"\x01\0\0\0\0\0\0\x02ab" + b"\x02\0\0\0\0\0\0\x01c"
    assert list(read_frames(io.BytesIO(stream))) == [(1, b"ab"), (2, b"c")]
    assert list(read_frames(io.BytesIO(stream + b"\x01\0\0"))) == [(1, b"ab"), (2, b"c")]
