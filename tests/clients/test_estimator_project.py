"""Tests of examples/estimator_project: every command of its CI files.

They run in a copy, as the project's owner and its build machines run them.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[2] / "examples" / "estimator_project"


def read_github_commands() -> list[str]:
    workflow: dict[str, Any] = yaml.safe_load((PROJECT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    return [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step]


def read_gitlab_commands() -> list[str]:
    pipeline: dict[str, Any] = yaml.safe_load((PROJECT / ".gitlab-ci.yml").read_text(encoding="utf-8"))
    commands: list[str] = pipeline["test"]["script"]
    return commands


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_the_commands_of_github_actions(tmp_path: Path) -> None:
    """They install what is there, build nothing where the frameworks are installed, train, and write the summary."""
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PYTEST_"))},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "PIP_NO_INDEX": "1",
    }
    # As on a user's machine: five jobs of one image import their framework once.
    del environment["SMDEBUG_EMULATOR_NO_WARM"]
    for command in read_github_commands():
        done = subprocess.run(
            ["bash", "-euc", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "| LossNotDecreasing | NoIssuesFound |" in summary
    assert "| ConfidentTooEarly | IssuesFound |" in summary
    assert "has no tumours.csv" in summary
    drawn = re.search(r"^- `▁[▁-█]+` .* at step 0, .*; fires above 20", summary, re.MULTILINE)
    assert drawn, "what rules measured is drawn in letters"


def test_gitlab_runs_the_same_commands() -> None:
    github, gitlab = read_github_commands(), read_gitlab_commands()
    assert gitlab[:2] == github[:2]
    assert (
        shlex.split(gitlab[2])[:4]
        == shlex.split(github[2])[:4]
        == ["pytest", "--sagemaker-runtime", "process", "--sagemaker-report"]
    )
