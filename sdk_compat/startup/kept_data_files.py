"""Data files of botocore, which a process reads only once.

Each session of boto3 reads the files of its services anew: SageMaker's model or the list of all endpoints take a tenth
of a second each. The SageMaker SDK creates several sessions for an estimator. So the function that reads a file keeps
what it has read, for as long as the file stays the same.

botocore's clients of one session share what was read, too. Those of S3 change its model all the same, and moto, which a
test may use in the same process, changes SQS's and cannot work with the changed model of S3. These two are read anew.

This module imports only modules that Python's start-up has already imported, and supports the same Python versions as
boto3.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

READING_MODULES = ("botocore.loaders",)
# botocore looks for a file with each of these endings, in this order.
_ENDINGS = (".json", ".json.gz")
# Services whose models do not stay as they were read.
_CHANGED = ("s3", "sqs")


def keep_data_files(module: Any) -> None:
    """Let the module's ``JSONFileLoader`` keep the files that it reads."""
    reader = getattr(module, "JSONFileLoader", None)
    if reader is not None:
        reader.load_file = _keep(reader.load_file)


def _keep(read: Any) -> Any:
    from functools import wraps

    kept: dict[str, tuple[Any, Any]] = {}

    @wraps(read)
    def load_file(self: Any, file_path: str) -> Any:
        state = [_read_state(file_path + ending) for ending in _ENDINGS]
        found = kept.get(file_path)
        if found is not None and found[0] == state:
            return found[1]
        content = read(self, file_path)
        if content is not None and not _is_changed(file_path):
            kept[file_path] = (state, content)
        return content

    return load_file


def _is_changed(file_path: str) -> bool:
    """Whether the file is a model, as in `s3/2006-03-01/service-2`, that its users change."""
    *_, service, _version, file = ("", "", *file_path.split(os.sep))  # noqa: PTH206 - pathlib is slow to import
    return file == "service-2" and service in _CHANGED


def _read_state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - pathlib is slow to import
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
