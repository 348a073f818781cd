"""Tests of our MXNet runs, read by the real smdebug 1.0.34.

It finds what upstream's own hook saved.
"""

import subprocess
from pathlib import Path

import pytest

from smdebug import modes
from smdebug.trials import create_trial
from tests.integration.smdebug.mxnet.environment import ROOT, build_mxnet_environment
from tests.interop.test_upstream_reads_ours import read_ours
from tests.interop.upstream import Upstream

# By day test_upstream_reads_ours.py has PyTorch's runs read, and in_mxnet/check_hook.py says what MXNet's hold.
pytestmark = pytest.mark.nightly

KINDS = ("everything", "hybridized_with_modes", "reductions", "float64")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mxnet")
    ran = subprocess.run(
        [build_mxnet_environment(), Path(__file__).with_name("write_mxnet_runs.py"), folder],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_upstream_reads_what_we_read(kind: str, runs: Path, upstream: Upstream) -> None:
    out_dir = str(runs / kind)
    ours, original = read_ours(create_trial(out_dir)), upstream.read_run(out_dir)
    assert ours["tensors"].keys() == original["tensors"].keys()
    for name, found in ours["tensors"].items():
        assert found == original["tensors"][name], name
    assert ours == original
    assert ours["loaded_all_steps"]


def test_a_run_of_ours_holds_what_a_run_of_upstream_holds(runs: Path, recorded_runs: Path) -> None:
    """Guards the comparison above: a hook that wrote nothing would agree with anything."""
    recorded = str(recorded_runs / "mx_save_all" / "run")
    ours, theirs = read_ours(create_trial(str(runs / "everything"))), read_ours(create_trial(recorded))
    assert ours["tensors"].pop("scalar/number")
    ours["collections"]["all"].remove("scalar/number")
    for key in ("steps", "modes", "places", "workers", "collections"):
        assert ours[key] == theirs[key], key
    for name, steps in theirs["tensors"].items():
        for step, workers in steps.items():
            for worker, found in workers.items():
                mine = ours["tensors"][name][step][worker]["value"]
                assert (mine["dtype"], mine["shape"]) == (found["value"]["dtype"], found["value"]["shape"]), name


def test_kinds_hold_what_their_names_say(runs: Path) -> None:
    assert {path.name for path in runs.iterdir()} == set(KINDS)
    reductions = create_trial(str(runs / "reductions")).tensor("gradient/dense0_weight").reduction_values(0)
    assert len(reductions) == 18
    assert all(number.shape == (1,) for number in reductions.values())
    relu = create_trial(str(runs / "hybridized_with_modes")).tensor("dense0_relu_output_0")
    assert (relu.steps(mode=modes.TRAIN), relu.steps(mode=modes.EVAL)) == ([0, 2, 4], [0, 1])
