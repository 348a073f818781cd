"""The XGBoost jobs as CreateTrainingJob requests: a script, and SageMaker's own algorithm without one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import (
    build_channels,
    build_script_mode,
    build_training_job,
    locate_source,
    stage_source,
)

BUCKET = "xgboost-example"
TRAINING_IMAGE = "sagemaker-xgboost:1.7-1"
SCRIPTS = ("train.py", "train_with_hook.py")
NUMBER = r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)"

ALGORITHM = {
    "num_round": "20",
    "objective": "binary:logistic",
    "eval_metric": "logloss,auc",
    "max_depth": "3",
    "eta": "0.3",
    "nthread": "1",
}


def stage_inputs(s3: Any) -> None:
    """Put Wisconsin's breast cancer data into S3 as CSV (label first, no header), and the scripts as bundles."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    s3.create_bucket(Bucket=BUCKET)
    features, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    table = np.column_stack([labels, features])[order]
    for channel, rows in (("train", table[:400]), ("validation", table[400:])):
        file = io.StringIO()
        np.savetxt(file, rows, delimiter=",", fmt="%.8g")
        s3.put_object(Bucket=BUCKET, Key=f"data/{channel}/cancer.csv", Body=file.getvalue().encode())
    stage_source(s3, "xgboost", [Path(__file__).with_name(script) for script in SCRIPTS], BUCKET)


def build_script_request(name: str, script: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """The request that runs a script of this folder."""
    return _build_request(name, build_script_mode(locate_source("xgboost", BUCKET), script, hyperparameters), [])


def build_algorithm_request(name: str, hyperparameters: dict[str, str]) -> dict[str, Any]:
    """The request that trains by hyperparameters and channels alone."""
    uris = {channel: f"s3://{BUCKET}/data/{channel}/" for channel in ("train", "validation")}
    return _build_request(name, hyperparameters, build_channels(uris, "text/csv"))


def _build_request(name: str, hyperparameters: dict[str, str], channels: list[dict[str, Any]]) -> dict[str, Any]:
    collections = ("metrics", "losses", "predictions", "labels", "feature_importance", "average_shap", "trees")
    return build_training_job(
        name,
        image=TRAINING_IMAGE,
        hyperparameters=hyperparameters,
        channels=channels,
        collections={
            "hyperparameters": {"save_interval": "1000"},
            **{collection: {"save_interval": "5"} for collection in collections},
        },
        metrics={
            "validation:auc": rf".*\[[0-9]+\].*#011validation-auc:{NUMBER}.*",
            "test:accuracy": rf"test_accuracy={NUMBER};",
        },
        bucket=BUCKET,
    )
