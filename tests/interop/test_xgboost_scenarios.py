"""Comparison of runs of upstream 1.0.34 and ours under XGBoost 1.7.

What stays different is listed in docs/frameworks.md, "Differences from upstream".
"""

import pytest

from benchmarks.shared.environments import build_environment
from tests.interop.scenario_runs import HERE, ScenarioRuns, check_scenario, run_scenarios
from tests.interop.xgboost_scenarios import SCENARIOS

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

_TURNED_OFF = "An error turns upstream off, without a word to the script."
_TREES = "Upstream saves one tree of a round, that whose number is the round's."
DIFFERENT = {
    "no_training": "Settings of collections that no round has prepared.",
    "collection_empty": "Settings of collections that no round has prepared.",
    "three_evals": "Settings of collections that no round has prepared.",
    "of_train_mode": "Upstream fails in the first round of a mode without a save_config.",
    "two_trainings": "upstream's second training replaces the first one's steps.",
    "continued": "upstream's second training replaces the first one's steps.",
    "regex_of_importance": "Upstream heeds regexes only in collections that are saved by name.",
    "multiclass": _TREES,
    "multiclass_probabilities": _TREES,
    "forest": _TREES,
    "linear_importance": "Upstream fails: a linear booster has weights alone.",
    "classifier": _TURNED_OFF,
    "regressor": "upstream's metrics have no names with a number, such as validation_0-rmse.",
    "cross_validation": "Upstream saves mean and deviation as one tensor.",
    "scalar_after": "Upstream replaces the last step's files by those of the last scalar.",
    "reductions_of_collection": "Upstream fails: it has no reductions here.",
    "dry_run": "A dry run writes no collections file.",
    "data_of_wrong_type": _TURNED_OFF,
    "folder_exists": _TURNED_OFF,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> ScenarioRuns:
    """What both libraries have written and read."""
    python = build_environment("upstream-xgboost", HERE / "requirements-upstream-xgboost.txt")
    return run_scenarios("xgboost_scenarios", SCENARIOS, python, None, tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_same_script_leaves_the_same_run(runs: ScenarioRuns, scenario: str) -> None:
    check_scenario(runs, scenario, DIFFERENT)
