"""What the examples' CreateTrainingJob requests share: the digits in S3, a source bundle, one small instance."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

BUCKET = "digits-demo"
ROLE_ARN = "arn:aws:iam::123456789012:role/DigitsTraining"
RULES_IMAGE = "sagemaker-debugger-rules:latest"


def stage_digits(s3: Any) -> None:
    """Put scikit-learn's handwritten digits (1,797 images of 8 x 8, shuffled) into S3."""
    import numpy as np
    from sklearn.datasets import load_digits

    s3.create_bucket(Bucket=BUCKET)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    data = io.BytesIO()
    np.savez(data, images=(digits.data[order] / 16).astype("float32"), labels=digits.target[order])
    s3.put_object(Bucket=BUCKET, Key="data/digits.npz", Body=data.getvalue())


def stage_source(s3: Any, name: str, files: Iterable[Path]) -> str:
    """Put files into S3 as a source bundle and return its URI; one of them is the train.py to run."""
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        for path in files:
            tar.add(path, arcname=path.name)
    key = f"source/{name}/sourcedir.tar.gz"
    s3.put_object(Bucket=BUCKET, Key=key, Body=bundle.getvalue())
    return f"s3://{BUCKET}/{key}"


def build_training_job(
    name: str,
    *,
    image: str,
    source: str,
    hyperparameters: Mapping[str, Any],
    collections: Mapping[str, Mapping[str, str]],
    rules: Sequence[Mapping[str, Any]],
    seconds: int,
) -> dict[str, Any]:
    """The request that trains `train.py` of a source bundle on the digits.

    Args:
        name: of the job.
        image: of the training container.
        source: URI of the source bundle.
        hyperparameters: become the script's arguments.
        collections: parameters of each collection to save.
        rules: DebugRuleConfigurations.
        seconds: how long it may run.
    """
    script_mode = {
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": source,
        "sagemaker_region": "us-east-1",
    }
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
        # The toolkit reads each as JSON.
        "HyperParameters": {key: json.dumps(value) for key, value in {**script_mode, **hyperparameters}.items()},
        "InputDataConfig": [
            {
                "ChannelName": "training",
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data/"}},
            }
        ],
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
        "DebugHookConfig": {
            "S3OutputPath": f"s3://{BUCKET}/tensors",
            "CollectionConfigurations": [
                {"CollectionName": collection, "CollectionParameters": given}
                for collection, given in collections.items()
            ],
        },
        "DebugRuleConfigurations": list(rules),
    }


def build_rule(rule: str, **parameters: str) -> dict[str, Any]:
    """The DebugRuleConfiguration of a built-in rule."""
    return {
        "RuleConfigurationName": rule,
        "RuleEvaluatorImage": RULES_IMAGE,
        "RuleParameters": {"rule_to_invoke": rule, **parameters},
    }
