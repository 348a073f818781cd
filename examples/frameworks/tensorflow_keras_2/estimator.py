"""Jobs of both Keras 2 scripts, by the SageMaker SDK (version 2).

They use the last TensorFlow that AWS's Debugger supported.

Each job has a rule that stops it. An ordinary SDK script: nothing in it knows of an emulator. It needs the digits in
S3 first, and takes a bucket, two job names, and, where it is not to be 2.11, a framework and a Python version.
"""

import sys
from pathlib import Path

from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule, rule_configs
from sagemaker.tensorflow import TensorFlow


def main(bucket: str, keras_job: str, estimator_job: str, version: str = "2.11", python: str = "py39") -> None:
    stop = rule_configs.ActionList(rule_configs.StopTraining())
    collections = [CollectionConfig(name) for name in ("weights", "gradients", "losses", "optimizer_variables")]
    # Sigmoids one behind the other let no gradient through; a rate of nothing decreases no loss.
    vanishing = Rule.sagemaker(rule_configs.vanishing_gradient(), rule_parameters={"threshold": "1e-6"}, actions=stop)
    at_rest = Rule.sagemaker(
        rule_configs.loss_not_decreasing(),
        rule_parameters={"collection_names": "losses", "num_steps": "10", "diff_percent": "1"},
        actions=stop,
    )
    for name, script, rule, hyperparameters in (
        (keras_job, "train.py", vanishing, {"depth": 10, "epochs": 1_000_000}),
        (estimator_job, "train_estimator.py", at_rest, {"steps": 1_000_000_000, "learning-rate": 0.0}),
    ):
        estimator = TensorFlow(
            entry_point=script,
            source_dir=str(Path(__file__).parent),
            role="arn:aws:iam::123456789012:role/DigitsTraining",
            instance_count=1,
            instance_type="ml.m5.large",
            framework_version=version,
            py_version=python,
            hyperparameters=hyperparameters,
            output_path=f"s3://{bucket}/output",
            debugger_hook_config=DebuggerHookConfig(
                s3_output_path=f"s3://{bucket}/tensors",
                hook_parameters={"save_interval": "20"},
                collection_configs=collections,
            ),
            rules=[rule],
        )
        estimator.fit({"training": f"s3://{bucket}/data/"}, wait=False, job_name=name)


if __name__ == "__main__":
    main(*sys.argv[1:])
