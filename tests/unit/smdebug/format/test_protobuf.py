"""Tests of protobuf's wire format against bytes of its documentation."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.exceptions import SMDebugValueError
from smdebug.format.protobuf import (
    as_bytes,
    decode_double,
    decode_fields,
    decode_float,
    decode_signed,
    decode_text,
    decode_varints,
    encode_bytes,
    encode_double,
    encode_doubles,
    encode_float,
    encode_int,
    encode_varint,
)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (150, b"\x96\x01"),
        (-1, b"\xff" * 9 + b"\x01"),
        (-2, b"\xfe" + b"\xff" * 8 + b"\x01"),
        (2**63 - 1, b"\xff" * 8 + b"\x7f"),
    ],
)
def test_numbers_are_encoded_as_documented(number: int, encoded: bytes) -> None:
    assert encode_varint(number) == encoded
    assert decode_varints(memoryview(encoded)) == [number]
    if number:
        assert encode_int(1, number) == b"\x08" + encoded


def test_a_message_is_encoded_as_documented() -> None:
    assert encode_int(1, 0) == b""
    assert encode_bytes(2, b"testing") == b"\x12\x07testing"
    assert encode_double(3, 1.0) == b"\x19\0\0\0\0\0\0\xf0\x3f"
    assert encode_float(4, 1.0) == b"\x25\0\0\x80\x3f"
    assert encode_doubles(20, [1.0, 1.0]) == b"\xa2\x01\x10" + b"\0\0\0\0\0\0\xf0\x3f" * 2
    message = encode_int(1, 150) + encode_bytes(2, b"") + encode_double(3, 0.5) + encode_float(20, 0.25)
    fields = dict(decode_fields(message))
    assert list(fields) == [1, 2, 3, 20]
    assert fields[1] == 150
    assert decode_text(fields[2]) == ""
    assert (decode_double(fields[3]), decode_float(fields[20])) == (0.5, 0.25)


@pytest.mark.parametrize("number", [1e39, -1e39])
def test_what_single_precision_cannot_hold_is_infinite(number: float) -> None:
    ((_, value),) = decode_fields(encode_float(1, number))
    assert decode_float(value) == math.copysign(math.inf, number)


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_number_comes_back(number: int) -> None:
    fields = list(decode_fields(encode_int(9, number)))
    assert [(field, decode_signed(value)) for field, value in fields] == ([(9, number)] if number else [])


def test_lists_of_numbers_are_read_packed_or_not() -> None:
    packed = encode_varint(3) + encode_varint(-1) + encode_varint(300)
    assert decode_varints(memoryview(packed)) == [3, -1, 300]
    assert decode_varints(2**64 - 1) == [-1]
    assert decode_varints(memoryview(b"")) == []


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"\x0b", "field 1 has wire type 3"),
        (b"\x12\x07testin", "field 2 needs 1 more bytes"),
        (b"\x19\0\0\0\0\0\0", "field 3 needs 2 more bytes"),
        (b"\x25\0\0\0", "field 4 needs 1 more bytes"),
        (b"\x08", "inside a number"),
        (b"\x08\x96", "inside a number"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "inside a number"),
    ],
)
def test_damage_to_a_message_is_reported(message: bytes, said: str) -> None:
    with pytest.raises(SMDebugValueError, match=said):
        list(decode_fields(message))


def test_a_field_of_another_kind_is_damage() -> None:
    for decode in (as_bytes, decode_text, decode_double, decode_float):
        with pytest.raises(SMDebugValueError, match="expected bytes, found a number"):
            decode(7)
    with pytest.raises(SMDebugValueError, match="expected a number, found bytes"):
        decode_signed(memoryview(b"7"))
    with pytest.raises(SMDebugValueError, match="a number of 4 bytes"):
        decode_double(memoryview(b"1234"))
    with pytest.raises(SMDebugValueError, match="a number of 8 bytes"):
        decode_float(memoryview(b"12345678"))
    with pytest.raises(SMDebugValueError, match="damaged"):
        decode_text(memoryview(b"\xff"))
