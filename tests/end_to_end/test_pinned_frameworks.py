"""Tests of a requirements.txt that asks for another framework version.

The job gets that version, and it is captured.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples.frameworks.job import BUCKET
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
from tests.end_to_end.finished_jobs import download_run, read_log, wait_until_ended

if TYPE_CHECKING:
    from tests.running_emulator import RunningEmulator

FRAMEWORKS = Path(__file__).parents[2] / "examples" / "frameworks"
SHOW = """
import os, runpy, {module}
print("RUNS", {module}.__version__, "OF THE JOB" if "own-packages" in {module}.__file__ else {module}.__file__)
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py"), run_name="__main__")
"""

# Hundreds of megabytes to install.
pytestmark = [pytest.mark.versions, pytest.mark.timeout(1200)]


def start(emulator: RunningEmulator, folder: Path, pin: str, module: str, example: str, image: str) -> str:
    """Start an example's training, which asks for another framework than the image has; return its name."""
    name = f"pinned-{uuid.uuid4().hex[:8]}"
    s3 = emulator.client("s3")
    stage_digits(s3, BUCKET)
    (folder / "requirements.txt").write_text(pin)
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


# In Docker jobs reach no package index, unless the emulator is started with --allow-internet.
@pytest.mark.parametrize("emulator", ["process"], indirect=True)
# TensorFlow's example trains ten epochs of 15 batches, XGBoost's 30 rounds.
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
    description = wait_until_ended(emulator, name, seconds=1000)
    log = read_log(emulator, name)
    assert description["TrainingJobStatus"] == "Completed", (description.get("FailureReason"), log[-3000:])
    assert f"RUNS {version} OF THE JOB" in log
    run = tmp_path / "run"
    run.mkdir()
    trial = create_trial(str(download_run(emulator, BUCKET, name, run)))
    assert trial.steps(mode=modes.TRAIN if module == "tensorflow" else modes.GLOBAL) == list(range(0, steps, 10))
    assert trial.tensor_names(collection="losses")
