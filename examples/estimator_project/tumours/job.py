"""The project's training job: `python -m tumours.job DATA`.

It runs on AWS or on the emulator, as the clients' environment says.
"""

import sys
from pathlib import Path

import sagemaker
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule, rule_configs
from sagemaker.pytorch import PyTorch

HERE = Path(__file__).parent


def build_estimator(session: sagemaker.Session, role: str, **hyperparameters: float) -> PyTorch:
    """The estimator that trains under a built-in rule, which stops a training that diverges, and one of our own."""
    return PyTorch(
        entry_point="train.py",
        source_dir=str(HERE / "source"),
        role=role,
        sagemaker_session=session,
        instance_count=1,
        instance_type="ml.m5.large",
        framework_version="2.8.0",
        py_version="py312",
        base_job_name="tumours",
        hyperparameters=hyperparameters,
        debugger_hook_config=DebuggerHookConfig(
            hook_parameters={"save_interval": "5"},
            collection_configs=[CollectionConfig("scores", {"include_regex": "^Sequential_output_0$"})],
        ),
        rules=[
            Rule.sagemaker(
                rule_configs.loss_not_decreasing(),
                rule_parameters={"collection_names": "losses", "num_steps": "20"},
                # Its own are saved every 500th step, which this training has not.
                collections_to_save=[CollectionConfig("losses", {"save_interval": "5"})],
                actions=rule_configs.ActionList(rule_configs.StopTraining()),
            ),
            Rule.custom(
                name="ConfidentTooEarly",
                image_uri="sagemaker-debugger-rule-evaluator:latest",
                instance_type="ml.t3.medium",
                volume_size_in_gb=10,
                source=str(HERE / "rules" / "confident_too_early.py"),
                rule_to_invoke="ConfidentTooEarly",
                rule_parameters={"largest": "20", "before": "20"},
            ),
        ],
    )


if __name__ == "__main__":
    build_estimator(sagemaker.Session(), sagemaker.get_execution_role()).fit({"training": sys.argv[1]})
