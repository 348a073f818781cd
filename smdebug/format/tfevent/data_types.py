"""Tensor data types: numbers in records, and types that smdebug can read."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

DATA_TYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
DATA_TYPE_NUMBERS = {name: number for number, name in DATA_TYPES.items()}
STRING_DATA_TYPE = 7
# Types that smdebug 1.0.34 reads wrongly or not at all are widened without loss to one that it reads. A tensor of
# uint64 with numbers beyond int64 is not widened; smdebug cannot read it.
WIDENED = {
    "int8": "int32",
    "int16": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "uint64": "int64",
    "complex64": "complex128",
}


@lru_cache(maxsize=256)
def get_dtype_name(dtype: np.dtype[Any]) -> str:
    """Return `dtype.name`, cached because numpy builds it on each access."""
    return dtype.name


@lru_cache(maxsize=256)
def _is_foreign(dtype: np.dtype[Any]) -> bool:
    return dtype.name.startswith(("bfloat16", "float8"))


@lru_cache(maxsize=256)
def get_number_of_plain(dtype: np.dtype[Any]) -> int | None:
    """Return the number of a type whose C-ordered arrays are stored without conversion; None for other types."""
    return None if dtype.name in WIDENED or not dtype.isnative else DATA_TYPE_NUMBERS.get(dtype.name)


def get_plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in a type that numpy has: bfloat16 and the float8 types of ml_dtypes become float32."""
    return array.astype(np.float32) if _is_foreign(array.dtype) else array


def get_storable_array(array: NDArray[Any]) -> tuple[NDArray[Any], str | None]:
    """Return a C-ordered little-endian array of a storable type, and the original dtype if it was widened.

    Raises:
        SMDebugTypeError: the array is neither numeric nor boolean.
    """
    name = get_dtype_name(array.dtype)
    plain = get_plain_array(array)
    if plain is not array:
        return np.ascontiguousarray(plain).reshape(array.shape), name
    target = WIDENED.get(name)
    if target and not (name == "uint64" and array.size and int(array.max()) > np.iinfo(np.int64).max):
        # Converting a signalling NaN makes numpy warn, which does not help the user.
        with np.errstate(invalid="ignore"):
            return np.ascontiguousarray(array, dtype=target).reshape(array.shape), name
    if name not in DATA_TYPE_NUMBERS:
        raise SMDebugTypeError(f"A tensor of dtype {name} cannot be saved: convert it to a number type first.")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # ascontiguousarray adds a dimension to a scalar.
    return np.ascontiguousarray(array).reshape(array.shape), None


def get_dtype(data_type: int) -> np.dtype[Any]:
    """Return numpy's type of a DataType number; SMDebugValueError if numpy has none."""
    if data_type not in DATA_TYPES:
        raise SMDebugValueError(f"A tensor of data type {data_type} cannot be read: numpy has no such type.")
    return np.dtype(DATA_TYPES[data_type])
