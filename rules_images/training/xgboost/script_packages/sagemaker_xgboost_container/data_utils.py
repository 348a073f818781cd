"""Channels as XGBoost matrices, for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rules_images.training.xgboost.built_in_algorithm.channels import read_matrix
from rules_images.training.xgboost.built_in_algorithm.errors import JobError, NoDataError

if TYPE_CHECKING:
    import xgboost


def get_dmatrix(
    data_path: str | Path, content_type: str | None, csv_weights: int = 0, is_pipe: bool = False
) -> xgboost.DMatrix | None:
    """Read a file, or all files below a folder, as the built-in algorithm does; None if there is no data.

    Raises:
        JobError: the data has another format, or is a pipe.
    """
    if is_pipe:
        raise JobError(f"{data_path} is a pipe, and this container reads files: use the input mode File or FastFile.")
    path = Path(data_path)
    try:
        return read_matrix(path, content_type, str(path), csv_weights=bool(csv_weights))
    except NoDataError:
        return None
