"""A rule container, started as a job starts it, and its configuration."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from smdebug.logger import get_logger


def build_config(folder: Path, tensors: str, rule: str, **parameters: str) -> dict[str, Any]:
    return {
        "TrainingJobName": "job",
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/job",
        "RuleConfigurationName": "my-rule",
        "ProcessingJobName": "job-my-rule",
        "RuleParameters": {"rule_to_invoke": rule, **parameters},
        "TensorsS3Uri": tensors,
        "OutputPath": str(folder / "output/rule"),
        "VerdictPath": str(folder / "output/verdict.json"),
    }


def start_container(tmp_path: Path, config: dict[str, Any] | None, **environment: str) -> subprocess.Popen[str]:
    path = tmp_path / "ruleconfig.json"
    if config is not None:
        path.write_text(json.dumps(config))
    return subprocess.Popen(
        [sys.executable, "-m", "smdebug.rules.evaluator"],
        env={**os.environ, "SMDEBUG_RULE_CONFIG_PATH": str(path), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextmanager
def capture_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The library's logger passes nothing on to the root's handlers."""
    logger = get_logger()
    logger.addHandler(caplog.handler)
    try:
        yield
    finally:
        logger.removeHandler(caplog.handler)


def read_warnings(path: Path) -> list[tuple[str, str]]:
    """The code and the text of each warning that a container reported."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [(each["Code"], each["Text"]) for each in found]
