"""Tests of examples/notebooks: the notebooks run and show what they describe."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.nightly

CHECKOUT = Path(__file__).parents[2]
NOTEBOOKS = CHECKOUT / "examples" / "notebooks"
PROGRAMS = Path(sys.executable).parent
# What the outputs hold, in this order, and how many pictures there are.
SHOWN: dict[str, tuple[list[str], int]] = {
    "train_watch_plot": (
        [r"Completed  NoIssuesFound  NoIssuesFound", r"step=150 loss=0\.\d+", "20 steps saved", "LossNotDecreasing No"],
        3,
    ),
    "built_in_rules": (
        [
            "sigmoid VanishingGradient IssuesFound",
            "relu VanishingGradient NoIssuesFound",
            '"Rule": "VanishingGradient"',
        ],
        1,
    ),
    "custom_rule": (
        ["0.0001 NoIssuesFound", "0.1 IssuesFound", "0.0001 never fires", r"0\.01 fires", "1.0 fires at step 0"],
        0,
    ),
    "action_on_rule": (
        ["stopped-by-its-rule.* Stopped", "LossNotDecreasing Issues", "stopped-by-lambda.* Stopped", "Stopping stopp"],
        0,
    ),
    "stalled_training": (["Stopping Stopping the training job", "StalledTrainingRule IssuesFound"], 0),
    "spot_training": (
        [
            "Interrupted spot-",
            "Interrupted - ",
            "Completed - ",
            "begins at step 0",
            r"begins at step [1-9]",
            "last is 75",
        ],
        1,
    ),
    "xgboost_census": (
        ["people earn more", "The model looks least at: height", "The strongest reason", r"not seen: 0\.[89]"],
        3,
    ),
    "xgboost_regression": (
        ["ValidationNotImproving Issues", "FeatureImportanceOverweight No", r"round \d+ of 40", "most important: "],
        2,
    ),
    "real_time_analysis": ([r"step 0 while the job is InProgress", "step 50 while", "filters saved at 6 steps"], 2),
    "pruning": ([r"round 0: 24 filters", r"round 1: 16 filters", r"round 2: 11 filters, accuracy 0\.[89]"], 1),
    "autoencoder": (
        ["Completed", '"Training": ', "'TensorVariance': 'NoIssuesFound', 'LossNotDecreasing': 'No", "at first, [89]"],
        2,
    ),
}


def read_cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def run_notebook(name: str, folder: Path) -> Path:
    """Execute a copy of a notebook, and return it; its outputs are in it.

    Each has an emulator of its own, which `run` starts: the stop handler of one would stop the jobs of another.
    """
    path = Path(shutil.copy2(NOTEBOOKS / f"{name}.ipynb", folder))
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "JUPYTER_"))}
    environment = kept | {
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "HOME": str(folder),
        "IPYTHONDIR": str(folder / "ipython"),
        "SMDEBUG_EMULATOR_STATE_DIR": str(folder / "state"),
    }
    notebook = ["jupyter", "execute", "--inplace", "--timeout=290", path.name]
    command = ["smdebug-emulator", "run", "--runtime", "process", "--", *notebook]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=580, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return path


@pytest.fixture(scope="module")
def executed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Path]]]:
    """Executions of the notebooks that are asked for, two at a time: most of each is waiting for its jobs."""
    with ThreadPoolExecutor(2) as pool:
        yield {
            name: pool.submit(run_notebook, name, tmp_path_factory.mktemp(name))
            for name in SHOWN
            if any(item.name == f"test_a_notebook_shows_what_it_says[{name}]" for item in request.session.items)
        }


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_what_it_says(name: str, executed: dict[str, Future[Path]]) -> None:
    outputs = [output for cell in read_cells(executed[name].result()) for output in cell.get("outputs", [])]
    text = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    expected, pictures = SHOWN[name]
    position = 0
    for pattern in expected:
        found = re.compile(pattern).search(text, position)
        assert found, f"{pattern!r} is not in, after what comes before it:\n{text}"
        position = found.end()
    shown = [kind for output in outputs for kind in output.get("data", {}) if kind.startswith("image/")]
    assert len(shown) == pictures, shown


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs_and_is_tested(path: Path) -> None:
    cells = read_cells(path)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)
    assert cells[0]["source"][0].startswith("# ")
    assert path.stem in SHOWN
