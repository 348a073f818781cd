"""Tests of records against the bytes of smdebug 1.0.34, and of damaged ones."""

import json
import struct
from contextlib import suppress
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.format.arguments import get_content
from smdebug.format.protobuf import decode_fields, encode_bytes, encode_double, encode_int, encode_varint
from smdebug.format.tfevent.data_types import DATA_TYPE_NUMBERS, get_storable_array
from smdebug.format.tfevent.decoding import decode_event, read_events
from smdebug.format.tfevent.encoding import encode_event_fields, encode_heads, encode_metadata, encode_string_heads
from smdebug.format.tfevent.framing import CONSTANT_FOOTER, encode_record, get_footer, masked_crc32c, read_record
from smdebug.mode_keys import ModeKeys

RUNS = ["pt_save_all", "pt_modes", "pt_fp16", "writer_dtypes", "tf_keras_fit", "xgb_all", "pt_reductions_only"]


def encode(name: str, array: np.ndarray, step: int, mode: ModeKeys, mode_step: int, wall_time: float) -> bytes:
    event, metadata = encode_event_fields(wall_time, step), encode_metadata(mode, mode_step)
    if array.dtype.kind == "U":
        content = b""
        heads = encode_string_heads(name, array.tolist(), len(event), len(metadata))
    else:
        content = array.tobytes()
        data_type = DATA_TYPE_NUMBERS[array.dtype.name]
        heads = encode_heads(name, data_type, array.shape, len(content), len(event), len(metadata))
    record = b"".join((heads.frame, event, heads.value, metadata, heads.tensor, content, CONSTANT_FOOTER))
    assert len(record) == heads.length
    return record


@pytest.mark.parametrize("case", RUNS)
def test_records_of_upstream_are_read_and_written_again(case: str, recorded_runs: Path) -> None:
    count = 0
    for path in (recorded_runs / case / "run").glob("index/*/*.json"):
        index = json.loads(path.read_text())
        data = (recorded_runs / case / "run" / index["meta"]["event_file_name"]).read_bytes()
        for entry in index["tensor_payload"]:
            payload, end = read_record(data, entry["start_idx"])
            assert end == entry["start_idx"] + entry["length"]
            assert get_footer(data, end) == 0x062DC0B3
            event = decode_event(payload)
            (value,) = event.values
            assert value.tag == entry["tensorname"]
            assert value.tensor is not None
            assert value.mode is not None
            assert value.mode_step is not None
            record = encode(value.tag, value.tensor, event.step, value.mode, value.mode_step, event.wall_time)
            # The same fields in another order.
            assert len(record) == entry["length"]
            (again,) = decode_event(read_record(record)[0]).values
            assert again.tensor is not None
            assert (again.mode, again.mode_step, again.tensor.dtype) == (
                value.mode,
                value.mode_step,
                value.tensor.dtype,
            )
            assert again.tensor.shape == value.tensor.shape
            assert again.tensor.tobytes() == value.tensor.tobytes()
            count += 1
    assert count > 5


@pytest.mark.slow
@settings(max_examples=30)
@given(
    array=st_numpy.arrays(
        st.sampled_from(["float16", "float32", "float64", "int32", "int64", "uint8", "bool", "complex128"]),
        st_numpy.array_shapes(min_dims=0, min_side=0),
    ),
    name=st.text(st.characters(codec="utf-8"), max_size=20),
    step=st.integers(0, 2**62),
    mode=st.sampled_from(ModeKeys),
    mode_step=st.integers(-1, 2**62),
)
def test_any_tensor_comes_back(array: np.ndarray, name: str, step: int, mode: ModeKeys, mode_step: int) -> None:
    (event,) = read_events(encode(name, array, step, mode, mode_step, 12.5))
    (value,) = event.values
    assert (event.step, event.wall_time) == (step, 12.5)
    assert (value.tag, value.mode, value.mode_step) == (name, mode, mode_step)
    assert value.tensor is not None
    assert (value.tensor.dtype, value.tensor.shape) == (array.dtype, array.shape)
    assert value.tensor.tobytes() == array.tobytes()


def test_every_cut_is_noticed() -> None:
    record = encode("name", np.arange(3.0), 1, ModeKeys.TRAIN, 0, 1.0)
    for size in range(len(record)):
        with pytest.raises(SMDebugValueError, match="ends at byte"):
            read_record(record[:size])


def test_a_damaged_length_is_noticed() -> None:
    record = bytearray(encode("name", np.arange(3.0), 1, ModeKeys.TRAIN, 0, 1.0))
    record[0] ^= 1
    with pytest.raises(SMDebugValueError, match="damaged"):
        read_record(record)


@given(st.binary(max_size=60))
def test_any_payload_is_read_or_refused(payload: bytes) -> None:
    values = []
    with suppress(SMDebugValueError):
        values = decode_event(payload).values
    assert all(value.tensor is None or isinstance(value.tensor, np.ndarray) for value in values)


def test_tensorboard_records_have_their_own_checksum() -> None:
    record = encode_record(b"payload", real_checksum=True)
    assert struct.unpack("<I", record[-4:]) == (masked_crc32c(b"payload"),)
    assert encode_record(b"payload")[-4:] == CONSTANT_FOOTER
    for size in range(20):
        record = encode_record(bytes(size), real_checksum=True)
        assert read_record(record) == (memoryview(bytes(size)), len(record))


