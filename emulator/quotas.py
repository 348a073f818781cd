"""Quotas of instances, read from a file.

Either a JSON object such as ``{"ml.m5.large for training job usage": 2}``, or the answer of
``aws service-quotas list-service-quotas --service-code sagemaker``.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TRAINING, SPOT, WARM_POOL, PROCESSING = "training job", "spot training job", "training warm pool", "processing job"
_NAME = re.compile(rf"ml\.[a-z0-9-]+\.[a-z0-9]+ for ({TRAINING}|{SPOT}|{WARM_POOL}|{PROCESSING}) usage")


def name_quota(instance_type: str, use: str) -> str:
    """Return AWS's name of the quota for a use of an instance type."""
    return f"{instance_type} for {use} usage"


def read_quotas(path: Path) -> Mapping[str, int]:
    """Read the quotas of a file, by their names. Those of other uses in an answer of AWS's are left out.

    Raises:
        OSError: the file cannot be read.
        ValueError: the content is none of the two forms; the message says what is wrong.
    """
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    match content:
        case {"Quotas": list(entries)}:
            return dict(_read_entry(path, entry) for entry in entries if _is_known(entry))
        case dict():
            return dict(_read_number(path, name, number) for name, number in content.items())
    raise ValueError(f"{path} holds no JSON object")


def parse_quota_file(text: str) -> Path:
    """Return the absolute path of a file of quotas.

    Raises:
        ValueError: the file cannot be read, or its content is wrong; the message says why.
    """
    path = Path(text).expanduser().absolute()
    try:
        read_quotas(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    return path


def _is_known(entry: Any) -> bool:
    return isinstance(entry, dict) and _NAME.fullmatch(str(entry.get("QuotaName"))) is not None


def _read_entry(path: Path, entry: Mapping[str, Any]) -> tuple[str, int]:
    return _read_number(path, entry["QuotaName"], entry.get("Value"))


def _read_number(path: Path, name: str, number: Any) -> tuple[str, int]:
    if _NAME.fullmatch(name) is None:
        example = name_quota("ml.m5.large", TRAINING)
        raise ValueError(f"{path}: {name!r} is not a quota: write {example!r}, or {SPOT}, {WARM_POOL} or {PROCESSING}")
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number < 0 or number != int(number):
        raise ValueError(f"{path}: {name!r} is {number!r}: give a whole number from 0")
    return name, int(number)
