"""Tests of TensorFlow 2.11 and 2.14 jobs: Keras 2 and an estimator.

The SageMaker SDK asks for them; they are captured, judged and stopped.
"""

import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.frameworks.job import BUCKET
from sdk_compat.demo.training_job import stage_digits
from sdk_compat.environment import prepare_environment
from smdebug import modes
from smdebug.trials import Trial, create_trial
from tests.end_to_end.finished_jobs import download_run, read_log, wait_until_ended
from tests.end_to_end.test_failures import build_script_request
from tests.running_emulator import RunningEmulator

SDK_SCRIPT = Path(__file__).parents[2] / "examples" / "frameworks" / "tensorflow_keras_2" / "estimator.py"
# The first jobs build the environment, or the Docker image.
BUILD_SECONDS = 900

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(BUILD_SECONDS + 300)]


@dataclass(frozen=True)
class Jobs:
    """What the SDK's script started: the version that it asked for, the one that runs, and names by kind."""

    requested: str
    runs: str
    names: dict[str, str]


@pytest.fixture(scope="module", params=["2.11", pytest.param("2.14", marks=pytest.mark.versions)])
def jobs(request: pytest.FixtureRequest, emulator: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """Both jobs by kind."""
    runs, python = {
        "2.11": ("2.12.1-cpu-py311, made for what is older than 2.13", "py39"),
        "2.14": ("2.15.1-cpu-py311, made for what is older than 2.16", "py310"),
    }[request.param]
    stage_digits(emulator.client("s3"), BUCKET)
    names = {kind: f"tf-{kind}-{uuid.uuid4().hex[:8]}" for kind in ("keras", "estimator")}
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path_factory.mktemp("home"))}
    environment = home | prepare_environment(emulator.endpoint_url, home)
    command = [sys.executable, "-W", "ignore", str(SDK_SCRIPT), BUCKET, *names.values(), request.param, python]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return Jobs(request.param, runs, names)


def wait_until_stopped(emulator: RunningEmulator, jobs: Jobs, kind: str, rule: str) -> dict[str, Any]:
    """Wait for the end of a job that its own rule has to stop; what its log said of versions is in the description."""
    name = jobs.names[kind]
    description = wait_until_ended(emulator, name, seconds=BUILD_SECONDS)
    assert description["TrainingJobStatus"] == "Stopped", (description, read_log(emulator, name)[-3000:])
    (judged,) = description["DebugRuleEvaluationStatuses"]
    assert (judged["RuleConfigurationName"], judged["RuleEvaluationStatus"]) == (rule, "IssuesFound")
    image = description["AlgorithmSpecification"]["TrainingImage"]
    assert image.partition("/")[2].startswith(f"tensorflow-training:{jobs.requested}"), image
    assert f"{jobs.runs}, runs in its place." in read_log(emulator, name)
    return description


def test_a_script_saves_and_reads_at_a_path_of_s3(staged: RunningEmulator, jobs: Jobs) -> None:
    """The SDK gives each script of TensorFlow such a model_dir."""
    script = """
import argparse, tensorflow as tf, tensorflow_io
parser = argparse.ArgumentParser()
parser.add_argument("--model_dir")
folder = parser.parse_known_args()[0].model_dir
model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
model.save(folder + "/1")
same = tf.keras.models.load_model(folder + "/1").get_weights()[0].tolist() == model.get_weights()[0].tolist()
with tf.io.gfile.GFile(folder + "/note.txt", "w") as file:
    file.write("saved")
print("FOUND", same, sorted(tf.io.gfile.listdir(folder)), tf.io.gfile.exists(folder + "/none"))
"""
    name = f"tf-s3-{uuid.uuid4().hex[:8]}"
    request = build_script_request(staged, name, script)
    request["AlgorithmSpecification"]["TrainingImage"] = f"tensorflow-training:{jobs.requested}-cpu"
    request["HyperParameters"]["model_dir"] = f'"s3://{BUCKET}/{name}/model"'
    if jobs.requested == "2.11":  # in 2.15, tensorflow-io aborts the exit of a script that no hook captures
        request.pop("DebugHookConfig")
    staged.client("sagemaker").create_training_job(**request)
    description, log = wait_until_ended(staged, name, seconds=BUILD_SECONDS), read_log(staged, name)
    assert description["TrainingJobStatus"] == "Completed", log[-3000:]
    assert "FOUND True ['1', 'note.txt'] False" in log
    assert "no file system" not in log
    written = staged.client("s3").get_object(Bucket=BUCKET, Key=f"{name}/model/note.txt")["Body"].read()
    assert written == b"saved"


def read_run(emulator: RunningEmulator, name: str, folder: Path) -> Trial:
    return create_trial(str(download_run(emulator, BUCKET, name, folder)))


def test_an_untouched_keras_2_script_is_stopped(jobs: Jobs, emulator: RunningEmulator, tmp_path: Path) -> None:
    wait_until_stopped(emulator, jobs, "keras", "VanishingGradient")
    trial = read_run(emulator, jobs.names["keras"], tmp_path)
    steps = trial.steps(mode=modes.TRAIN)
    assert steps == list(range(0, 20 * len(steps), 20))
    # As the original named them: by layers, without the model's own name.
    gradients = {f"gradients/{name}/{part}Grad" for name in ("hidden_0", "scores") for part in ("kernel", "bias")}
    assert gradients < set(trial.tensor_names(collection="gradients"))
    assert len(trial.tensor_names(collection="gradients")) == 22
    assert len(trial.tensor_names(collection="losses")) == 1
    # The legacy optimizer's first momentum is a tenth of the gradient, downwards.
    np.testing.assert_allclose(
        trial.tensor("SGD/scores/kernel/momentum:0").value(0),
        -0.1 * trial.tensor("gradients/scores/kernelGrad").value(0),
        rtol=1e-5,
        atol=1e-8,
    )
    # One saved step is enough for the rule: whether a second one came before the stop is chance.
    assert trial.tensor("scores/weights/scores/kernel:0").value(0).shape == (32, 10)


def test_an_untouched_estimator_is_stopped(jobs: Jobs, emulator: RunningEmulator, tmp_path: Path) -> None:
    wait_until_stopped(emulator, jobs, "estimator", "LossNotDecreasing")
    trial = read_run(emulator, jobs.names["estimator"], tmp_path)
    assert set(trial.modes()) == {modes.TRAIN}
    steps = trial.steps(mode=modes.TRAIN)
    assert steps == list(range(0, 20 * len(steps), 20))
    assert set(trial.tensor_names(collection="weights")) == {"hidden/kernel:0", "scores/kernel:0"}
    (loss,) = trial.tensor_names(collection="losses")
    assert "sparse_softmax_cross_entropy_loss" in loss
    gradients = {
        trial.tensor(name).value(0).shape: trial.tensor(name) for name in trial.tensor_names(collection="gradients")
    }
    # At a rate of nothing the weights rest, and the momentum adds the gradients up.
    kernel, momentum = trial.tensor("hidden/kernel:0"), trial.tensor("hidden/kernel/Momentum:0")
    np.testing.assert_array_equal(kernel.value(steps[0]), kernel.value(steps[-1]))
    assert gradients[64, 32].value(0).any()
    assert momentum.value(steps[1]).any()
