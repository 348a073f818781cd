"""The digits job by the SageMaker SDK (version 2).

An ordinary SDK script: nothing in it knows of an emulator.

Needs the data in S3 first, and takes two arguments: the bucket and a job name.
"""

import sys
from pathlib import Path

from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule, rule_configs
from sagemaker.pytorch import PyTorch


def main(bucket: str, job_name: str) -> None:
    estimator = PyTorch(
        entry_point="train.py",
        source_dir=str(Path(__file__).parents[2] / "sdk_compat" / "demo"),
        role="arn:aws:iam::123456789012:role/DigitsTraining",
        instance_count=1,
        instance_type="ml.m5.large",
        framework_version="2.8.0",
        py_version="py312",
        hyperparameters={"depth": 10, "activation": "sigmoid", "steps": 60_000, "learning-rate": 0.01},
        output_path=f"s3://{bucket}/output",
        debugger_hook_config=DebuggerHookConfig(
            s3_output_path=f"s3://{bucket}/tensors",
            hook_parameters={"save_interval": "25"},
            collection_configs=[CollectionConfig("gradients"), CollectionConfig("losses")],
        ),
        rules=[
            Rule.sagemaker(rule_configs.vanishing_gradient(), rule_parameters={"threshold": "1e-7"}),
            Rule.sagemaker(
                rule_configs.loss_not_decreasing(),
                rule_parameters={"collection_names": "losses", "num_steps": "100", "diff_percent": "0.1"},
            ),
        ],
    )
    # A job that is stopped is a warning to the SDK, no error: fit() returns.
    estimator.fit({"training": f"s3://{bucket}/data/"}, wait=True, logs="All", job_name=job_name)
    print("Tensors:", estimator.latest_job_debugger_artifacts_path())
    for rule in estimator.latest_training_job.rule_job_summary():
        print(rule["RuleConfigurationName"], rule["RuleEvaluationStatus"])


if __name__ == "__main__":
    main(*sys.argv[1:])
