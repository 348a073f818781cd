"""Training of one framework's digit classifier by the SageMaker SDK, version 3.

`train.py pytorch` is an ordinary SDK script: it knows of no emulator. The scripts are those of `examples/frameworks/`.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from debugged_trainer import DebuggedTrainer
from sagemaker.core import image_uris
from sagemaker.core.debugger import Rule, rule_configs
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.resources import TrainingJob
from sagemaker.train.configs import Compute, InputData, SourceCode

EXAMPLES = Path(__file__).resolve().parents[1]
ROLE = os.environ.get("ROLE_ARN", "arn:aws:iam::123456789012:role/SageMakerRole")
COMPUTE = {"instance_type": "ml.m5.large", "instance_count": 1}
# What `image_uris` looks up, the arguments of the script, and what judges the training.
TRAININGS: dict[str, tuple[dict[str, str], dict[str, Any], str, dict[str, str]]] = {
    "pytorch": ({"version": "2.8", "py_version": "py312"}, {"epochs": 2}, "vanishing_gradient", {}),
    "tensorflow": ({"version": "2.16", "py_version": "py310"}, {"epochs": 2}, "loss_not_decreasing", {}),
    "xgboost": ({"version": "3.0-5"}, {}, "tree_depth", {"depth": "2"}),
    "mxnet": ({"version": "1.9.0", "py_version": "py38"}, {"epochs": 2}, "dead_relu", {}),
}


def build_trainer(framework: str, session: Session) -> DebuggedTrainer:
    image, hyperparameters, rule, parameters = TRAININGS[framework]
    return DebuggedTrainer(
        training_image=image_uris.retrieve(
            framework, session.boto_region_name, instance_type=COMPUTE["instance_type"], image_scope="training", **image
        ),
        role=ROLE,
        sagemaker_session=session,
        source_code=SourceCode(source_dir=str(EXAMPLES / "frameworks" / framework), entry_script="train.py"),
        compute=Compute(**COMPUTE),
        hyperparameters=hyperparameters,
        base_job_name=f"v3-{framework}",
        rules=[Rule.sagemaker(getattr(rule_configs, rule)(), rule_parameters=parameters)],
        collections={"losses": {"save_interval": "1"}},
    )


def main(framework: str) -> None:
    session = Session()
    trainer = build_trainer(framework, session)
    data = InputData(channel_name="training", data_source=str(EXAMPLES.parent / "sdk_compat" / "demo" / "digits.npz"))
    trainer.train(input_data_config=[data], wait=True, logs=True)
    name = trainer._latest_training_job.training_job_name  # noqa: SLF001 - the SDK has no other name for it
    job = TrainingJob.get(name)  # what attach() of version 2 was for: from its name alone, in any other process
    while any(each.rule_evaluation_status in ("InProgress", "Stopping") for each in job.debug_rule_evaluation_statuses):
        time.sleep(1)  # rules have their last look after the training
        job = TrainingJob.get(name)
    tensors = f"{job.debug_hook_config.s3_output_path}/{name}/debug-output"
    judged = job.debug_rule_evaluation_statuses
    verdicts = {each.rule_configuration_name: each.rule_evaluation_status for each in judged}
    print(f"{job.training_job_status}: {verdicts}. Tensors: {tensors}")


if __name__ == "__main__":
    main(*sys.argv[1:])
