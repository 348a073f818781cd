"""Channels as XGBoost matrices: CSV, libsvm, Parquet and RecordIO-protobuf."""

from __future__ import annotations

import json
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost

from rules_images.training.xgboost.built_in_algorithm.errors import JobError, NoDataError, summarise_xgboost_error
from rules_images.training.xgboost.built_in_algorithm.recordio import read_records

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

TRAIN, VALIDATION = "train", "validation"
_CSV = frozenset({"text/csv", "csv"})
_LIBSVM = frozenset({"text/libsvm", "text/x-libsvm", "libsvm"})
_PARQUET = frozenset({"application/x-parquet", "parquet"})
_RECORDS = frozenset({"application/x-recordio-protobuf", "recordio-protobuf"})
_DEFAULT = "text/libsvm"
_SEPARATORS = (",", ";", "\t", "|")


def read_channels(base: Path, *, csv_weights: bool, columns: int | None = None) -> dict[str, xgboost.DMatrix]:
    """Read the channel `train` and, if it exists, `validation`.

    Args:
        base: /opt/ml, or the folder that replaces it.
        csv_weights: whether the second column of the training channel's CSV contains the weights of its rows.
        columns: number of features on other hosts of the job; None if it is not known.

    Raises:
        NoDataError: a channel has no files, or they are empty.
        JobError: there is no training channel, or a channel holds what cannot be read.
    """
    channels = _describe_channels(base)
    if TRAIN not in channels:
        had = ", ".join(channels) or "none"
        raise JobError(f"The job has no channel named {TRAIN}, which the algorithm learns from; its channels: {had}.")
    # According to AWS's documentation only training data has weights.
    read = {
        name: partial(_read_channel, base, name, channels[name] or {}, csv_weights=csv_weights and name == TRAIN)
        for name in (TRAIN, VALIDATION)
        if name in channels
    }
    found = {name: read_one(columns) for name, read_one in read.items()}
    widest = max(columns or 0, *(matrix.num_col() for matrix in found.values()))
    for name, matrix in found.items():
        if matrix.num_col() < widest:
            # libsvm files do not contain the number of features. For other formats this changes nothing.
            found[name] = read[name](widest)
    for name, matrix in found.items():
        if matrix.num_col() != widest:
            others = f"channel {VALIDATION if name == TRAIN else TRAIN}" if columns is None else "other hosts"
            raise JobError(f"Channel {name} has {matrix.num_col()} features, and {others} {widest}.")
    return found


def list_replicated(base: Path) -> list[str]:
    """Return the channels of which every host has all data."""
    described = _describe_channels(base)
    channels = [name for name in (TRAIN, VALIDATION) if name in described]
    return [name for name in channels if (described[name] or {}).get("S3DistributionType") != "ShardedByS3Key"]


def _describe_channels(base: Path) -> dict[str, Any]:
    path = base / "input" / "config" / "inputdataconfig.json"
    described: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return described


def _read_channel(
    base: Path, name: str, described: dict[str, str], columns: int | None, *, csv_weights: bool
) -> xgboost.DMatrix:
    if described.get("TrainingInputMode") == "Pipe":
        raise JobError(
            f"Channel {name} is a pipe, and this algorithm reads files: use the input mode File or FastFile."
        )
    content_type = described.get("ContentType")
    folder = base / "input" / "data" / name
    return read_matrix(folder, content_type, f"Channel {name}", csv_weights=csv_weights, columns=columns)


def read_matrix(
    path: Path, content_type: str | None, shown: str, *, csv_weights: bool = False, columns: int | None = None
) -> xgboost.DMatrix:
    """Read a file, or all files below a folder. The label comes first in each row.

    Args:
        path: the file or folder.
        content_type: content type of the channel; libsvm if there is none.
        shown: name of the data in error messages.
        csv_weights: whether the second column of CSV contains the weights of the rows.
        columns: how many features libsvm has at least.

    Raises:
        JobError: it cannot be read; the text says why.
    """
    content_type = content_type or _DEFAULT
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if kind not in _CSV | _LIBSVM | _PARQUET | _RECORDS:
        raise JobError(
            f"{shown} has ContentType {content_type!r}; this algorithm reads text/csv, text/libsvm, text/x-libsvm, "
            "application/x-parquet and application/x-recordio-protobuf."
        )
    if kind in _CSV and any(each.startswith("label_size=") and each != "label_size=1" for each in parameters):
        raise JobError(f"{shown} has ContentType {content_type!r}; there is one label: label_size=1.")
    below = [] if path.is_file() else path.rglob("*")
    files = (
        [path] if path.is_file() else sorted(f for f in below if f.is_file() and not _is_hidden(f.relative_to(path)))
    )
    files = [file for file in files if file.stat().st_size]
    if not files:
        raise NoDataError(f"{shown} holds no data: its files are missing or empty.")
    try:
        if kind in _CSV:
            matrix = _read_csv(files, csv_weights=csv_weights)
        elif kind in _LIBSVM:
            matrix = _read_libsvm(files, columns)
        elif kind in _PARQUET:
            matrix = _read_parquet(files)
        else:
            rows, labels = read_records(files)
            _check_labels(labels)
            matrix = xgboost.DMatrix(rows, label=labels)
    except xgboost.core.XGBoostError as error:
        lowered = shown[0].lower() + shown[1:]
        raise JobError(f"XGBoost refuses the data of {lowered}: {summarise_xgboost_error(error)}") from error
    if not matrix.num_row():
        raise JobError(f"{shown} holds no rows.")
    return matrix


