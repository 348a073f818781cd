"""The TensorFlow jobs as CreateTrainingJob requests: an untouched Keras script, and a loop with a hook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import (
    build_channels,
    build_script_mode,
    build_training_job,
    locate_source,
    stage_digits,
    stage_source,
)

BUCKET = "tensorflow-example"
TRAINING_IMAGE = "tensorflow-training:2.21.0-cpu-py311"
SCRIPTS = ("train.py", "train_with_hook.py")
COLLECTIONS = ("weights", "biases", "gradients", "losses", "metrics", "optimizer_variables", "outputs", "layers")


def stage_inputs(s3: Any) -> None:
    """Put the digits and the scripts into S3."""
    stage_digits(s3, BUCKET)
    stage_source(s3, "tensorflow", [Path(__file__).with_name(script) for script in SCRIPTS], BUCKET)


def build_request(name: str, script: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """The request that runs a script of this folder, every tenth step saved."""
    return build_training_job(
        name,
        image=TRAINING_IMAGE,
        hyperparameters=build_script_mode(locate_source("tensorflow", BUCKET), script, hyperparameters),
        channels=build_channels({"training": f"s3://{BUCKET}/data/"}),
        collections={collection: {} for collection in COLLECTIONS},
        hook_parameters={"save_interval": "10"},
        metrics={"test:accuracy": r"test_accuracy=([0-9.]+);"},
        bucket=BUCKET,
    )
