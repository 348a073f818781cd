"""ModelTrainer with a hook and rules, for version 3 of the SageMaker SDK.

ModelTrainer has no argument for the Debugger; CreateTrainingJob has, and so has sagemaker-core. Nothing here is the
emulator's: on AWS it does the same.
"""

from typing import Any

from sagemaker.core import shapes
from sagemaker.core.debugger import Rule, get_rule_container_image_uri
from sagemaker.train import ModelTrainer


class DebuggedTrainer(ModelTrainer):
    """A ModelTrainer whose jobs save tensors, judged by rules while they train.

    Attributes:
        rules: what judges them: ``Rule.sagemaker(…)`` and ``Rule.custom(…)``.
        collections: what is saved beside the collections that the rules bring: parameters by name.
    """

    rules: list[Any] = []  # noqa: RUF012 - a field of a pydantic model, which copies it
    collections: dict[str, dict[str, str]] = {}  # noqa: RUF012

    def _create_training_job_args(self, *args: Any, **named: Any) -> dict[str, Any]:
        request: dict[str, Any] = super()._create_training_job_args(*args, **named)
        saved = {each.name: each.parameters or {} for rule in self.rules for each in rule.collection_configs}
        request["debug_hook_config"] = shapes.DebugHookConfig(
            s3_output_path=request["output_data_config"].s3_output_path,
            collection_configurations=[
                shapes.CollectionConfiguration(collection_name=name, collection_parameters=parameters)
                for name, parameters in (saved | self.collections).items()
            ],
        )
        request["debug_rule_configurations"] = [self._configure(rule) for rule in self.rules]
        return request

    def _configure(self, rule: Rule) -> shapes.DebugRuleConfiguration:
        region = self.sagemaker_session.boto_region_name
        image = rule.image_uri
        return shapes.DebugRuleConfiguration(
            rule_configuration_name=rule.name,
            rule_evaluator_image=get_rule_container_image_uri(rule.name, region) if "DEFAULT" in image else image,
            rule_parameters=rule.rule_parameters,
        )