def test_the_mode_is_found_behind_what_else_describes_a_tensor() -> None:
    described = encode_bytes(2, b"a name to show")
    for mode in ModeKeys:
        content = encode_metadata(mode, 7)
        ((_, plugins),) = decode_fields(content)
        assert not isinstance(plugins, int)
        value = encode_bytes(1, b"t") + encode_bytes(9, described + bytes(plugins))
        (found,) = decode_event(encode_bytes(5, encode_bytes(1, value))).values
        assert (found.mode, found.mode_step) == (mode, 7)


@pytest.mark.parametrize(
    ("array", "stored", "true_dtype"),
    [
        (np.array([-1], "int8"), "int32", "int8"),
        (np.array([2**32 - 1], "uint32"), "int64", "uint32"),
        (np.array([2**63], "uint64"), "uint64", None),
        (np.array([1j], "complex64"), "complex128", "complex64"),
        (np.array([1.0], ">f4"), "float32", None),
        (np.array([[1, 2], [3, 4]], "int8").T, "int32", "int8"),
        (np.array(-3, "int8"), "int32", "int8"),
        (np.array([[1.5], [2]], ml_dtypes.bfloat16), "float32", "bfloat16"),
        (np.array(1.5, ml_dtypes.float8_e5m2), "float32", "float8_e5m2"),
        (np.array(3.0), "float64", None),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), "float64", None),
    ],
)
def test_storable_arrays(array: np.ndarray, stored: str, true_dtype: str | None) -> None:
    found, name = get_storable_array(array)
    assert (found.dtype.name, name, found.shape) == (stored, true_dtype, array.shape)
    assert found.flags.c_contiguous
    assert len(get_content(found)) == found.nbytes
    np.testing.assert_array_equal(found, array.astype(found.dtype))


def test_dates_cannot_be_saved() -> None:
    with pytest.raises(SMDebugTypeError, match="datetime64"):
        get_storable_array(np.array(["2020-01-01"], "datetime64[D]"))


def encode_dims(*sizes: int) -> bytes:
    return encode_bytes(2, b"".join(encode_bytes(2, encode_int(1, size)) for size in sizes))


def decode_tensor(content: bytes) -> np.ndarray:
    event = decode_event(encode_bytes(5, encode_bytes(1, encode_bytes(1, b"t") + encode_bytes(8, content))))
    tensor = event.values[0].tensor
    assert tensor is not None
    return tensor


@pytest.mark.parametrize(
    ("data_type", "dtype", "numbers"),
    [
        (1, "float32", encode_bytes(5, np.array([1.5, -2], "<f4").tobytes())),
        (2, "float64", encode_bytes(6, np.array([1.5], "<f8").tobytes()) + encode_double(6, -2.0)),
        (3, "int32", encode_bytes(7, encode_varint(7) + encode_varint(-2))),
        (9, "int64", encode_int(10, 7) + encode_int(10, -2)),
        (10, "bool", encode_bytes(11, b"\x01\x00")),
        (8, "complex64", encode_bytes(9, np.array([1 + 2j, 3], "<c8").tobytes())),
        (18, "complex128", encode_bytes(12, np.array([1 + 2j, 3], "<c16").tobytes())),
    ],
)
def test_lists_of_numbers_of_other_writers_are_read(data_type: int, dtype: str, numbers: bytes) -> None:
    expected = {"f": [1.5, -2], "i": [7, -2], "b": [True, False], "c": [1 + 2j, 3]}[np.dtype(dtype).kind]
    tensor = decode_tensor(encode_int(1, data_type) + encode_dims(2, 1) + numbers)
    assert (tensor.dtype, tensor.shape, tensor.ravel().tolist()) == (np.dtype(dtype), (2, 1), expected)


def test_text_of_other_writers_is_read() -> None:
    texts = encode_bytes(8, b"a") + encode_bytes(8, "é".encode())
    assert decode_tensor(encode_int(1, 7) + encode_dims(2) + texts).tolist() == ["a", "é"]
    assert decode_tensor(encode_int(1, 7) + encode_dims(0)).shape == (0,)


def test_a_reference_has_the_type_that_it_refers_to() -> None:
    numbers = encode_bytes(4, np.array([1.5], "<f4").tobytes())
    assert decode_tensor(encode_int(1, 101) + encode_dims(1) + numbers).dtype == np.float32


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (encode_int(1, 1) + encode_dims(3) + encode_bytes(4, b"\0" * 8), r"does not fill its shape \(3,\)"),
        (encode_int(1, 1) + encode_dims(2) + encode_bytes(4, b"\0" * 7), r"does not fill its shape \(2,\)"),
        (encode_int(1, 14) + encode_dims(1) + encode_bytes(4, b"\0\0"), "data type 14 cannot be read"),
    ],
)
def test_tensors_that_cannot_be_read_are_refused(content: bytes, said: str) -> None:
    with pytest.raises(SMDebugValueError, match=said):
        decode_tensor(content)
