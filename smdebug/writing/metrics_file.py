"""Training metrics for SageMaker's agent: one JSON object a line.

    {"MetricName": "scalar/accuracy_TRAIN", "Value": 0.91, "Timestamp": 1700000000.5, "IterationNumber": 12}

The file is `<SAGEMAKER_METRICS_DIRECTORY>/<pid>.json`. `MetricName` is the name of the tensor and the mode it was saved
in, `Timestamp` is in seconds since the epoch, and `IterationNumber` is the step of that mode. Each line is written with
one system call, so a concurrent reader never sees an incomplete line.
"""

import json
import os
import time
from pathlib import Path

from smdebug.environment import DEFAULT_SAGEMAKER_METRICS_PATH
from smdebug.mode_keys import ModeKeys


class MetricsFile:
    """Appends metrics to a file, which is created with the first metric."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, number: float, mode: ModeKeys, mode_step: int, timestamp: float | None = None) -> None:
        """Append one metric; `timestamp` is in seconds since the epoch, None for the current time.

        Infinite numbers and NaN are skipped, because JSON cannot represent them.

        Raises:
            OSError: the file cannot be written.
        """
        record = {
            "MetricName": f"{name}_{mode.name}",
            "Value": number,
            "Timestamp": time.time() if timestamp is None else timestamp,
            "IterationNumber": mode_step,
        }
        try:
            line = json.dumps(record, allow_nan=False)
        except ValueError:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{os.getpid()}.json").open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode())


def find_metrics_file() -> MetricsFile | None:
    """Return the metrics file of this process if SageMaker asks for metrics, else None."""
    folder = os.environ.get(DEFAULT_SAGEMAKER_METRICS_PATH)
    return MetricsFile(Path(folder)) if folder else None
