"""Tests of jobs in framework versions of older images and of a requirements.txt.

The job gets that version, and it is captured.
"""

import re
import uuid
from pathlib import Path

import pytest

from examples.frameworks.job import BUCKET, stage_scripts
from sdk_compat.demo.training_job import (
    build_channels,
    build_script_mode,
    build_training_job,
    locate_source,
    stage_digits,
    stage_source,
)
from smdebug import modes
from smdebug.trials import create_trial
from tests.end_to_end.finished_jobs import download_model, download_run, read_log, wait_until_ended
from tests.end_to_end.test_xgboost import build_hosts_request, stage_parts
from tests.running_emulator import RunningEmulator

FRAMEWORKS = Path(__file__).parents[2] / "examples" / "frameworks"
SHOW = """
import os, runpy, {module}
print("RUNS", {module}.__version__, "OF THE JOB" if "own-packages" in {module}.__file__ else "OF " + {module}.__file__)
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py"), run_name="__main__")
"""

# TensorFlow's example trains ten epochs of 15 batches, PyTorch's twelve, XGBoost's 30 rounds.
EPOCH_STEPS = 15
# The first one builds an environment, or installs hundreds of megabytes.
pytestmark = pytest.mark.timeout(1200)


def start(emulator: RunningEmulator, folder: Path, pin: str, module: str, example: str, image: str) -> str:
    """Start an example's training, with the requirement ``pin`` if it is not empty; return its name."""
    name = f"version-{uuid.uuid4().hex[:8]}"
    s3 = emulator.client("s3")
    stage_digits(s3, BUCKET)
    (folder / "requirements.txt").write_text(pin or "# nothing\n")
    (folder / "show.py").write_text(SHOW.format(module=module))
    train = FRAMEWORKS / example / "train.py"
    stage_source(s3, name, [folder / "requirements.txt", folder / "show.py", train], BUCKET)
    request = build_training_job(
        name,
        image=image,
        hyperparameters=build_script_mode(locate_source(name, BUCKET), "show.py", {}),
        channels=build_channels({"training": f"s3://{BUCKET}/data/"}),
        collections={"losses": {}},
        hook_parameters={"save_interval": "10"},
        bucket=BUCKET,
        seconds=1000,
    )
    emulator.client("sagemaker").create_training_job(**request)
    return name


def read_version(emulator: RunningEmulator, name: str, run: Path, module: str, steps: int) -> str:
    """Wait until a job has completed, and compare what it saved; return the version that ran, and where it is from."""
    description = wait_until_ended(emulator, name, seconds=1000)
    log = read_log(emulator, name)
    assert description["TrainingJobStatus"] == "Completed", (description.get("FailureReason"), log[-3000:])
    run.mkdir()
    trial = create_trial(str(download_run(emulator, BUCKET, name, run)))
    expected = set(range(0, steps, 10))
    if module == "tensorflow":
        # Keras's means of an epoch are saved at its last step, whatever the interval.
        expected.update(range(EPOCH_STEPS - 1, steps, EPOCH_STEPS))
    assert trial.steps(mode=modes.GLOBAL if module == "xgboost" else modes.TRAIN) == sorted(expected)
    assert trial.tensor_names(collection="losses")
    (line,) = re.findall(r"RUNS (.+)", log)
    return line


@pytest.mark.nightly
@pytest.mark.parametrize("emulator", ["process"], indirect=True)
@pytest.mark.parametrize(
    ("module", "example", "image", "version", "environment", "steps"),
    [
        ("torch", "pytorch", "pytorch-training:2.0.1-cpu-py310", "2.3.1", "pytorch-training-2.3", 180),
        ("xgboost", "xgboost", "sagemaker-xgboost:1.5-1", "1.7.6", "sagemaker-xgboost-1.7", 30),
    ],
    ids=["pytorch", "xgboost"],
)
def test_an_older_image_is_captured(
    emulator: RunningEmulator,
    tmp_path: Path,
    module: str,
    example: str,
    image: str,
    version: str,
    environment: str,
    steps: int,
) -> None:
    name = start(emulator, tmp_path, "", module, example, image)
    ran, _, source = read_version(emulator, name, tmp_path / "run", module, steps).partition(" OF ")
    assert ran.partition("+")[0] == version
    assert f"/{environment}-" in source
    # Its text is in the log, too, so that nobody takes these numbers for those of the version that was asked for.
    assert f"The request is for {image}; " in read_log(emulator, name)


@pytest.mark.nightly
@pytest.mark.parametrize("emulator", ["process"], indirect=True)
def test_hosts_of_an_older_xgboost_validate_in_turn(emulator: RunningEmulator, tmp_path: Path) -> None:
    """The first of the hosts alone saves trees, which must ask the others for nothing."""
    s3, name = emulator.client("s3"), f"version-{uuid.uuid4().hex[:8]}"
    stage_scripts(s3, "xgboost")
    stage_parts(emulator)
    request = build_hosts_request(name)
    request["AlgorithmSpecification"]["TrainingImage"] = "sagemaker-xgboost:1.7-1"
    emulator.client("sagemaker").create_training_job(**request)
    description = wait_until_ended(emulator, name, seconds=1000)
    assert description["TrainingJobStatus"] == "Completed", (description, read_log(emulator, name)[-3000:])
    assert {"xgboost-model-0", "xgboost-model-1"} <= download_model(emulator, description).keys()
    trial = create_trial(str(download_run(emulator, BUCKET, name, tmp_path)))
    assert "trees/Split" in trial.tensor_names(collection="trees")


@pytest.mark.versions
# In Docker jobs reach no package index, unless the emulator is started with --allow-internet.
@pytest.mark.parametrize("emulator", ["process"], indirect=True)
@pytest.mark.parametrize(
    ("pin", "module", "example", "image", "version", "steps"),
    [
        (
            "tensorflow-cpu==2.13.*",
            "tensorflow",
            "tensorflow_keras_2",
            "tensorflow-training:2.11-cpu-py39",
            "2.13.1",
            150,
        ),
        ("xgboost==1.7.6", "xgboost", "xgboost", "sagemaker-xgboost:3.2.0-cpu-py311", "1.7.6", 30),
    ],
    ids=["tensorflow", "xgboost"],
)
def test_a_pinned_framework_is_captured(
    emulator: RunningEmulator,
    tmp_path: Path,
    pin: str,
    module: str,
    example: str,
    image: str,
    version: str,
    steps: int,
) -> None:
    name = start(emulator, tmp_path, pin, module, example, image)
    assert read_version(emulator, name, tmp_path / "run", module, steps) == f"{version} OF THE JOB"
