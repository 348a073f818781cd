"""Comparison of the runs that our smdebug and the real 1.0.34 write under Keras 2.

What stays different is listed in docs/frameworks.md, "Differences from upstream".
"""

from pathlib import Path

import pytest

from benchmarks.shared.environments import build_packages
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.environments import build_environment
from tests.interop.keras_scenarios import HIDDEN, SCENARIOS
from tests.interop.scenario_runs import HERE, ScenarioRuns, find_differences, run_scenarios

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]

# Upstream takes Keras' variables for what it does not know in any later TensorFlow, and saves nothing.
NEWEST_OF_ORIGINAL = "2.12"
_OTHER_CALLBACKS = "Numbers of a batch are float32; upstream's are float64 beside other callbacks."
DIFFERENT = {
    "scalars_of_epochs": "Upstream replaces the last step's files by those of the last scalar.",
    "scalars_of_batches": _OTHER_CALLBACKS,
    "scalars_of_batches_by_default": _OTHER_CALLBACKS,
    "attributes": "upstream's Keras hook never sets last_saved_step.",
    "subclassed": "Upstream has no weights of subclassed models.",
}


@pytest.fixture(scope="module", params=["2.12", pytest.param("2.15", marks=pytest.mark.versions)])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def runs(version: str, tmp_path_factory: pytest.TempPathFactory) -> ScenarioRuns:
    """What both libraries have written and read, upstream always in the newest version that it works in."""
    pythons = {each: find_python(each) for each in (version, NEWEST_OF_ORIGINAL)}
    original: Path = build_packages(HERE / "requirements-upstream-alone.txt", pythons[NEWEST_OF_ORIGINAL])
    folder = tmp_path_factory.mktemp("runs")
    return run_scenarios("keras_scenarios", SCENARIOS, pythons[version], original, folder, pythons[NEWEST_OF_ORIGINAL])


def find_python(version: str) -> Path:
    name = f"tensorflow-training-{version}"
    return build_environment(next(found for found in ImageCatalogue() if found.name == name), compiled=False).python


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_same_script_leaves_the_same_run(runs: ScenarioRuns, scenario: str) -> None:
    assert runs.written["ours"][scenario]["raises"] is None
    differences = find_differences(runs, scenario, HIDDEN)
    if scenario in DIFFERENT:
        assert differences, "It has become the same: take it off the list."
    else:
        assert differences == []


def test_losses_are_loss_and_val_loss_alone(runs: ScenarioRuns) -> None:
    collections = runs.read["ours"]["ours"]["two_outputs"]["collections"]
    assert set(collections["losses"]) == {"loss", "val_loss"}
    assert {"one_loss", "two_loss", "val_one_loss", "val_two_loss"} <= set(collections["metrics"])
