"""CreateTrainingJob requests of the demo, and parts shared with the examples."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BUCKET = "digits-demo"
ROLE_ARN = "arn:aws:iam::123456789012:role/DigitsTraining"
RULES_IMAGE = "sagemaker-debugger-rules:latest"
DIGITS = Path(__file__).with_name("digits.npz")
TRAINING_IMAGE = "pytorch-training:2.13.0-cpu-py311"

# Ten sigmoid layers: each one shrinks the gradient that flows back through it, so the first layers never learn.
# Left alone it would train for minutes; the stop handler is what ends it.
SICK = {"depth": 10, "activation": "sigmoid", "steps": 60_000, "learning-rate": 0.01}
HEALTHY = {"depth": 2, "activation": "relu", "steps": 300, "learning-rate": 0.003}


def stage_digits(s3: Any, bucket: str = BUCKET) -> None:
    """Put handwritten digits into a bucket of S3, which is made.

    ``digits.npz`` has 1,797 images of 8 x 8 pixels, float32 from 0 to 1, and their labels, shuffled: the test set of
    "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, UCI Machine Learning Repository, CC BY 4.0) as
    scikit-learn has it.
    """
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="data/digits.npz", Body=DIGITS.read_bytes())


def stage_source(s3: Any, name: str, files: Iterable[Path], bucket: str = BUCKET) -> str:
    """Put files into S3 as a source bundle and return its URI."""
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        for path in files:
            tar.add(path, arcname=path.name)
    s3.put_object(Bucket=bucket, Key=f"source/{name}/sourcedir.tar.gz", Body=bundle.getvalue())
    return locate_source(name, bucket)


def locate_source(name: str, bucket: str = BUCKET) -> str:
    """Return the URI of a source bundle."""
    return f"s3://{bucket}/source/{name}/sourcedir.tar.gz"


def build_script_mode(source: str, script: str, hyperparameters: Mapping[str, Any]) -> dict[str, str]:
    """Return HyperParameters that run a script of a source bundle, with the given ones as its arguments."""
    script_mode = {
        "sagemaker_program": script,
        "sagemaker_submit_directory": source,
        "sagemaker_region": "us-east-1",
    }
    # The toolkit reads each as JSON.
    return {key: json.dumps(value) for key, value in {**script_mode, **hyperparameters}.items()}


def build_channels(uris: Mapping[str, str], content_type: str | None = None) -> list[dict[str, Any]]:
    """Return InputDataConfig of the prefixes of S3 that a job's channels hold, by the channels' names."""
    typed = {} if content_type is None else {"ContentType": content_type}
    return [
        {"ChannelName": name, **typed, "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}}
        for name, uri in uris.items()
    ]


def build_training_job(
    name: str,
    *,
    image: str,
    hyperparameters: Mapping[str, str],
    channels: Sequence[Mapping[str, Any]],
    collections: Mapping[str, Mapping[str, str]],
    hook_parameters: Mapping[str, str] | None = None,
    metrics: Mapping[str, str] | None = None,
    rules: Sequence[Mapping[str, Any]] = (),
    bucket: str = BUCKET,
    seconds: int = 600,
) -> dict[str, Any]:
    """Return the request of a training on one small instance, all that it leaves in one bucket.

    Args:
        name: of the job.
        image: of the training container.
        hyperparameters: HyperParameters, as `build_script_mode` makes them.
        channels: InputDataConfig, as `build_channels` makes it.
        collections: parameters of each collection to save.
        hook_parameters: HookParameters.
        metrics: regexes of MetricDefinitions, by name.
        rules: DebugRuleConfigurations.
        bucket: where tensors and output go.
        seconds: how long it may run.
    """
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {
            "TrainingImage": image,
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": key, "Regex": regex} for key, regex in (metrics or {}).items()],
        },
        "HyperParameters": dict(hyperparameters),
        # The API refuses an empty list; a job without data leaves it out.
        **({"InputDataConfig": list(channels)} if channels else {}),
        "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
        "DebugHookConfig": {
            "S3OutputPath": f"s3://{bucket}/tensors",
            "HookParameters": dict(hook_parameters or {}),
            "CollectionConfigurations": [
                {"CollectionName": key, "CollectionParameters": dict(given)} for key, given in collections.items()
            ],
        },
        "DebugRuleConfigurations": list(rules),
    }


def build_rule(rule: str, **parameters: str) -> dict[str, Any]:
    """Return the DebugRuleConfiguration of a built-in rule."""
    return {
        "RuleConfigurationName": rule,
        "RuleEvaluatorImage": RULES_IMAGE,
        "RuleParameters": {"rule_to_invoke": rule, **parameters},
    }


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


def has_ended(description: Mapping[str, Any]) -> bool:
    """Whether the job of a description, or of an event's detail, has ended, and each of its rules."""
    rules = description.get("DebugRuleEvaluationStatuses", [])
    return description.get("TrainingJobStatus") in {"Completed", "Failed", "Stopped"} and all(
        rule["RuleEvaluationStatus"] not in {"InProgress", "Stopping"} for rule in rules
    )