def _check_labels(labels: NDArray[np.float32]) -> None:
    if not np.isfinite(labels).all():
        raise JobError("Some labels are no finite number. In a CSV the label is the first column.")


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _read_csv(files: list[Path], *, csv_weights: bool) -> xgboost.DMatrix:
    import pandas as pd

    tables: list[NDArray[np.float32]] = []
    for file in files:
        try:
            table = pd.read_csv(file, header=None, sep=_find_separator(file), dtype=np.float32)
        except (ValueError, UnicodeDecodeError) as error:
            raise JobError(
                f"{file.name} is not a CSV of numbers without a header, the label in the first column: {error}"
            ) from error
        if tables and table.shape[1] != tables[0].shape[1]:
            raise JobError(f"{file.name} has {table.shape[1]} columns, the files before it {tables[0].shape[1]}.")
        tables.append(table.to_numpy())
    rows = np.concatenate(tables)
    first = 2 if csv_weights else 1
    if rows.shape[1] <= first:
        had = "label and weight" if csv_weights else "label"
        raise JobError(f"The CSV files have {rows.shape[1]} columns: beside the {had} no feature.")
    _check_labels(rows[:, 0])
    return xgboost.DMatrix(rows[:, first:], label=rows[:, 0], weight=rows[:, 1] if csv_weights else None)


def _read_parquet(files: list[Path]) -> xgboost.DMatrix:
    import pandas as pd

    tables: list[NDArray[np.float32]] = []
    for file in files:
        try:
            table = pd.read_parquet(file).to_numpy(dtype=np.float32)
        except (ValueError, TypeError, OSError) as error:
            raise JobError(
                f"{file.name} is not a Parquet file of numbers, the label in the first column: {error}"
            ) from error
        if tables and table.shape[1] != tables[0].shape[1]:
            raise JobError(f"{file.name} has {table.shape[1]} columns, the files before it {tables[0].shape[1]}.")
        tables.append(table)
    rows = np.concatenate(tables)
    if rows.shape[1] < 2:
        raise JobError(f"The Parquet files have {rows.shape[1]} columns: beside the label no feature.")
    _check_labels(rows[:, 0])
    return xgboost.DMatrix(rows[:, 1:], label=rows[:, 0])


def _find_separator(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as lines:
        line = lines.readline()
    return next((separator for separator in _SEPARATORS if separator in line), ",")


def _read_libsvm(files: list[Path], columns: int | None) -> xgboost.DMatrix:
    """Parse rows of `label[:weight] [qid:group] column:value ...`. Columns start at 0, as in XGBoost."""
    labels: list[float] = []
    weights: list[float] = []
    groups: list[int] = []
    starts, indices, values = [0], [], []
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            fields = line.partition("#")[0].split()
            if not fields:
                continue
            try:
                label, _, weight = fields[0].partition(":")
                labels.append(float(label))
                weights.append(float(weight or 1))
                for field in fields[1:]:
                    index, _, value = field.partition(":")
                    if index == "qid":
                        groups.append(int(value))
                    else:
                        indices.append(int(index))
                        values.append(float(value))
            except ValueError as error:
                raise JobError(f"{file.name}, line {number} is not a line of libsvm: {error}") from error
            starts.append(len(values))
    if groups and len(groups) != len(labels):
        raise JobError("Some lines have a qid and others have none.")
    if min(indices, default=0) < 0:
        raise JobError("A column number is below 0.")
    if groups and not 0 <= min(groups) <= max(groups) < 2**32:
        raise JobError("A qid is below 0, or has more than 32 bits.")
    from scipy.sparse import csr_matrix

    # Columns at the end of the table for which a channel has no values count as features nevertheless.
    width = max(max(indices, default=-1) + 1, columns or 0)
    table = csr_matrix(
        (np.array(values, np.float32), np.array(indices, np.int64), np.array(starts)), shape=(len(labels), width)
    )
    _check_labels(np.array(labels, np.float32))
    is_weighted = any(weight != 1 for weight in weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return xgboost.DMatrix(
            table,
            label=np.array(labels, np.float32),
            weight=np.array(weights, np.float32) if is_weighted else None,
            qid=np.array(groups, np.uint32) if groups else None,
        )
