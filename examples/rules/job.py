"""CreateTrainingJob requests of the faulty trainings.

Each is built from a folder's `train.py` and `job.toml`.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import (
    BUCKET,
    build_channels,
    build_rule,
    build_script_mode,
    build_training_job,
    stage_source,
)

FOLDER = Path(__file__).parent
# In every source bundle, beside the training's own script.
_SHARED = (FOLDER / "digits.py", FOLDER / "table.py")


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


def build_request(s3: Any, example: Example, job: str, *, cured: bool, other_job: str | None = None) -> dict[str, Any]:
    """The request that trains an example under its rule, its source bundle put into S3.

    Args:
        s3: boto3's client.
        example: what to train.
        job: name of the training job.
        cured: train without the mistake.
        other_job: the job to compare with; without it an example that is compared is judged by nobody.
    """
    parameters = {key: text.format(job=job) for key, text in example.parameters.items()}
    if other_job is not None:
        parameters["other_trials"] = other_job
    is_judged = not example.compared or other_job is not None
    source = stage_source(s3, example.name, [FOLDER / example.name / "train.py", *_SHARED])
    return build_training_job(
        job,
        image=f"{example.image}:latest",
        hyperparameters=build_script_mode(source, "train.py", {"cured": "true" if cured else "false"}),
        channels=build_channels({"training": f"s3://{BUCKET}/data/"}),
        collections=example.collections,
        rules=[build_rule(example.rule, **parameters)] if is_judged else [],
    )
