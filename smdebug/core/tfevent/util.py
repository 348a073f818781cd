"""Which type of a record a numpy type becomes: the name that code written for smdebug looks up here."""

from __future__ import annotations

from typing import Any

import numpy as np

from smdebug.core.tfevent.data_types import DATA_TYPE_NUMBERS
from smdebug.exceptions import SMDebugTypeError

# Names of TensorFlow's DataTypes for numpy's types where the two differ beyond capitals.
_NAMES = {"float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE"}


def _get_proto_dtype(npdtype: np.dtype[Any]) -> tuple[bool, str]:
    """Return whether the type is one of numbers, and its DataType's name, such as `DT_FLOAT`.

    Raises:
        SMDebugTypeError: records hold no such type.
    """
    dtype = np.dtype(npdtype)
    if dtype.kind == "U":
        return False, "DT_STRING"
    if dtype.name not in DATA_TYPE_NUMBERS:
        raise SMDebugTypeError(f"A record holds no {dtype.name}: convert it to a number type first.")
    return True, _NAMES.get(dtype.name, f"DT_{dtype.name.upper()}")
