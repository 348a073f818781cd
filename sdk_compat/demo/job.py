"""The digits job as a CreateTrainingJob request: its data in S3, its source bundle, its rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import (
    BUCKET,
    build_channels,
    build_rule,
    build_script_mode,
    build_training_job,
    locate_source,
    stage_digits,
    stage_source,
)

__all__ = ["BUCKET", "HEALTHY", "SICK", "build_request", "stage_inputs"]

TRAINING_IMAGE = "pytorch-training:2.13.0-cpu-py311"

# Ten sigmoid layers: each one shrinks the gradient that flows back through it, so the first layers never learn.
# Left alone it would train for minutes; the stop handler is what ends it.
SICK = {"depth": 10, "activation": "sigmoid", "steps": 60_000, "learning-rate": 0.01}
HEALTHY = {"depth": 2, "activation": "relu", "steps": 300, "learning-rate": 0.003}


def stage_inputs(s3: Any) -> None:
    """Put the digits and the training script into S3."""
    stage_digits(s3)
    stage_source(s3, "digits", [Path(__file__).with_name("train.py")])


def build_request(name: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Return the request that trains the digits under the rules VanishingGradient and LossNotDecreasing."""
    return build_training_job(
        name,
        image=TRAINING_IMAGE,
        hyperparameters=build_script_mode(locate_source("digits"), "train.py", hyperparameters),
        channels=build_channels({"training": f"s3://{BUCKET}/data/"}),
        collections={
            "weights": {"save_interval": "100"},
            "gradients": {"save_interval": "25"},
            "losses": {"save_interval": "25"},
        },
        rules=[
            build_rule("VanishingGradient", threshold="1e-7"),
            build_rule("LossNotDecreasing", collection_names="losses", num_steps="100", diff_percent="0.1"),
        ],
        seconds=1800,
    )
