"""Inference requests as XGBoost matrices, for scripts that serve their model."""

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xgboost

from rules_images.training.xgboost.built_in_algorithm.channels import read_matrix
from rules_images.training.xgboost.built_in_algorithm.recordio import read_records


def csv_to_dmatrix(input: str | bytes, dtype: Any = None) -> xgboost.DMatrix:  # noqa: A002 - scripts give it by this name
    """Read CSV rows without labels. An empty field is a missing value."""
    import pandas as pd

    text = input.decode() if isinstance(input, bytes) else input
    table = pd.read_csv(io.StringIO(text), header=None, sep=r"\s*[,;\t|]\s*", engine="python", dtype=dtype)
    return xgboost.DMatrix(table.to_numpy())


def libsvm_to_dmatrix(string_like: bytes) -> xgboost.DMatrix:
    """Read lines of libsvm."""
    return _read_file(string_like, lambda path: read_matrix(path, "libsvm", "The request"))


def recordio_protobuf_to_dmatrix(string_like: bytes) -> xgboost.DMatrix:
    """Read RecordIO-protobuf records, with or without labels."""
    return _read_file(string_like, lambda path: xgboost.DMatrix(read_records([path], with_labels=False)[0]))


def json_to_jsonlines(json_data: dict[str, list[Any]] | str | bytes) -> bytes:
    """Write each element of the only list in an object on a separate line.

    Raises:
        ValueError: the object has more than one member, or none.
    """
    found = json_data if isinstance(json_data, dict) else json.loads(json_data)
    if len(found) != 1:
        raise ValueError(f"The response has {len(found)} members; JSON lines can be made of one.")
    (entries,) = found.values()
    return b"".join(f"{json.dumps(entry)}\n".encode() for entry in entries)


_DECODERS: dict[str, Callable[[Any], xgboost.DMatrix]] = {
    "text/csv": csv_to_dmatrix,
    "text/libsvm": libsvm_to_dmatrix,
    "text/x-libsvm": libsvm_to_dmatrix,
    "application/x-recordio-protobuf": recordio_protobuf_to_dmatrix,
}


def decode(obj: str | bytes, content_type: str) -> xgboost.DMatrix:
    """Read a request by its content type.

    Raises:
        ValueError: the content type is not supported.
    """
    decoder = _DECODERS.get(content_type.partition(";")[0].strip().lower())
    if decoder is None:
        raise ValueError(f"{content_type} is not a content type of requests; there are {', '.join(_DECODERS)}.")
    return decoder(obj)


def _read_file(content: str | bytes, read: Callable[[Path], xgboost.DMatrix]) -> xgboost.DMatrix:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        return read(Path(file.name))
