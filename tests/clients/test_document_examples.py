"""Tests of examples/documents: the scripts run in parallel on one emulator.

They are started as their README says.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.running_emulator import RunningEmulator

pytestmark = pytest.mark.nightly

CHECKOUT = Path(__file__).parents[2]
FOLDER = CHECKOUT / "examples" / "documents"
# What each prints, in this order.
PRINTED: dict[str, list[str]] = {
    "save_collections": [
        *(
            rf"built-in {name}: [1-9]\d* tensors at steps {steps}"
            # Keras saves the loss at the end of the epoch, too.
            for name, steps in {
                "weights": r"\[0\]",
                "gradients": r"\[0\]",
                "losses": r"\[0, 63\]",
                "biases": r"\[0\]",
            }.items()
        ),
        r"modified losses: \d+ tensors at steps \[0, 50, 63\]",
        r"custom custom_activations_collection: [1-9]\d* tensors at steps \[0\]",
    ],
    "zero_script_change": ["ExplodingTensor NoIssuesFound"],
    "keras_hook": ["Modes: EVAL TRAIN", r"was \d\.\d+ at step 0"],
    "custom_rule": ["VGRule IssuesFound", r"No gradient is nothing at all, in steps \[0, 5, 10\]"],
    "stop_by_lambda": ["VGRule IssuesFound", "stopped-by-lambda-.* Stopped"],
    "tensorboard_output": [r"\d+ files for TensorBoard"],
}


@pytest.fixture(scope="module")
def served(start_emulator: Callable[..., RunningEmulator]) -> Iterator[RunningEmulator]:
    """An emulator of their own, which shows what they leave behind."""
    running = start_emulator("process")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def started(
    request: pytest.FixtureRequest, served: RunningEmulator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Those that are asked for: most of each is waiting for its jobs."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("AWS_")},
        "HOME": str(tmp_path_factory.mktemp("home")),
        "SMDEBUG_EMULATOR_STATE_DIR": str(served.state_dir),
    }
    run = [sys.executable, "-W", "ignore", "-m", "emulator", "run", "--", sys.executable, "-W", "ignore"]
    programs = {
        name: subprocess.Popen(
            [*run, str(FOLDER / f"{name}.py")],
            cwd=CHECKOUT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in PRINTED
        if any(item.name.endswith((f"[{name}]", "is_gone_afterwards")) for item in request.session.items)
    }
    yield programs
    for program in programs.values():
        if program.poll() is None:
            program.kill()
        program.communicate()


@pytest.mark.parametrize("name", PRINTED)
def test_a_documented_script_does_what_the_document_says(name: str, started: dict[str, subprocess.Popen[str]]) -> None:
    printed, _ = started[name].communicate(timeout=560)
    assert started[name].returncode == 0, printed
    position = 0
    for pattern in PRINTED[name]:
        found = re.compile(pattern).search(printed, position)
        assert found, f"{pattern!r} is not in, after what comes before it:\n{printed}"
        position = found.end()


def test_the_function_that_stops_jobs_is_gone_afterwards(
    served: RunningEmulator, started: dict[str, subprocess.Popen[str]]
) -> None:
    """It would stop the jobs of others, and could not be deployed a second time."""
    started["stop_by_lambda"].wait(timeout=560)
    assert served.client("lambda").list_functions()["Functions"] == []
    assert served.client("events").list_rules()["Rules"] == []
    roles = [role["RoleName"] for role in served.client("iam").list_roles()["Roles"]]
    assert "DebuggerDocuments" not in roles


def test_every_script_is_in_the_table_and_tested() -> None:
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts == PRINTED.keys()
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert scripts == set(re.findall(r"\| `(\w+)\.py` \|", table))
