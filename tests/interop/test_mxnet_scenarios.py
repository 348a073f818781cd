"""Comparison of the runs that our smdebug and the real 1.0.34 write under MXNet.

What stays different is listed in docs/frameworks.md, "Differences from upstream".
"""

import pytest

from benchmarks.hooks.hook_cost_mxnet import REQUIREMENTS
from benchmarks.shared.environments import build_upstream
from tests.interop.mxnet_scenarios import SCENARIOS
from tests.interop.scenario_runs import ScenarioRuns, check_scenario, run_scenarios

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

_MODES = "Upstream saves the last step before a change of mode by the settings of the next mode."
DIFFERENT = {"epochs": _MODES, "epochs_of_modes": _MODES}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> ScenarioRuns:
    """What both libraries have written and read."""
    python = build_upstream(REQUIREMENTS)
    return run_scenarios("mxnet_scenarios", SCENARIOS, python, None, tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_same_script_leaves_the_same_run(runs: ScenarioRuns, scenario: str) -> None:
    check_scenario(runs, scenario, DIFFERENT)
