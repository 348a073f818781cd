"""Tests of action.yml and the GitLab include: their commands as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TESTS = """
import boto3

from sdk_compat.demo.training_job import build_script_mode, build_training_job, stage_source


def test_a_training(sagemaker_emulator, s3_bucket, tmp_path, wait_for_training_job):
    script = tmp_path / "train.py"
    script.write_text("print('trained')")
    source = stage_source(boto3.client("s3"), "ci", [script], s3_bucket)
    request = build_training_job(
        "in-ci", image="pytorch-training:2.13.0-cpu-py311", hyperparameters=build_script_mode(source, "train.py", {}),
        channels=(), collections={}, rules=[], bucket=s3_bucket,
    )
    boto3.client("sagemaker").create_training_job(**request)
    wait_for_training_job("in-ci", "Completed")
"""
INSTALLED = "smdebug-emulator[emulator]"
_INPUT = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A build machine on which the package is installed; its package index is none."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST_", "SMDEBUG_"))}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "test_training.py").write_text(TESTS)
    return folder


def run_shell(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def run_action(inputs: dict[str, str], folder: Path, environment: dict[str, str]) -> tuple[list[int], str]:
    """Run the steps as GitHub does, and return their exit codes and the job's summary."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    given = {name: each["default"] for name, each in action["inputs"].items()} | inputs
    files = {name: folder.parent / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.touch()
    environment = {**environment, **{name: str(path) for name, path in files.items()}}
    environment |= {"RUNNER_TEMP": str(folder.parent), "GITHUB_ACTION_PATH": str(ROOT)}
    codes: list[int] = []
    for step in action["runs"]["steps"]:
        condition = step.get("if", "")
        named = re.search(r"inputs\.(\w+) != ''", condition)
        if (named and not given[named[1]]) or (any(codes) and "always()" not in condition):
            continue
        own = {name: _INPUT.sub(lambda found: given[found[1]], text) for name, text in step.get("env", {}).items()}
        exported = dict(line.split("=", 1) for line in files["GITHUB_ENV"].read_text().splitlines())
        done = run_shell(step["run"], folder, {**environment, **exported, **own})
        codes.append(done.returncode)
        if done.returncode:
            sys.stdout.write(f"{step['name']}\n{done.stdout}{done.stderr}")
    assert "endpoint-url=http://127.0.0.1:" in files["GITHUB_OUTPUT"].read_text()
    return codes, files["GITHUB_STEP_SUMMARY"].read_text()


@pytest.mark.nightly
def test_the_action_starts_leads_runs_and_reports(project: Path, environment: dict[str, str]) -> None:
    inputs = {"run": "pytest -q -p no:cacheprovider", "install": INSTALLED, "runtime": "process"}
    codes, summary = run_action(inputs, project, environment)
    assert codes == [0, 0, 0, 0]
    assert "| in-ci | Completed |" in summary
    assert not (project.parent / "smdebug-emulator" / "emulator.json").exists()  # it has been stopped


def test_a_failing_command_fails_the_action_and_is_reported(project: Path, environment: dict[str, str]) -> None:
    inputs = {
        "run": "test $AWS_ENDPOINT_URL || exit 3\nfalse\necho not reached",
        "install": INSTALLED,
        "runtime": "process",
    }
    codes, summary = run_action(inputs, project, environment)
    assert codes == [0, 0, 1, 0]
    assert summary.strip() == "No training jobs ran."


@pytest.mark.nightly
def test_the_gitlab_include(project: Path, environment: dict[str, str]) -> None:
    text = (ROOT / "sagemaker-emulator.gitlab-ci.yml").read_text(encoding="utf-8")
    job: dict[str, Any] = yaml.safe_load(text)[".sagemaker-emulator"]
    variables = {**environment, "CI_BUILDS_DIR": str(project.parent)}
    for name, value in job["variables"].items():
        variables[name] = value.replace("$CI_BUILDS_DIR", variables["CI_BUILDS_DIR"])
    variables["SAGEMAKER_EMULATOR_OPTIONS"] = "--runtime process"
    script = "\n".join([*job["before_script"], "pytest -q -p no:cacheprovider"])
    done = run_shell(script, project, variables)
    after = run_shell("\n".join(job["after_script"]), project, variables)
    assert (done.returncode, after.returncode) == (0, 0), done.stdout + done.stderr + after.stderr
    (report,) = job["artifacts"]["paths"]
    assert "| in-ci | Completed |" in (project / report).read_text()
