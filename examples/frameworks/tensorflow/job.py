"""The TensorFlow jobs as CreateTrainingJob requests: an untouched Keras script, and a loop with a hook."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

BUCKET = "tensorflow-example"
ROLE_ARN = "arn:aws:iam::123456789012:role/TensorflowTraining"
TRAINING_IMAGE = "tensorflow-training:2.21.0-cpu-py311"


def stage_inputs(s3: Any) -> None:
    """Put scikit-learn's handwritten digits (1,797 images of 8 x 8) into S3, and the scripts as bundles."""
    import numpy as np
    from sklearn.datasets import load_digits

    s3.create_bucket(Bucket=BUCKET)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    data = io.BytesIO()
    np.savez(data, images=(digits.data[order] / 16).astype("float32"), labels=digits.target[order])
    s3.put_object(Bucket=BUCKET, Key="data/digits.npz", Body=data.getvalue())
    for script in ("train.py", "train_with_hook.py"):
        bundle = io.BytesIO()
        with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
            tar.add(Path(__file__).with_name(script), arcname=script)
        s3.put_object(Bucket=BUCKET, Key=f"source/{script}/sourcedir.tar.gz", Body=bundle.getvalue())


def build_request(name: str, script: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """The request that runs a script of this folder, every tenth step saved."""
    script_mode = {
        "sagemaker_program": script,
        "sagemaker_submit_directory": f"s3://{BUCKET}/source/{script}/sourcedir.tar.gz",
        "sagemaker_region": "us-east-1",
    }
    collections = ("weights", "biases", "gradients", "losses", "metrics", "optimizer_variables", "outputs", "layers")
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {
            "TrainingImage": TRAINING_IMAGE,
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "test:accuracy", "Regex": r"test_accuracy=([0-9.]+);"}],
        },
        "HyperParameters": {key: json.dumps(value) for key, value in {**script_mode, **hyperparameters}.items()},
        "InputDataConfig": [
            {
                "ChannelName": "training",
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data/"}},
            }
        ],
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "DebugHookConfig": {
            "S3OutputPath": f"s3://{BUCKET}/tensors",
            "HookParameters": {"save_interval": "10"},
            "CollectionConfigurations": [{"CollectionName": collection} for collection in collections],
        },
    }
