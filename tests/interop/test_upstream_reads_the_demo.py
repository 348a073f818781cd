"""Tests of the demo's runs, read by the real smdebug 1.0.34.

The demo runs as `make demo` runs it.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from smdebug.trials import create_trial
from tests.interop.test_upstream_reads_ours import read_ours
from tests.interop.upstream import Upstream
from tests.running_emulator import BACK_ENDS

# What a demo prints and leaves is the same on each back end.
pytestmark = [pytest.mark.any_back_end, pytest.mark.nightly]

CHECKOUT = Path(__file__).parents[2]


@dataclass
class Demo:
    output: Path
    exit_code: int
    printed: str


@pytest.fixture(scope="module", params=BACK_ENDS)
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    # A path relative to the checkout, as the default that `make demo` uses.
    output = Path(os.path.relpath(tmp_path_factory.mktemp("demo") / "output", CHECKOUT))
    command = [sys.executable, "-m", "emulator", "demo", "--runtime", request.param, "--output", str(output)]
    environment = {name: value for name, value in os.environ.items() if name != "SMDEBUG_EMULATOR_NO_WARM"}
    ran = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=560, check=False
    )
    return Demo(CHECKOUT / output, ran.returncode, ran.stdout + ran.stderr)


def test_demo_ends_well(demo: Demo) -> None:
    assert demo.exit_code == 0, demo.printed
    assert "digits-sick    Stopped   Stopped   VanishingGradient IssuesFound   0" in demo.printed
    assert "digits-healthy Completed Completed VanishingGradient NoIssuesFound -" in demo.printed
    assert "s3://digits-demo/tensors/digits-sick/debug-output" in demo.printed
    assert "NO " not in demo.printed


@pytest.mark.parametrize("job", ["digits-sick", "digits-healthy"])
def test_upstream_reads_the_tensors_that_the_demo_left(demo: Demo, job: str, upstream: Upstream) -> None:
    run = demo.output / "tensors" / job
    original, ours = upstream.read_run(run), read_ours(create_trial(str(run)))
    gradients = ours["collections"]["gradients"]
    assert "gradient/Sequential_0.weight" in gradients
    assert len(gradients) == {"digits-sick": 22, "digits-healthy": 6}[job]
    for name, found in ours["tensors"].items():
        assert found == original["tensors"][name], name
    assert ours == original


def test_gradients_of_the_sick_job_really_vanish(demo: Demo) -> None:
    def smallest_mean(job: str) -> float:
        trial = create_trial(str(demo.output / "tensors" / job))
        step = trial.steps()[0]
        means = [
            trial.tensor(name).reduction_value(step, "mean", abs=True)
            for name in trial.tensor_names(collection="gradients", step=step)
        ]
        return float(min(means))

    assert smallest_mean("digits-sick") < 1e-7 < smallest_mean("digits-healthy")
