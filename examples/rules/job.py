"""From a folder of this one (`train.py`, `job.toml`) to the CreateTrainingJob request of its training."""

from __future__ import annotations

import io
import json
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.digits.job import BUCKET, ROLE_ARN, RULES_IMAGE

FOLDER = Path(__file__).parent
# In every source bundle, beside the training's own script.
_SHARED = ("digits.py", "table.py")


@dataclass(frozen=True)
class Example:
    """A training with its mistake, and the rule that finds it.

    Attributes:
        name: of the folder.
        image: repository of the training image.
        rule: class of the built-in rule.
        parameters: of the rule; `{job}` stands for the job's name.
        collections: parameters of the collections to save, by collection.
        fires: whether the rule judges at all.
        compared: whether another run of the same training is what it is compared with.
        report: a file below the rule's output that it leaves besides its verdict.
    """

    name: str
    image: str
    rule: str
    parameters: dict[str, str]
    collections: dict[str, dict[str, str]]
    fires: bool = True
    compared: bool = False
    report: str | None = None

    @property
    def mistake(self) -> str:
        """What goes wrong, in the script's own words."""
        return (FOLDER / self.name / "train.py").read_text(encoding="utf-8").split('"""')[1]


def find_examples() -> dict[str, Example]:
    """Every example by its name."""
    files = sorted(FOLDER.glob("*/job.toml"))
    return {path.parent.name: _read(path) for path in files}


def _read(path: Path) -> Example:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return Example(
        name=path.parent.name,
        parameters=table.pop("parameters", {}),
        collections=table.pop("collections", {}),
        **table,
    )


def stage_source(s3: Any, example: Example) -> str:
    """Put the source bundle of an example into S3 and return its URI."""
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        tar.add(FOLDER / example.name / "train.py", arcname="train.py")
        for name in _SHARED:
            tar.add(FOLDER / name, arcname=name)
    key = f"source/{example.name}/sourcedir.tar.gz"
    s3.put_object(Bucket=BUCKET, Key=key, Body=bundle.getvalue())
    return f"s3://{BUCKET}/{key}"


def build_request(
    example: Example, job: str, source: str, *, cured: bool, other_job: str | None = None
) -> dict[str, Any]:
    """The request that trains an example under its rule.

    Args:
        example: what to train.
        job: name of the training job.
        source: URI of the source bundle.
        cured: train without the mistake.
        other_job: the job to compare with, for rules that do.
    """
    parameters = {key: text.format(job=job) for key, text in example.parameters.items()}
    if other_job is not None:
        parameters["other_trials"] = other_job
    rule = {
        "RuleConfigurationName": example.rule,
        "RuleEvaluatorImage": RULES_IMAGE,
        "RuleParameters": {"rule_to_invoke": example.rule, **parameters},
    }
    compares = example.compared and other_job is None
    return {
        "TrainingJobName": job,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {"TrainingImage": f"{example.image}:latest", "TrainingInputMode": "File"},
        "HyperParameters": {
            # The toolkit reads each as JSON, where it is any.
            "sagemaker_program": json.dumps("train.py"),
            "sagemaker_submit_directory": json.dumps(source),
            "sagemaker_region": json.dumps("us-east-1"),
            "cured": json.dumps("true" if cured else "false"),
        },
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
            "CollectionConfigurations": [
                {"CollectionName": name, "CollectionParameters": given} for name, given in example.collections.items()
            ],
        },
        # The run that is compared with is judged by nobody.
        "DebugRuleConfigurations": [] if compares else [rule],
    }
