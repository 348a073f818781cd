"""Tests of profilerconfig.json by the SDK and the guide, and with mistakes."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from smdebug.tracing.configuration import Range, TracingConfig, read_config


def read(folder: Path, parameters: Any, step: int = 4, **members: Any) -> TracingConfig | None:
    path = folder / "profilerconfig.json"
    path.write_text(json.dumps({"ProfilingParameters": parameters, **members}))
    return read_config(path, step)


def test_as_the_sdk_writes_it(tmp_path: Path) -> None:
    """A comma behind each entry, numbers as texts, single quotes in the guide's examples."""
    config = read(
        tmp_path,
        {
            "LocalPath": "/opt/ml/Output/profiler/",
            "RotateMaxFileSizeInBytes": "1000",
            "RotateFileCloseIntervalInSeconds": "5",
            "FileOpenFailThreshold": "3",
            "DetailedProfilingConfig": '{"StartStep": 5, "NumSteps": 1, }',
            "DataloaderProfilingConfig": "{'StartStep': '7', 'NumSteps': '2', 'MetricsRegex': '.*Next', }",
            "PythonProfilingConfig": '{"StartStep": 9, "ProfilerName": "cProfile", "cProfileTimer": "off_cpu_time", }',
        },
    )
    assert config == TracingConfig(
        folder=Path("/opt/ml/Output/profiler"),
        max_file_bytes=1000,
        max_file_seconds=5.0,
        max_failures=3,
        detailed=Range(5, 6),
        data_loading=Range(7, 9),
        python=Range(9, 10),
        metrics_regex=".*Next",
        python_profiler="cprofile",
        python_timer="off_cpu_time",
    )
    assert config.wants_metric("DataLoaderIter::GetNext")
    assert not config.wants_metric("Initialize")


@pytest.mark.parametrize(
    ("content", "is_said"),
    [
        ("{}", False),
        ('{"ProfilingParameters": {}}', False),
        ('{"ProfilingParameters": {"a": "b"}, "DisableProfiler": true}', False),
        ('{"ProfilingParameters": [1]}', False),
        ("[]", False),
        ("{not json", True),
        ("", True),
        ("[" * 100_000, True),
    ],
)
def test_nothing_is_traced(tmp_path: Path, content: str, is_said: bool, said: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "profilerconfig.json"
    path.write_text(content)
    assert read_config(path, 0) is None
    assert ("cannot be read" in said.text) is is_said
    assert read_config(tmp_path / "not-there.json", 0) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{'NumSteps': 2}", Range(4, 6)),
        ("{'StartStep': 3}", Range(3, 4)),
        ("{'StartStep': 0}", None),
        ("{'StartTimeInSecSinceEpoch': 100, 'DurationInSeconds': 5}", Range(100, 105, in_steps=False)),
        ("{'StartTimeInSecSinceEpoch': 100, 'Duration': 5}", Range(100, 105, in_steps=False)),
        ("{'StartTimeInSecSinceEpoch': 100}", Range(100, None, in_steps=False)),
        ("{'ProfilerName': 'cProfile'}", Range(4, 5)),
        ("{}", None),
    ],
)
def test_ranges(tmp_path: Path, text: str, wanted: Range | None) -> None:
    config = read(tmp_path, {"PythonProfilingConfig": text})
    assert config is not None
    assert config.python == wanted


def test_a_time_without_a_duration_is_the_first_step_after_it() -> None:
    single = Range(100, None, in_steps=False)
    held = [single.holds(step, now) for step, now in ((7, 99.0), (8, 100.5), (8, 100.6), (9, 100.7), (10, 200.0))]
    assert held == [False, True, True, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch ' + '/tmp/never')",
        "[1, 2]",
        "{'StartStep': ",
        "{'StartStep': 'soon'}",
        "{'StartStep': -1}",
        "{'StartStep': 1, 'Duration': 5}",
        "{'StartStep': 1e400}",
        "(" * 10_000,
    ],
)
def test_inner_texts_that_say_nothing_are_reported_and_off(
    tmp_path: Path, text: str, said: pytest.LogCaptureFixture
) -> None:
    config = read(tmp_path, {"DetailedProfilingConfig": text, "PythonProfilingConfig": "{'StartStep': 1}"})
    assert config is not None
    assert (config.detailed, config.python) == (None, Range(1, 2))
    assert "detailedprofilingconfig" in said.text.lower()


def test_values_that_there_are_not(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    config = read(
        tmp_path,
        {
            "RotateMaxFileSizeInBytes": "much",
            "PythonProfilingConfig": "{'StartStep': 1, 'ProfilerName': 'perf'}",
            "DataloaderProfilingConfig": "{'StartStep': 1, 'MetricsRegex': '('}",
        },
    )
    assert config is not None
    assert (config.max_file_bytes, config.python, config.metrics_regex) == (10485760, None, ".*")
    assert all(word in said.text for word in ("'much'", "'perf'", "MetricsRegex"))


def test_a_range_holds_its_steps_or_its_times() -> None:
    assert [Range(2, 4).holds(step, time.time()) for step in range(5)] == [False, False, True, True, False]
    assert [Range(10, 20, in_steps=False).holds(0, now) for now in (9.9, 10.0, 20.0)] == [False, True, False]
