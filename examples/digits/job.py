"""The digits job as a CreateTrainingJob request: its data in S3, its source bundle, its rules."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

BUCKET = "digits-demo"
ROLE_ARN = "arn:aws:iam::123456789012:role/DigitsTraining"
TRAINING_IMAGE = "pytorch-training:2.13.0-cpu-py311"
RULES_IMAGE = "sagemaker-debugger-rules:latest"

# Ten sigmoid layers: each one shrinks the gradient that flows back through it, so the first layers never learn.
# Left alone it would train for minutes; the stop handler is what ends it.
SICK = {"depth": 10, "activation": "sigmoid", "steps": 60_000, "learning-rate": 0.01}
HEALTHY = {"depth": 2, "activation": "relu", "steps": 300, "learning-rate": 0.003}


def stage_inputs(s3: Any) -> None:
    """Put scikit-learn's handwritten digits (1,797 images of 8 x 8) and the training script into S3."""
    import numpy as np
    from sklearn.datasets import load_digits

    s3.create_bucket(Bucket=BUCKET)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    data = io.BytesIO()
    np.savez(data, images=(digits.data[order] / 16).astype("float32"), labels=digits.target[order])
    s3.put_object(Bucket=BUCKET, Key="data/digits.npz", Body=data.getvalue())

    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        tar.add(Path(__file__).with_name("train.py"), arcname="train.py")
    s3.put_object(Bucket=BUCKET, Key="source/sourcedir.tar.gz", Body=bundle.getvalue())


def build_request(name: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """The request that trains the digits under the rules VanishingGradient and LossNotDecreasing."""
    script_mode = {
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": f"s3://{BUCKET}/source/sourcedir.tar.gz",
        "sagemaker_region": "us-east-1",
    }
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {"TrainingImage": TRAINING_IMAGE, "TrainingInputMode": "File"},
        "HyperParameters": {key: json.dumps(value) for key, value in {**script_mode, **hyperparameters}.items()},
        "InputDataConfig": [
            {
                "ChannelName": "training",
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data/"}},
            }
        ],
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
        "DebugHookConfig": {
            "S3OutputPath": f"s3://{BUCKET}/tensors",
            "CollectionConfigurations": [
                {"CollectionName": "weights", "CollectionParameters": {"save_interval": "100"}},
                {"CollectionName": "gradients", "CollectionParameters": {"save_interval": "25"}},
                {"CollectionName": "losses", "CollectionParameters": {"save_interval": "25"}},
            ],
        },
        "DebugRuleConfigurations": [
            {
                "RuleConfigurationName": "VanishingGradient",
                "RuleEvaluatorImage": RULES_IMAGE,
                "RuleParameters": {"rule_to_invoke": "VanishingGradient", "threshold": "1e-7"},
            },
            {
                "RuleConfigurationName": "LossNotDecreasing",
                "RuleEvaluatorImage": RULES_IMAGE,
                "RuleParameters": {
                    "rule_to_invoke": "LossNotDecreasing",
                    "collection_names": "losses",
                    "num_steps": "100",
                    "diff_percent": "0.1",
                },
            },
        ],
    }
