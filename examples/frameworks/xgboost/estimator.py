"""SageMaker's XGBoost algorithm by the SageMaker SDK (version 2).

An ordinary SDK script: it knows of no emulator.

Needs the data in S3 first, and takes two arguments: the bucket and a job name.
"""

import sys

from sagemaker import image_uris
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule, rule_configs
from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput


def main(bucket: str, job_name: str) -> None:
    estimator = Estimator(
        image_uri=image_uris.retrieve("xgboost", region="us-east-1", version="3.0-5"),
        role="arn:aws:iam::123456789012:role/XgboostTraining",
        instance_count=1,
        instance_type="ml.m5.large",
        output_path=f"s3://{bucket}/output",
        metric_definitions=[
            {"Name": "validation:logloss", "Regex": r".*\[[0-9]+\].*#011validation-logloss:([-+]?[0-9]*\.?[0-9]+).*"}
        ],
        debugger_hook_config=DebuggerHookConfig(
            s3_output_path=f"s3://{bucket}/tensors",
            collection_configs=[CollectionConfig("metrics", parameters={"save_interval": "1"})],
        ),
        rules=[
            Rule.sagemaker(rule_configs.create_xgboost_report()),
            Rule.sagemaker(rule_configs.feature_importance_overweight(), rule_parameters={"threshold": "0.2"}),
        ],
    )
    estimator.set_hyperparameters(
        num_round=20, objective="binary:logistic", eval_metric="logloss", max_depth=3, early_stopping_rounds=5
    )
    channels = {
        channel: TrainingInput(f"s3://{bucket}/data/{channel}/", content_type="text/csv")
        for channel in ("train", "validation")
    }
    estimator.fit(channels, wait=True, logs="All", job_name=job_name)
    print("Model:", estimator.model_data)


if __name__ == "__main__":
    main(*sys.argv[1:])
