"""The XGBoost jobs as CreateTrainingJob requests: a script, and SageMaker's own algorithm without one."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

BUCKET = "xgboost-example"
ROLE_ARN = "arn:aws:iam::123456789012:role/XgboostTraining"
TRAINING_IMAGE = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"
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
    for script in ("train.py", "train_with_hook.py"):
        bundle = io.BytesIO()
        with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
            tar.add(Path(__file__).with_name(script), arcname=script)
        s3.put_object(Bucket=BUCKET, Key=f"source/{script}/sourcedir.tar.gz", Body=bundle.getvalue())


def build_script_request(name: str, script: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """The request that runs a script of this folder."""
    script_mode = {
        "sagemaker_program": script,
        "sagemaker_submit_directory": f"s3://{BUCKET}/source/{script}/sourcedir.tar.gz",
        "sagemaker_region": "us-east-1",
    }
    given = {key: json.dumps(value) for key, value in {**script_mode, **hyperparameters}.items()}
    return {**_build_request(name), "HyperParameters": given}


def build_algorithm_request(name: str, hyperparameters: dict[str, str]) -> dict[str, Any]:
    """The request that trains by hyperparameters and channels alone."""
    channels = [
        {
            "ChannelName": channel,
            "ContentType": "text/csv",
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data/{channel}/"}},
        }
        for channel in ("train", "validation")
    ]
    return {**_build_request(name), "HyperParameters": hyperparameters, "InputDataConfig": channels}


def _build_request(name: str) -> dict[str, Any]:
    every_fifth = {"CollectionParameters": {"save_interval": "5"}}
    collections = ("metrics", "losses", "predictions", "labels", "feature_importance", "average_shap", "trees")
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {
            "TrainingImage": TRAINING_IMAGE,
            "TrainingInputMode": "File",
            "MetricDefinitions": [
                {"Name": "validation:auc", "Regex": rf".*\[[0-9]+\].*#011validation-auc:{NUMBER}.*"},
                {"Name": "test:accuracy", "Regex": rf"test_accuracy={NUMBER};"},
            ],
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "DebugHookConfig": {
            "S3OutputPath": f"s3://{BUCKET}/tensors",
            "CollectionConfigurations": [
                {"CollectionName": "hyperparameters", "CollectionParameters": {"save_interval": "1000"}},
                *({"CollectionName": collection, **every_fifth} for collection in collections),
            ],
        },
    }
