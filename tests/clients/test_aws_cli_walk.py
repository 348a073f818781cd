"""Walks of the AWS CLI through S3, jobs, and events and what they reach.

No command of ``tests/clients/aws_cli`` fails. They are run with CLI 1, and with CLI 2 (2.13 or later) where a program
``aws`` of that version is on PATH or is named by ``SMDEBUG_EMULATOR_TEST_AWS_CLI_2``.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore import xform_name

from docs_site.client_operations import AWS_CLI, read_lists
from emulator.service_model import load_service_model
from tests.running_emulator import RunningEmulator

SCRIPTS = Path(__file__).with_name("aws_cli")
WALKS = ("s3", "sagemaker", "events")


def find_cli(major: int) -> Path | None:
    """Find a program ``aws`` of this version."""
    if major == 1:
        return Path(sys.executable).with_name("aws")
    named = os.environ.get("SMDEBUG_EMULATOR_TEST_AWS_CLI_2")
    folders = os.environ.get("PATH", "").split(os.pathsep)
    found = [Path(named)] if named else [Path(folder, "aws") for folder in folders]
    for program in found:
        if os.access(program, os.X_OK):
            asked = [str(program), "--version"]
            done = subprocess.run(asked, capture_output=True, text=True, timeout=400, check=False)
            if done.stdout.startswith(f"aws-cli/{major}."):
                return program
    return None


@pytest.mark.nightly
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("major", [1, 2])
@pytest.mark.parametrize("walk", WALKS)
def test_no_command_of_the_walk_fails(
    start_emulator: Callable[..., RunningEmulator], tmp_path: Path, major: int, walk: str
) -> None:
    program = find_cli(major)
    if program is None:
        pytest.skip(f"no AWS CLI {major} on PATH or in SMDEBUG_EMULATOR_TEST_AWS_CLI_{major}")
    served = start_emulator("process")
    shutil.copytree(SCRIPTS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/aws").symlink_to(program)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{environment['PATH']}", "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "emulator", "run", "--state-dir", str(served.state_dir), "--", "bash"]
    done = subprocess.run(
        [*command, f"{walk}.sh"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("FAILED: ")] == [], done.stderr


def test_the_walks_operations_are_those_that_the_page_lists() -> None:
    names = {xform_name(name, "-"): name for name in load_service_model().operation_names}
    called = re.findall(r"aws sagemaker ([a-z-]+)", (SCRIPTS / "sagemaker.sh").read_text())
    assert {names[each] for each in called if each in names} == set(read_lists()[AWS_CLI])
