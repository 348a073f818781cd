"""Tests of the README: every command runs, against a running emulator."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sdk_compat.environment import prepare_environment
from tests.forked_emulator import ForkedEmulator
from tests.running_emulator import RunningEmulator

CHECKOUT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/commands.md")
BLOCKS = [
    # A page of docs/ that takes more than ten seconds.
    pytest.param(kind, text, id=f"{page}-{number}-{kind}", marks=[pytest.mark.nightly] if page != "README.md" else ())
    for page in PAGES
    for number, (kind, text) in enumerate(
        re.findall(r"^```(sh|python)\n(.*?)^```", (CHECKOUT / page).read_text(), re.MULTILINE | re.DOTALL), 1
    )
]
# Run by other tests, or not at an end until somebody ends them.
ELSEWHERE = ("make ", "uvx ", "pipx ", "docker ", "smdebug-emulator demo", "smdebug-emulator start")


@pytest.fixture(scope="module")
def readme_emulator(
    start_emulator: Callable[..., RunningEmulator], tmp_path_factory: pytest.TempPathFactory
) -> RunningEmulator:
    return start_emulator("process", state_dir=tmp_path_factory.mktemp("readme") / "state", warm=False)


def test_the_pages_have_blocks() -> None:
    assert len(BLOCKS) > 6


@pytest.mark.parametrize(("kind", "text"), BLOCKS)
def test_readme_block_runs(
    kind: str,
    text: str,
    readme_emulator: RunningEmulator,
    recorded_runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if kind == "python" and "SageMakerEmulator(" in text:
        # In this process, and its emulator in a fork.
        monkeypatch.setattr("sdk_compat.sagemaker_emulator.EmulatorProcess", ForkedEmulator)
        monkeypatch.chdir(tmp_path)
        exec(text, {})
        return
    demo = tmp_path / ".demo" / "tensors"  # where `make demo`, a line of another block, copies what its jobs saved
    demo.mkdir(parents=True)
    (demo / "digits-sick").symlink_to(recorded_runs / "pt_save_all" / "run")
    home = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "SMDEBUG_EMULATOR_STATE_DIR": str(readme_emulator.state_dir),
        "SMDEBUG_LOG_LEVEL": "error",
    }
    if kind == "sh":
        lines = [line for line in text.splitlines() if not line.startswith(ELSEWHERE)]
        command = ["bash", "-euc", "\n".join(lines)]
    else:
        command = [sys.executable, "-W", "ignore", "-c", text]
        home |= prepare_environment(readme_emulator.endpoint_url, home)
    ran = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"


def test_every_target_of_the_readme_exists() -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", (CHECKOUT / "README.md").read_text(), re.MULTILINE))
    makefile = (CHECKOUT / "Makefile").read_text()
    assert named <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert os.access(CHECKOUT / ".ci" / "run", os.X_OK)


def test_setup_says_how_to_go_on() -> None:
    command = ["make", "--no-print-directory", "--old-file=.venv/.runs", "MAKE=true", "setup"]
    said = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    activate = ". .venv/bin/activate"
    assert said == f"The command is .venv/bin/smdebug-emulator. Next: {activate} && smdebug-emulator start --detach\n"
    assert f"`{activate}`" in (CHECKOUT / "README.md").read_text()
