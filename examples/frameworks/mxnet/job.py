"""The MXNet jobs as CreateTrainingJob requests: an untouched Gluon script, and one with a hook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import build_script_mode, build_training_job, locate_source, stage_source

BUCKET = "mxnet-example"
# The newest that AWS publishes; what runs in its place is 1.9.1, and the job's log says so.
TRAINING_IMAGE = "mxnet-training:1.9.0-cpu-py38"
SCRIPTS = ("train.py", "train_with_hook.py")
COLLECTIONS = {
    "weights": {"save_interval": "20"},
    "gradients": {"save_interval": "20"},
    "losses": {"save_interval": "1"},
    "activations": {"save_interval": "20", "include_regex": ".*relu_output"},
}


def stage_sources(s3: Any) -> None:
    """Put the two training scripts into S3."""
    s3.create_bucket(Bucket=BUCKET)
    stage_source(s3, "mxnet", [Path(__file__).with_name(script) for script in SCRIPTS], BUCKET)


def build_request(name: str, script: str, **hyperparameters: Any) -> dict[str, Any]:
    """The request that trains the digits by one of the scripts."""
    return build_training_job(
        name,
        image=TRAINING_IMAGE,
        hyperparameters=build_script_mode(locate_source("mxnet", BUCKET), script, hyperparameters),
        channels=[],
        collections=COLLECTIONS,
        metrics={"test:accuracy": r"test_accuracy=([0-9.]+);"},
        bucket=BUCKET,
    )
