"""profilerconfig.json: traced parts of a training, by step or time ranges."""

import ast
import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smdebug.environment import (
    DEFAULT_SAGEMAKER_PROFILER_CONFIG_FILE,
    DEFAULT_SAGEMAKER_PROFILER_FOLDER,
    PROFILER_CONFIG_PATH_ENV_STR,
)
from smdebug.logger import get_logger

_PROFILERS = ("cprofile", "pyinstrument")
_TIMERS = ("total_time", "cpu_time", "off_cpu_time")


@dataclass
class Range:
    """Limits of tracing: from a first step to before a last one, or between two times in seconds since the epoch.

    A range in time without an end is one step: the first one that is asked for after ``first``.
    """

    first: float
    end: float | None
    in_steps: bool = True
    _only_step: int | None = field(default=None, init=False, compare=False)

    def holds(self, step: int, now: float) -> bool:
        """Whether a step that begins at a time, in seconds since the epoch, is in the range."""
        if self.end is not None:
            return self.first <= (step if self.in_steps else now) < self.end
        if self._only_step is None and now >= self.first:
            self._only_step = step
        return step == self._only_step


@dataclass(frozen=True)
class TracingConfig:
    """Settings of tracing.

    Attributes:
        folder: the folder of the output.
        max_file_bytes, max_file_seconds: size and age at which a file of trace events is closed.
        max_failures: number of consecutive failures to open a file after which no more are tried.
        detailed, data_loading, python: when the framework's own profiler runs, when data loading is traced, and when
            Python is profiled; None for never.
        metrics_regex: regex of the data loading metrics to trace.
        python_profiler: cprofile or pyinstrument.
        python_timer: the timer of cprofile: total_time, cpu_time or off_cpu_time.
    """

    folder: Path
    max_file_bytes: int
    max_file_seconds: float
    max_failures: int
    detailed: Range | None
    data_loading: Range | None
    python: Range | None
    metrics_regex: str
    python_profiler: str
    python_timer: str

    def wants_metric(self, name: str) -> bool:
        """Whether a data loading metric is requested, by its name or a part of it."""
        return re.search(self.metrics_regex, name, re.IGNORECASE) is not None


def find_config_path() -> Path:
    """Return the path of the configuration, whether the file exists or not."""
    return Path(os.environ.get(PROFILER_CONFIG_PATH_ENV_STR, DEFAULT_SAGEMAKER_PROFILER_CONFIG_FILE))


def read_config(path: Path, step: int) -> TracingConfig | None:
    """Read the configuration; None if nothing is to be traced, or the file cannot be read.

    Args:
        path: path of profilerconfig.json.
        step: the next step; a range without a first step begins at it.
    """
    try:
        content = _lower_names(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        get_logger().error("Nothing is traced: the profiler's configuration %s cannot be read: %s", path, error)
        return None
    parameters = content.get("profilingparameters")
    if not isinstance(parameters, dict) or not parameters or str(content.get("disableprofiler")).lower() == "true":
        return None
    parameters = _lower_names(parameters)
    python = _read_inner(parameters, "pythonprofilingconfig")
    loading = _read_inner(parameters, "dataloaderprofilingconfig")
    profiler, timer = python.get("profilername", "cprofile"), python.get("cprofiletimer", "total_time")
    python_range = _read_range("PythonProfilingConfig", python, step)
    if python_range is not None and (profiler not in _PROFILERS or timer not in _TIMERS):
        get_logger().error(
            "Python is not profiled: ProfilerName is %r (one of %s), cProfileTimer %r (one of %s).",
            *(profiler, ", ".join(_PROFILERS), timer, ", ".join(_TIMERS)),
        )
        python_range = None
    regex = str(loading.get("metricsregex", ".*"))
    try:
        re.compile(regex)
    except re.error as error:
        get_logger().error("MetricsRegex %r is none, and all metrics of data loading are traced: %s", regex, error)
        regex = ".*"
    return TracingConfig(
        folder=Path(str(parameters.get("localpath") or DEFAULT_SAGEMAKER_PROFILER_FOLDER)),
        max_file_bytes=int(_read_number(parameters, "rotatemaxfilesizeinbytes", 10485760)),
        max_file_seconds=_read_number(parameters, "rotatefilecloseintervalinseconds", 60),
        max_failures=int(_read_number(parameters, "fileopenfailthreshold", 50)),
        detailed=_read_range("DetailedProfilingConfig", _read_inner(parameters, "detailedprofilingconfig"), step),
        data_loading=_read_range("DataloaderProfilingConfig", loading, step),
        python=python_range,
        metrics_regex=regex,
        python_profiler=str(profiler),
        python_timer=str(timer),
    )


def _lower_names(content: Any) -> dict[str, Any]:
    """Return a dict with its names in lower case, as upstream reads them; an empty dict for any other value."""
    return {str(name).lower(): value for name, value in content.items()} if isinstance(content, dict) else {}


def _read_number(parameters: Mapping[str, Any], name: str, default: float) -> float:
    try:
        number = float(parameters.get(name, default))
    except (TypeError, ValueError):
        number = -1.0
    if number > 0:
        return number
    get_logger().error(
        "The profiler's %s is %r: a number above 0 is meant; %g is taken.", name, parameters[name], default
    )
    return default


def _read_inner(parameters: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Parse a text that is a Python dict literal, without evaluating it; return an empty dict for any other text."""
    text = parameters.get(name)
    if text is None:
        return {}
    try:
        value = text if isinstance(text, dict) else ast.literal_eval(str(text).strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, dict):
        get_logger().error("The profiler's %s is not a dictionary: %.200r. That is not traced.", name, text)
        return {}
    return {
        each: word.lower() if isinstance(word, str) and each != "metricsregex" else word
        for each, word in _lower_names(value).items()
    }


def _read_range(name: str, inner: Mapping[str, Any], step: int) -> Range | None:
    """Read the range of a kind of tracing; None for never."""
    keys = ("startstep", "numsteps", "starttimeinsecsinceepoch", "durationinseconds", "duration")
    given = {key: inner[key] for key in keys if key in inner}
    if not inner:
        return None
    try:
        numbers = {key: float(value) for key, value in given.items()}
    except (TypeError, ValueError):
        numbers = {"startstep": -1.0}
    in_steps = numbers.keys() & {"startstep", "numsteps"}
    in_seconds = numbers.keys() - in_steps
    if (in_steps and in_seconds) or any(not 0 <= number < 1e15 for number in numbers.values()):
        get_logger().error("%s gives no range: %s. Give StartStep and NumSteps, or a time and a duration.", name, given)
        return None
    if in_seconds:
        first = numbers.get("starttimeinsecsinceepoch", time.time())
        duration = numbers.get("durationinseconds", numbers.get("duration"))
        return Range(first, None if duration is None else first + duration, in_steps=False)
    first_step = numbers.get("startstep", float(step))
    if first_step == 0 and "numsteps" not in numbers and "startstep" in numbers:
        return None
    return Range(first_step, first_step + numbers.get("numsteps", 1.0))
