"""Tests of MXNet jobs: an unmodified Gluon script, and one with a hook."""

import io
import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.frameworks.job import BUCKET, build_request, stage_scripts
from smdebug import modes
from smdebug.trials import Trial, create_trial
from tests.end_to_end.finished_jobs import download_model, download_run, read_log
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

# By day, tests/integration/smdebug/mxnet runs the hook in the same environment.
pytestmark = pytest.mark.nightly
NETWORK = {f"dense{layer}_{kind}" for layer in range(3) for kind in ("weight", "bias")}


@pytest.fixture(scope="session")
def with_script(emulator: RunningEmulator) -> RunningEmulator:
    stage_scripts(emulator.client("s3"), "mxnet")
    return emulator


@pytest.fixture
def train(
    with_script: RunningEmulator, wait_for_job: Callable[..., dict[str, Any]], tmp_path: Path
) -> Callable[..., tuple[Trial, dict[str, Any], dict[str, bytes]]]:
    """Run a job to its end; return its tensors, its description and the files of its model."""

    def run(script: str, **hyperparameters: Any) -> tuple[Trial, dict[str, Any], dict[str, bytes]]:
        name = f"mxnet-{uuid.uuid4().hex[:8]}"
        request = build_request("mxnet", name, script, **hyperparameters)
        with_script.client("sagemaker").create_training_job(**request)
        description = wait_for_job(name)
        assert description["TrainingJobStatus"] == "Completed", description
        run = download_run(with_script, BUCKET, name, tmp_path)
        return create_trial(str(run)), description, download_model(with_script, description)

    return run


def read_accuracy(description: dict[str, Any]) -> float:
    (metric,) = description["FinalMetricDataList"]
    return float(metric["Value"])


def test_untouched_script(train: Any, with_script: RunningEmulator) -> None:
    trial, description, model = train("train.py", epochs=4)
    assert 0.9 < read_accuracy(description) < 1
    assert json.loads(model["metrics.json"])["test_accuracy"] == pytest.approx(read_accuracy(description), abs=1e-4)
    steps = trial.steps(mode=modes.TRAIN)
    assert len(steps) == 88, "22 batches in each of 4 epochs"
    assert trial.tensor("dense0_weight").steps(mode=modes.TRAIN) == [0, 20, 40, 60, 80]
    assert trial.steps(mode=modes.EVAL) == [0]
    assert set(trial.tensor_names(collection="weights")) == {name for name in NETWORK if "weight" in name}
    assert set(trial.tensor_names(collection="gradients")) == {f"gradient/{name}" for name in NETWORK}
    assert set(trial.tensor_names(collection="activations")) == {"dense0_relu_output_0", "dense1_relu_output_0"}
    losses = [float(np.mean(trial.tensor("softmaxcrossentropyloss0_output_0").value(step))) for step in steps]
    name = description["TrainingJobName"]
    wait_until(lambda: read_log(with_script, name).count("train_loss=") == 4, "the last lines of the log")
    log = read_log(with_script, name)
    printed = [float(loss) for loss in re.findall(r"train_loss=([0-9.]+);", log)]
    assert np.mean(np.reshape(losses, (4, 22)), axis=1) == pytest.approx(printed, abs=1e-4)
    assert "The request is for mxnet-training:1.9.0-cpu-py38" in log


@pytest.mark.any_back_end
def test_script_with_a_hook(train: Any) -> None:
    trial, description, model = train("train_with_hook.py", **{"epochs": 1, "batch-size": 16})
    assert 0.9 < read_accuracy(description) < 1
    assert len(trial.steps(mode=modes.TRAIN)) == 85, "batches in the one epoch"
    assert trial.steps(mode=modes.EVAL) == [0]
    accuracy = trial.tensor("scalar/accuracy").value(0, mode=modes.EVAL)
    assert accuracy == pytest.approx(read_accuracy(description), abs=1e-4)
    assert "dense0_relu_output_0" in trial.tensor_names(collection="activations")
    assert not trial.tensor_names(step=0, mode=modes.EVAL, regex="^gradient")
    weights = np.load(io.BytesIO(model["weights.npz"]))
    assert set(weights) == NETWORK
    for name in trial.tensor_names(collection="weights"):
        np.testing.assert_array_equal(trial.tensor(name).value(0, mode=modes.EVAL), weights[name], err_msg=name)
