"""Comparison of the runs that our smdebug and the real 1.0.34 write under PyTorch.

What stays different is listed in docs/frameworks.md, "Differences from upstream".
"""

from collections.abc import Iterator

import pytest
import torch

from benchmarks.shared.environments import build_upstream
from tests.interop.pytorch_scenarios import SCENARIOS
from tests.interop.scenario_runs import ScenarioRuns, check_scenario, run_scenarios

pytestmark = pytest.mark.timeout(600)

_TURNED_OFF = "An error turns upstream off, without a word to the script."
DIFFERENT = {
    "no_step": "Settings of collections that no step has prepared.",
    "no_model": "Settings of collections that no step has prepared.",
    "collection_empty": "Settings of collections that no step has prepared.",
    "epochs_of_one_mode": "Upstream fails in the first step of a mode without a save_config.",
    "train_in_eval_mode": "Upstream lists gradients that it does not save.",
    "regex_wrong": "A wrong regex is refused by the constructor, not by the first step.",
    "reductions_of_modes": "Upstream fails at the mean of whole numbers.",
    "loss_of_wrong_type": _TURNED_OFF,
    "model_of_wrong_type": _TURNED_OFF,
    "registered_twice": _TURNED_OFF,
    "folder_exists": _TURNED_OFF,
    "no_folder": _TURNED_OFF,
    "wrong_settings": _TURNED_OFF,
    "dry_run": "A dry run writes no collections file.",
    "closed_early": "Upstream goes on after close().",
    "mode_after_the_forward_pass": "A change of mode ends the step.",
    "custom_added_late": "Upstream asks once which collections are included.",
    "layer_replaced": "Upstream watches the parameters that the model had when it was registered.",
    "hook_of_the_script": "Upstream's hooks run before those that the script registers later.",
    "gradient_hook_of_the_script": "Upstream's hooks run before those that the script registers later.",
    "part_called_before_the_model": "Upstream ends the training.",
    "scripted": "Upstream ends the training.",
    "questions_of_the_hook": "Upstream makes a collection of each name that it is asked about.",
}


# One of each kind of training, loss, saved value and file, and two that differ. Of settings of collections and shapes
# test_upstream_reads_ours.py and test_upstream_reads_special_runs.py have runs, which upstream reads.
BY_DAY = {
    "default",
    "epochs_of_modes",
    "mode_after_the_forward_pass",
    "custom_interval",
    "reductions",
    "functional_loss",
    "loss_of_wrong_type",
    "save_tensor",
    "tensorboard",
    "two_models",
}
CASES = [pytest.param(name, marks=[] if name in BY_DAY else pytest.mark.nightly) for name in SCENARIOS]


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """As many threads of PyTorch as upstream's process has: otherwise sums are rounded differently.

    Where a gradient is 0 but for that, Adam makes it as large as any other.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def runs(one_thread: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ScenarioRuns:
    """What both libraries have written and read of the scripts whose tests run."""
    tests = (item for item in request.session.items if item.path == request.path and isinstance(item, pytest.Function))
    chosen = [str(test.callspec.params["scenario"]) for test in tests]
    folder = tmp_path_factory.mktemp("runs")
    return run_scenarios("pytorch_scenarios", chosen, build_upstream(), None, folder, writes_here=True)


@pytest.mark.parametrize("scenario", CASES)
def test_the_same_script_leaves_the_same_run(runs: ScenarioRuns, scenario: str) -> None:
    check_scenario(runs, scenario, DIFFERENT)
