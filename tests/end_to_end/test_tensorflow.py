"""Tests of TensorFlow jobs in both back ends.

An unmodified Keras script, and a custom loop with a hook.
"""

import io
import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.frameworks.job import BUCKET, build_request, stage_scripts
from smdebug import modes
from smdebug.trials import create_trial
from tests.end_to_end.finished_jobs import JobsByKind, download_model, download_run
from tests.running_emulator import RunningEmulator

SCRIPTS = {"untouched": "train.py", "hook": "train_with_hook.py"}
EPOCHS = 6


@pytest.fixture(scope="module")
def jobs(emulator: RunningEmulator) -> dict[str, str]:
    """Names of the jobs by kind."""
    stage_scripts(emulator.client("s3"), "tensorflow")

    def start(kind: str) -> str:
        name = f"tf-{kind}-{uuid.uuid4().hex[:8]}"
        request = build_request("tensorflow", name, SCRIPTS[kind], epochs=EPOCHS)
        emulator.client("sagemaker").create_training_job(**request)
        return name

    return JobsByKind(start)


@pytest.fixture
def read_job(jobs: dict[str, str], emulator: RunningEmulator, wait_for_job: Any, tmp_path: Path) -> Any:
    """Wait for a job; its description, its tensors, and the files of its model by name."""

    def read(kind: str) -> tuple[dict[str, Any], Any, dict[str, bytes]]:
        description = wait_for_job(jobs[kind])
        assert description["TrainingJobStatus"] == "Completed", description
        return (
            description,
            create_trial(str(download_run(emulator, BUCKET, jobs[kind], tmp_path))),
            download_model(emulator, description),
        )

    return read


def test_an_untouched_keras_script_is_captured(read_job: Any) -> None:
    description, trial, files = read_job("untouched")
    reported = json.loads(files["metrics.json"])
    metrics = {metric["MetricName"]: metric["Value"] for metric in description["FinalMetricDataList"]}
    assert metrics["test:accuracy"] == pytest.approx(reported["test_accuracy"], abs=1e-4)
    assert reported["test_accuracy"] > 0.93
    # 1,438 images are 12 batches of training an epoch, and 359 are 3 of validation, and of evaluation 12 of 32.
    assert len(trial.steps(mode=modes.TRAIN)) == len(range(0, 12 * EPOCHS, 10))
    assert trial.loaded_all_steps
    for step in trial.steps(mode=modes.TRAIN):
        for name in ("loss", "accuracy"):
            saved = trial.tensor(name).value(step, mode=modes.TRAIN)[0]
            assert saved == pytest.approx(reported["batches"][step][name], rel=1e-6)
    gradients = trial.tensor_names(collection="gradients")
    assert len(gradients) == 4
    assert len(trial.tensor_names(collection="layers")) == 4
    # Adam's first momentum is a tenth of the first gradient.
    momentum = trial.tensor("adam/digits_hidden_kernel_momentum:0").value(0, mode=modes.TRAIN)
    np.testing.assert_allclose(
        0.1 * trial.tensor("gradients/digits/hidden/kernelGrad").value(0), momentum, rtol=1e-4, atol=1e-8
    )
    # Validation ends each epoch: what the last evaluation used is what training left.
    weights = np.load(io.BytesIO(files["weights.npz"]))
    last = trial.steps(mode=modes.EVAL)[-1]
    for path in weights.files:
        saved = trial.tensor(f"{path.split('/')[1]}/weights/{path}:0").value(last, mode=modes.EVAL)
        np.testing.assert_array_equal(saved, weights[path])


@pytest.mark.any_back_end
def test_a_loop_with_a_hook_is_captured(read_job: Any) -> None:
    _, trial, files = read_job("hook")
    reported = json.loads(files["metrics.json"])
    assert reported["test_accuracy"] > 0.93
    gradients = list(np.load(io.BytesIO(files["gradients.npz"])).values())
    steps = trial.steps(mode=modes.TRAIN)
    assert set(range(0, 12 * EPOCHS, 10)) <= set(steps)
    for step in range(0, 12 * EPOCHS, 10):
        assert trial.tensor("loss").value(step, mode=modes.TRAIN) == pytest.approx(reported["losses"][step], rel=1e-6)
        saved = trial.tensor("gradients/digits/hidden/kernelGrad").value(step, mode=modes.TRAIN)
        np.testing.assert_array_equal(saved, gradients[step])
    assert {"weights/digits/hidden/kernel:0", "weights/digits/scores/kernel:0"} == set(
        trial.tensor_names(collection="weights")
    )
    assert "scalar/epoch" in trial.tensor_names()
    assert "hidden/outputs" in trial.tensor_names(collection="layers")
