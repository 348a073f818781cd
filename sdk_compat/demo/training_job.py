"""CreateTrainingJob requests of the demo, and parts shared with the examples."""

import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

BUCKET = "digits-demo"
ROLE_ARN = "arn:aws:iam::123456789012:role/DigitsTraining"
RULES_IMAGE = "sagemaker-debugger-rules:latest"
DIGITS = Path(__file__).with_name("digits.npz")
TRAINING_IMAGE = "pytorch-training:2.13.0-cpu-py311"

# Ten sigmoid layers: each one shrinks the gradient that flows back through it, so the first layers never learn.
# The job would train for minutes if the stop handler did not stop it.
SICK = {"depth": 10, "activation": "sigmoid", "steps": 60_000, "learning-rate": 0.01}
HEALTHY = {"depth": 2, "activation": "relu", "steps": 300, "learning-rate": 0.003}


def stage_digits(s3: Any, bucket: str = BUCKET) -> None:
    """Create an S3 bucket and upload a data set of handwritten digits to it.

    ``digits.npz`` contains 1,797 images of 8 x 8 pixels, float32 from 0 to 1, and their labels, shuffled. It is the
    test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, UCI Machine Learning Repository,
    CC BY 4.0) in the version of scikit-learn.
    """
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="data/digits.npz", Body=DIGITS.read_bytes())


def stage_source(s3: Any, name: str, files: Iterable[Path], bucket: str = BUCKET) -> str:
    """Upload files to S3 as a source bundle (sourcedir.tar.gz) and return its URI."""
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
    """Build the HyperParameters that run a script from a source bundle with ``hyperparameters`` as its arguments."""
    script_mode = {
        "sagemaker_program": script,
        "sagemaker_submit_directory": source,
        "sagemaker_region": "us-east-1",
    }
    # The SageMaker training toolkit parses each value as JSON.
    return {key: json.dumps(value) for key, value in {**script_mode, **hyperparameters}.items()}


def build_channels(uris: Mapping[str, str], content_type: str | None = None) -> list[dict[str, Any]]:
    """Build the InputDataConfig of channels that read S3 prefixes.

    Args:
        uris: the S3 URI of the prefix, by the channel's name.
        content_type: the ContentType of all channels; None to leave it out.
    """
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
    """Build a CreateTrainingJob request for one small instance. All outputs go to one bucket.

    Args:
        name: the job's name.
        image: the training image.
        hyperparameters: HyperParameters, as `build_script_mode` builds them.
        channels: InputDataConfig, as `build_channels` builds it.
        collections: the CollectionParameters of each collection to save, by the collection's name.
        hook_parameters: HookParameters.
        metrics: the regular expressions of MetricDefinitions, by name.
        rules: DebugRuleConfigurations.
        bucket: the bucket for tensors and output.
        seconds: MaxRuntimeInSeconds.
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
    """Build the DebugRuleConfiguration of a built-in rule."""
    return {
        "RuleConfigurationName": rule,
        "RuleEvaluatorImage": RULES_IMAGE,
        "RuleParameters": {"rule_to_invoke": rule, **parameters},
    }


def stage_inputs(s3: Any) -> None:
    """Upload the digits and the training script to S3."""
    stage_digits(s3)
    stage_source(s3, "digits", [Path(__file__).with_name("train.py")])


def build_request(name: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Build the request that trains on the digits, with the rules VanishingGradient and LossNotDecreasing."""
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
    """Return whether a job and all its rules have ended.

    Args:
        description: the response of DescribeTrainingJob, or the detail of an event.
    """
    rules = description.get("DebugRuleEvaluationStatuses", [])
    return description.get("TrainingJobStatus") in {"Completed", "Failed", "Stopped"} and all(
        rule["RuleEvaluationStatus"] not in {"InProgress", "Stopping"} for rule in rules
    )
