"""The PyTorch job as a CreateTrainingJob request: its source bundle in S3, and what is captured of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import build_script_mode, build_training_job, locate_source, stage_source

BUCKET = "pytorch-digits"
TRAINING_IMAGE = "pytorch-training:2.13.0-cpu-py311"
SCRIPTS = ("train.py", "train_with_hook.py")

HOOK_PARAMETERS = {"train.save_interval": "30", "eval.save_interval": "1"}
COLLECTIONS = ["weights", "biases", "gradients", "losses"]


def stage_sources(s3: Any) -> None:
    """Put the two training scripts into S3."""
    s3.create_bucket(Bucket=BUCKET)
    stage_source(s3, "pytorch", [Path(__file__).with_name(script) for script in SCRIPTS], BUCKET)


def build_request(name: str, script: str, **hyperparameters: Any) -> dict[str, Any]:
    """The request that trains the digits by one of the scripts."""
    return build_training_job(
        name,
        image=TRAINING_IMAGE,
        hyperparameters=build_script_mode(locate_source("pytorch", BUCKET), script, hyperparameters),
        channels=[],
        collections={collection: {} for collection in COLLECTIONS},
        hook_parameters=HOOK_PARAMETERS,
        bucket=BUCKET,
    )
