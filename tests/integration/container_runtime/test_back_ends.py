"""Tests of container back ends that another distribution brings."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "back_ends.md"

MODULE = """
from dataclasses import replace

from container_runtime.back_ends import BackEnd, ChosenRuntime
from container_runtime.process.back_end import BACK_END as PROCESSES
from container_runtime.process.local_processes import LocalProcesses


class Borrowed(LocalProcesses):
    name = "borrowed"


class Forgetful(Borrowed):
    def wait(self, container_id, timeout=None):
        ended = super().wait(container_id, timeout)
        return None if ended is None else replace(ended, code=0)


def open_borrowed(options):
    return ChosenRuntime(Borrowed(options.state_dir / "borrowed"), "Containers run on borrowed time.")


def open_forgetful(options):
    return ChosenRuntime(Forgetful(options.state_dir / "borrowed"), "Nobody remembers how they end.")


def survey(options, is_running):
    yield "missing", f"no time is left, running: {is_running}", "borrow some"


BORROWED = BackEnd(open_borrowed, PROCESSES.build_images, survey=survey, traits=PROCESSES.traits)
FORGETFUL = BackEnd(open_forgetful, PROCESSES.build_images, traits=PROCESSES.traits)
NO_BACK_END = "text"
"""
ENTRY_POINTS = """
[smdebug_emulator.runtimes]
borrowed = borrowed_time:BORROWED
mine = borrowed_time:BORROWED
forgetful = borrowed_time:FORGETFUL
broken = borrowed_time_that_is_not_there:BACK_END
text = borrowed_time:NO_BACK_END
process = borrowed_time:FORGETFUL
"""


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed distribution that brings back ends."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "borrowed_time.py").write_text(MODULE)
    described = folder / "borrowed_time-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: borrowed-time\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def call(distribution: Path, tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(distribution), "XDG_STATE_HOME": str(tmp_path), **environment}
    command: Sequence[str] = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.nightly  # by day tests/contract runs the same suite
def test_the_contract_suite_runs_against_it(distribution: Path, tmp_path: Path) -> None:
    """It passes where the contract is kept, and fails where exit codes are forgotten."""
    chosen = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "container_runtime.contract", "-k"]
    tests = "test_exit_code or owner_that_is_killed or name_that_is_taken"
    kept = call(distribution, tmp_path, *chosen, tests, SMDEBUG_EMULATOR_TEST_BACK_ENDS="borrowed")
    assert "6 passed" in kept.stdout, kept.stdout
    broken = call(distribution, tmp_path, *chosen, "test_exit_code", SMDEBUG_EMULATOR_TEST_BACK_ENDS="forgetful")
    assert "2 failed, 1 passed" in broken.stdout, broken.stdout


@pytest.mark.nightly
def test_the_contract_suite_runs_with_a_fixture_of_their_own(distribution: Path, tmp_path: Path) -> None:
    """The distribution's tests are the page's file."""
    file = re.search(
        r'^```python title="tests/test_contract.py"\n(.*?)^```$', PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert file is not None
    (tmp_path / "test_contract.py").write_text(file[1])
    chosen = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_contract.py")
    kept = call(distribution, tmp_path, *chosen)
    assert kept.returncode == 0, kept.stdout
    assert " passed" in kept.stdout
    assert "failed" not in kept.stdout


def test_its_name_is_a_choice_of_the_command(distribution: Path, tmp_path: Path) -> None:
    program = ("-m", "emulator", "doctor", "--runtime")
    found = call(distribution, tmp_path, *program, "borrowed").stdout
    assert "missing borrowed  no time is left, running: False" in found
    assert "-> borrow some" in found
    refused = call(distribution, tmp_path, *program, "bought").stderr
    assert "'bought' is not a container back end: use one of auto, borrowed, broken, docker, forgetful" in refused


OPENED = {
    "borrowed": "borrowed Containers run on borrowed time.",
    "process": "process Containers run as local processes, as requested.",
    "broken": "(borrowed_time_that_is_not_there:BACK_END) cannot be imported: ModuleNotFoundError",
    "text": "text (borrowed_time:NO_BACK_END) is not a BackEnd.",
    "missing": "named 'missing'; there is borrowed, broken, docker, forgetful, mine, process, swarm, text.",
}


def test_each_is_opened_by_its_name(distribution: Path, tmp_path: Path) -> None:
    """Nobody's entry point takes the name of ours, and what cannot be opened says why."""
    source = f"""
from pathlib import Path
from container_runtime.back_ends import RuntimeOptions
from container_runtime.runtime import ContainerRuntimeError
from container_runtime.selection import select_runtime
for name in {list(OPENED)}:
    try:
        chosen = select_runtime(name, RuntimeOptions(Path({str(tmp_path)!r}) / name))
        print(chosen.runtime.name, chosen.reason)
    except ContainerRuntimeError as error:
        print(str(error).replace("\\n", " "))
"""
    done = call(distribution, tmp_path, "-c", source)
    lines = done.stdout.splitlines()
    assert len(lines) == len(OPENED), done.stderr
    for (name, said), line in zip(OPENED.items(), lines, strict=True):
        assert said in line, name
