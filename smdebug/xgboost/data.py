"""Prediction data of a hook: an XGBoost matrix or a file."""

from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

_CSV = ("csv", "text/csv")
_LIBSVM = ("libsvm", "text/libsvm", "text/x-libsvm")


def get_matrix(data: object, what: str) -> xgboost.DMatrix | None:
    """Return the data passed to a hook as a matrix.

    Args:
        data: a DMatrix of any kind, a pair (path of a file or of a folder of files, content type), or None. A CSV file
            has the label in its first column and no header.
        what: the argument's name, for messages.

    Raises:
        SMDebugTypeError: the data has another type.
        SMDebugValueError: there is no such file, or the content type is unknown.
    """
    if data is None or isinstance(data, xgboost.DMatrix):
        return data
    if isinstance(data, (tuple, list)) and len(data) == 2 and all(isinstance(each, (str, Path)) for each in data):
        return _read(Path(data[0]), str(data[1]), what)
    raise SMDebugTypeError(f"{what} is a DMatrix or a pair (path, content type), not {type(data).__name__}.")


def _read(path: Path, content_type: str, what: str) -> xgboost.DMatrix:
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (*_CSV, *_LIBSVM):
        raise SMDebugValueError(f"{what}: {content_type!r} is none of {', '.join((*_CSV, *_LIBSVM))}.")
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if _has_data(each, path))
    if not files:
        raise SMDebugValueError(f"{what}: {path} holds no file with data.")
    try:
        return _read_csv(files) if kind in _CSV else _read_libsvm(files)
    except (ValueError, IndexError) as error:
        raise SMDebugValueError(f"{what}: {path} cannot be read as {kind}: {error}.") from error


def _has_data(file: Path, folder: Path) -> bool:
    """Return whether a file may contain rows: not those that are hidden or empty, as markers and checksums are."""
    parts = file.relative_to(folder).parts
    return file.is_file() and file.stat().st_size > 0 and not any(part.startswith((".", "_")) for part in parts)


def _read_csv(files: list[Path]) -> xgboost.DMatrix:
    tables = [np.genfromtxt(file, delimiter=",", dtype=np.float32, ndmin=2) for file in files]
    table: NDArray[Any] = np.concatenate(tables)
    return xgboost.DMatrix(table[:, 1:], label=table[:, 0])


def _read_libsvm(files: list[Path]) -> xgboost.DMatrix:
    labels: list[float] = []
    starts, columns, values = [0], [], []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            fields = line.partition("#")[0].split()
            if not fields:
                continue
            labels.append(float(fields[0].partition(":")[0]))
            for field in fields[1:]:
                column, _, value = field.partition(":")
                if column != "qid":
                    columns.append(int(column))
                    values.append(float(value))
            starts.append(len(values))
    from scipy.sparse import csr_matrix

    shape = (len(labels), max(columns, default=-1) + 1)
    table = csr_matrix((np.array(values, np.float32), np.array(columns), np.array(starts)), shape=shape)
    return xgboost.DMatrix(table, label=np.array(labels, np.float32))
