"""Custom rule on a job by the SDK, then on its saved run with another threshold."""

import sys
from pathlib import Path

import sagemaker
from sagemaker.debugger import CollectionConfig, Rule
from sagemaker.pytorch import PyTorch

from smdebug.exceptions import NoMoreData
from smdebug.rules import invoke_rule
from smdebug.trials import create_trial

SOURCE = Path(__file__).parent / "source"


def main() -> None:
    rule = Rule.custom(
        name="VGRule",
        image_uri="sagemaker-debugger-rule-evaluator:latest",
        instance_type="ml.t3.medium",
        source=str(SOURCE / "vanishing_gradient_rule.py"),
        rule_to_invoke="VanishingGradientRule",
        volume_size_in_gb=30,
        collections_to_save=[CollectionConfig("gradients", {"save_interval": "5"})],
        rule_parameters={"threshold": "20.0"},
    )
    estimator = PyTorch(
        entry_point=str(SOURCE / "torch_script.py"),
        role=sagemaker.get_execution_role(),
        instance_count=1,
        instance_type="ml.m5.large",
        framework_version="1.6.0",
        py_version="py36",
        rules=[rule],
    )
    estimator.fit(logs="Rules")
    for judged in estimator.latest_training_job.rule_job_summary():
        print(judged["RuleConfigurationName"], judged["RuleEvaluationStatus"])

    sys.path.insert(0, str(SOURCE))
    from vanishing_gradient_rule import VanishingGradientRule

    trial = create_trial(estimator.latest_job_debugger_artifacts_path(), range_steps=(0, 15))
    try:
        invoke_rule(VanishingGradientRule(trial, threshold="0.0"), start_step=0, end_step=None)
    except NoMoreData:
        print("No gradient is nothing at all, in steps", trial.steps())


if __name__ == "__main__":
    main()
