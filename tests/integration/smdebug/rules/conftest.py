"""A run, the evaluation of rules on it, and what they report."""

from pathlib import Path
from typing import Any

import pytest

from smdebug import job_warnings
from smdebug.environment import WARNINGS_PATH_ENV_STR
from smdebug.rules.container.rule_config import parse_rule_config
from smdebug.rules.container.verdict import Verdict
from smdebug.rules.evaluator import judge
from tests.integration.smdebug.rules.rule_container import build_config
from tests.unit.smdebug.runs import RunMaker


@pytest.fixture
def run(tmp_path: Path) -> RunMaker:
    return RunMaker(tmp_path / "job" / "debug-output")


@pytest.fixture
def evaluate(tmp_path: Path, run: RunMaker) -> Any:
    def evaluate(rule: str, tensors: str | None = None, **parameters: str) -> Verdict:
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        return judge(parse_rule_config(build_config(tmp_path, tensors or run.out_dir, rule, **parameters)), folder)

    return evaluate


@pytest.fixture
def reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which a container reports warnings."""
    path = tmp_path / "warnings.jsonl"
    path.touch()
    monkeypatch.setenv(WARNINGS_PATH_ENV_STR, str(path))
    monkeypatch.setattr(job_warnings, "_written", set())
    return path
