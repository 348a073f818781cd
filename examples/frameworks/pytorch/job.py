"""The PyTorch job as a CreateTrainingJob request: its source bundle in S3, and what is captured of it."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

BUCKET = "pytorch-digits"
ROLE_ARN = "arn:aws:iam::123456789012:role/DigitsTraining"
TRAINING_IMAGE = "pytorch-training:2.13.0-cpu-py311"

HOOK_PARAMETERS = {"train.save_interval": "30", "eval.save_interval": "1"}
COLLECTIONS = ["weights", "biases", "gradients", "losses"]


def stage_sources(s3: Any) -> None:
    """Put the two training scripts into S3."""
    s3.create_bucket(Bucket=BUCKET)
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        for name in ("train.py", "train_with_hook.py"):
            tar.add(Path(__file__).with_name(name), arcname=name)
    s3.put_object(Bucket=BUCKET, Key="source/sourcedir.tar.gz", Body=bundle.getvalue())


def build_request(name: str, script: str, **hyperparameters: Any) -> dict[str, Any]:
    """The request that trains the digits by one of the scripts."""
    script_mode = {
        "sagemaker_program": script,
        "sagemaker_submit_directory": f"s3://{BUCKET}/source/sourcedir.tar.gz",
        "sagemaker_region": "us-east-1",
    }
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {"TrainingImage": TRAINING_IMAGE, "TrainingInputMode": "File"},
        "HyperParameters": {key: json.dumps(value) for key, value in {**script_mode, **hyperparameters}.items()},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "DebugHookConfig": {
            "S3OutputPath": f"s3://{BUCKET}/tensors",
            "HookParameters": HOOK_PARAMETERS,
            "CollectionConfigurations": [{"CollectionName": collection} for collection in COLLECTIONS],
        },
    }
