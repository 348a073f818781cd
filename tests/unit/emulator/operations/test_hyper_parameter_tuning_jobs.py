"""Tests of CreateHyperParameterTuningJob's checks beyond the service model."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import pytest

from emulator.exceptions import ValidationException
from emulator.jobs import Jobs
from emulator.moto_services.s3.objects import ObjectStore
from emulator.operations.context import Context
from emulator.operations.hyper_parameter_tuning_jobs import create_hyper_parameter_tuning_job
from emulator.settings import Settings


class NoJobs:
    """Jobs that are asked for nothing that is refused."""

    arn = "arn:tuning"
    account_id = "123456789012"
    settings = Settings()
    object_store_for = partial(ObjectStore, account_id)

    @property
    def services(self) -> NoJobs:
        return self

    @property
    def tuning(self) -> NoJobs:
        return self

    @property
    def training(self) -> NoJobs:
        return self

    @property
    def quotas(self) -> NoJobs:
        return self

    def check(self, region: str, request: dict[str, Any], jobs: int) -> None:
        pass

    def create(self, region: str, request: dict[str, Any]) -> NoJobs:
        return self


def create(**members: Any) -> str:
    checked: list[str] = []

    def check(name: str, request: dict[str, Any]) -> dict[str, Any]:
        checked.append(name)
        return request

    context = Context(cast("Jobs", NoJobs()), "us-east-1", check, lambda _arn: False)
    answer = create_hyper_parameter_tuning_job(build_request() | members, context)
    assert set(checked) == {"CreateTrainingJob"}
    return str(answer["HyperParameterTuningJobArn"])


def build_request(**configuration: Any) -> dict[str, Any]:
    return {
        "HyperParameterTuningJobName": "tune",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Bayesian",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxParallelTrainingJobs": 1, "MaxNumberOfTrainingJobs": 2},
            "ParameterRanges": {"IntegerParameterRanges": [{"Name": "x", "MinValue": "1", "MaxValue": "2"}]},
        }
        | configuration,
        "TrainingJobDefinition": DEFINITION,
    }


DEFINITION: dict[str, Any] = {
    "RoleArn": "arn:aws:iam::123456789012:role/x",
    "AlgorithmSpecification": {
        "TrainingImage": "pytorch-training:2",
        "TrainingInputMode": "File",
        "MetricDefinitions": [{"Name": "loss", "Regex": "x"}],
    },
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
    "StoppingCondition": {"MaxRuntimeInSeconds": 60},
}


def ranges(kind: str, *bounds: str, **members: Any) -> dict[str, Any]:
    named = dict(zip(("MinValue", "MaxValue"), bounds, strict=False))
    return {"ParameterRanges": {f"{kind}ParameterRanges": [{"Name": "x", **named, **members}]}}


def config(**configuration: Any) -> dict[str, Any]:
    return {"HyperParameterTuningJobConfig": build_request(**configuration)["HyperParameterTuningJobConfig"]}


def test_what_is_accepted() -> None:
    assert create() == "arn:tuning"
    grid = ranges("Categorical", Values=["1", "2"]) | {"ResourceLimits": {"MaxParallelTrainingJobs": 9}}
    create(**config(Strategy="Grid", **grid))
    create(**config(**ranges("Continuous", "0.5", "0.999", ScalingType="ReverseLogarithmic")))
    resources = {"HyperParameterTuningResourceConfig": {"InstanceConfigs": [{"InstanceType": "ml.m5.large"}]}}
    own = {key: value for key, value in DEFINITION.items() if key != "ResourceConfig"} | resources
    create(TrainingJobDefinition=own)
    xgboost = {"AlgorithmSpecification": {"TrainingImage": "sagemaker-xgboost:1.7-1", "TrainingInputMode": "File"}}
    objective = {"HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "validation:rmse"}}
    create(TrainingJobDefinition=DEFINITION | xgboost, **config(**objective))


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"TrainingJobDefinitions": [DEFINITION]}, "Exactly one of TrainingJobDefinition and"),
        ({"Autotune": {"Mode": "Enabled"}}, "Autotune is not emulated"),
        (config(ParameterRanges={"AutoParameters": [{"Name": "x", "ValueHint": "1"}]}), "AutoParameters are not"),
        (config(ParameterRanges={}), "there would be nothing to tune"),
        (config(Strategy="Grid"), "Grid takes CategoricalParameterRanges only, and 'x'"),
        (config(**ranges("Integer", "1.5", "2")), "must be numbers of IntegerParameterRanges"),
        (config(**ranges("Integer", "1_0", "20")), "must be numbers of IntegerParameterRanges"),
        (config(**ranges("Integer", "1", "2.0")), "must be numbers of IntegerParameterRanges"),
        (config(**ranges("Continuous", "0", "inf")), "must be numbers of ContinuousParameterRanges"),
        (config(**ranges("Continuous", "nan", "1")), "must be numbers of ContinuousParameterRanges"),
        (config(**ranges("Integer", "3", "2")), "must not be more than MaxValue"),
        (config(**ranges("Continuous", "0", "2", ScalingType="Logarithmic")), "MinValue must be more than 0"),
        (config(**ranges("Continuous", "0", "1", ScalingType="ReverseLogarithmic")), "from 0 to less than 1"),
        (
            {"TrainingJobDefinition": DEFINITION | {"StaticHyperParameters": {"x": "1"}}},
            "x cannot be both in StaticHyperParameters and in a range",
        ),
        (
            config(HyperParameterTuningJobObjective={"Type": "Minimize", "MetricName": "f1"}),
            "A metric is required for this hyperparameter tuning job objective",
        ),
        (config(HyperParameterTuningJobObjective={}), "HyperParameterTuningJobObjective must be given"),
        (
            config(ResourceLimits={"MaxParallelTrainingJobs": 3, "MaxNumberOfTrainingJobs": 2}),
            "MaxParallelTrainingJobs must be less than or equal to MaxNumberOfTrainingJobs",
        ),
        (config(ResourceLimits={"MaxParallelTrainingJobs": 3}), "ResourceLimits must have MaxNumberOfTrainingJobs"),
        (
            config(
                Strategy="Grid",
                ResourceLimits={"MaxParallelTrainingJobs": 1, "MaxNumberOfTrainingJobs": 3},
                **ranges("Categorical", Values=["1", "2"]),
            ),
            "the grid has 2 combinations",
        ),
        (
            config(TuningJobCompletionCriteria={"ConvergenceDetected": {"CompleteOnConvergence": "Enabled"}}),
            "CompleteOnConvergence is not emulated",
        ),
        ({"TrainingJobDefinition": DEFINITION | {"ResourceConfig": {}}}, "InstanceType and InstanceCount"),
    ],
)
def test_what_is_refused(members: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationException, match=text):
        create(**members)


def test_definitions_have_names_of_their_own() -> None:
    request = build_request()
    definition = request.pop("TrainingJobDefinition")
    request["TrainingJobDefinitions"] = [definition | {"DefinitionName": "a"}, definition | {"DefinitionName": "a"}]
    context = Context(cast("Jobs", NoJobs()), "us-east-1", lambda _name, sent: sent, lambda _arn: False)
    with pytest.raises(ValidationException, match="DefinitionName of its own"):
        create_hyper_parameter_tuning_job(request, context)
    request["TrainingJobDefinitions"][1]["DefinitionName"] = "b"
    assert create_hyper_parameter_tuning_job(request, context)
