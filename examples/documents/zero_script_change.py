"""TensorFlow job of an unmodified script, judged by ExplodingTensor.

The rule judges every tensor that is saved.
"""

from pathlib import Path

import sagemaker
from sagemaker.debugger import CollectionConfig, Rule, rule_configs
from sagemaker.tensorflow import TensorFlow


def main() -> None:
    rule = Rule.sagemaker(
        rule_configs.exploding_tensor(),
        rule_parameters={"tensor_regex": ".*"},
        collections_to_save=[CollectionConfig(name="weights"), CollectionConfig(name="losses")],
    )
    estimator = TensorFlow(
        entry_point=str(Path(__file__).parent / "source" / "keras_script.py"),
        role=sagemaker.get_execution_role(),
        instance_count=1,
        instance_type="ml.m4.xlarge",
        framework_version="1.15",
        py_version="py3",
        rules=[rule],
    )
    estimator.fit(logs="Rules")
    for judged in estimator.latest_training_job.rule_job_summary():
        print(judged["RuleConfigurationName"], judged["RuleEvaluationStatus"])


if __name__ == "__main__":
    main()
