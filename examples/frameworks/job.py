"""CreateTrainingJob requests of the framework examples.

`<framework>/job.toml` says what is captured of the scripts.
"""

import tomllib
from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import (
    build_channels,
    build_script_mode,
    build_training_job,
    locate_source,
    stage_digits,
    stage_source,
)

FOLDER = Path(__file__).parent
BUCKET = "frameworks-example"
SCRIPTS = ("train.py", "train_with_hook.py")


def stage_scripts(s3: Any, framework: str) -> None:
    """Put the digits and the framework's two training scripts into S3."""
    stage_digits(s3, BUCKET)
    stage_source(s3, framework, [FOLDER / framework / script for script in SCRIPTS], BUCKET)


def build_request(framework: str, name: str, script: str, **hyperparameters: Any) -> dict[str, Any]:
    """The request that trains by one of the scripts; its arguments are named with underscores."""
    arguments = {key.replace("_", "-"): value for key, value in hyperparameters.items()}
    return build_training_job(
        name,
        hyperparameters=build_script_mode(locate_source(framework, BUCKET), script, arguments),
        channels=build_channels({"training": f"s3://{BUCKET}/data/"}),
        bucket=BUCKET,
        **tomllib.loads((FOLDER / framework / "job.toml").read_text(encoding="utf-8")),
    )
