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
from tests.end_to_end.finished_jobs import JobsByKind, download_model, download_run, read_log
from tests.end_to_end.test_failures import build_script_request
from tests.running_emulator import IMAGE_BY_DAY, RunningEmulator

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


@pytest.mark.parametrize("emulator", IMAGE_BY_DAY, indirect=True)
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


# unit/smdebug/tensorflow has loops with hooks, and what they save.
@pytest.mark.nightly
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


# unit/smdebug/tensorflow/test_tensorflow_io.py has paths of S3.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_a_script_saves_and_reads_at_a_path_of_s3(staged: RunningEmulator, job_name: str, wait_for_job: Any) -> None:
    """The SDK gives each script of TensorFlow such a model_dir; this one does nothing for it."""
    script = """
import argparse, keras, numpy, tensorflow as tf
parser = argparse.ArgumentParser()
parser.add_argument("--model_dir")
folder = parser.parse_known_args()[0].model_dir
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
model.save(folder + "/last.keras")
model.export(folder + "/served/1", verbose=False)
same = keras.models.load_model(folder + "/last.keras")(numpy.ones((1, 3))) == model(numpy.ones((1, 3)))
print("FOUND", bool(tf.reduce_all(same)), sorted(tf.io.gfile.listdir(folder)))
left_open = tf.io.gfile.GFile(folder + "/note.txt", "w")
left_open.write("saved")
left_open.flush()
"""
    request = build_script_request(staged, job_name, script)
    request["AlgorithmSpecification"]["TrainingImage"] = build_request("tensorflow", job_name, "train.py", epochs=1)[
        "AlgorithmSpecification"
    ]["TrainingImage"]
    request["HyperParameters"]["model_dir"] = f'"s3://{BUCKET}/{job_name}/model"'
    staged.client("s3").create_bucket(Bucket=BUCKET)
    staged.client("sagemaker").create_training_job(**request)
    description, log = wait_for_job(job_name), read_log(staged, job_name)
    assert description["TrainingJobStatus"] == "Completed", log[-3000:]
    assert "FOUND True ['last.keras', 'served']" in log
    assert "no file system" not in log
    assert "only once the script has imported" not in log
    written = staged.client("s3").get_object(Bucket=BUCKET, Key=f"{job_name}/model/note.txt")["Body"].read()
    assert written == b"saved"
