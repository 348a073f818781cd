"""Factories of every kind of taggable SageMaker resource."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.contract.like_moto_server.servers import ACCOUNT, ROLE, Server

IMAGE = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/image:latest"
CLUSTER = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}
STOPPING = {"MaxRuntimeInSeconds": 60}


class Kind(NamedTuple):
    """How a resource of a kind is made."""

    operation: str
    request: Callable[[str], dict[str, Any]]
    arn: str


def make_model(name: str) -> dict[str, Any]:
    return {"ModelName": name, "ExecutionRoleArn": ROLE, "PrimaryContainer": {"Image": IMAGE}}


def make_endpoint_config(name: str) -> dict[str, Any]:
    variant = {"VariantName": "all", "ModelName": name, "InitialInstanceCount": 1, "InstanceType": "ml.m5.large"}
    return {"EndpointConfigName": name, "ProductionVariants": [variant]}


def make_training_job(name: str) -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": f"s3://{name}/output"},
        "ResourceConfig": CLUSTER,
        "StoppingCondition": STOPPING,
    }


def make_processing_job(name: str) -> dict[str, Any]:
    return {
        "ProcessingJobName": name,
        "RoleArn": ROLE,
        "AppSpecification": {"ImageUri": IMAGE},
        "ProcessingResources": {"ClusterConfig": CLUSTER},
    }


def make_tuning_job(name: str) -> dict[str, Any]:
    training = make_training_job(name)
    definition = {key: training[key] for key in ("RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition")}
    metric = {"Name": "loss", "Regex": "loss=(.*)"}
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1},
            "ParameterRanges": {"IntegerParameterRanges": [{"Name": "depth", "MinValue": "1", "MaxValue": "2"}]},
        },
        "TrainingJobDefinition": {
            **definition,
            "AlgorithmSpecification": {
                "TrainingImage": IMAGE,
                "TrainingInputMode": "File",
                "MetricDefinitions": [metric],
            },
        },
    }


def make_transform_job(name: str) -> dict[str, Any]:
    return {
        "TransformJobName": name,
        "ModelName": name,
        "TransformInput": {"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{name}/input"}}},
        "TransformOutput": {"S3OutputPath": f"s3://{name}/output"},
        "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    }


def make_compilation_job(name: str) -> dict[str, Any]:
    return {
        "CompilationJobName": name,
        "RoleArn": ROLE,
        "InputConfig": {"S3Uri": f"s3://{name}/input", "Framework": "PYTORCH", "DataInputConfig": "{}"},
        "OutputConfig": {"S3OutputLocation": f"s3://{name}/output", "TargetDevice": "ml_m5"},
        "StoppingCondition": STOPPING,
    }


def make_notebook_instance(name: str) -> dict[str, Any]:
    return {"NotebookInstanceName": name, "InstanceType": "ml.t3.medium", "RoleArn": ROLE}


def make_pipeline(name: str) -> dict[str, Any]:
    definition = '{"Version": "2020-12-01", "Parameters": [], "Steps": []}'
    return {
        "PipelineName": name,
        "RoleArn": ROLE,
        "PipelineDefinition": definition,
        "ClientRequestToken": "0" * 32,
    }


def make_feature_group(name: str) -> dict[str, Any]:
    return {
        "FeatureGroupName": name,
        "RecordIdentifierFeatureName": "id",
        "EventTimeFeatureName": "time",
        "FeatureDefinitions": [{"FeatureName": each, "FeatureType": "String"} for each in ("id", "time")],
        "RoleArn": ROLE,
        "OfflineStoreConfig": {"S3StorageConfig": {"S3Uri": f"s3://{name}/features"}},
    }


KINDS = {
    "model": Kind("create_model", make_model, "ModelArn"),
    "endpoint configuration": Kind("create_endpoint_config", make_endpoint_config, "EndpointConfigArn"),
    "endpoint": Kind("create_endpoint", lambda name: {"EndpointName": name, "EndpointConfigName": name}, "EndpointArn"),
    "training job": Kind("create_training_job", make_training_job, "TrainingJobArn"),
    "processing job": Kind("create_processing_job", make_processing_job, "ProcessingJobArn"),
    "tuning job": Kind("create_hyper_parameter_tuning_job", make_tuning_job, "HyperParameterTuningJobArn"),
    "transform job": Kind("create_transform_job", make_transform_job, "TransformJobArn"),
    "compilation job": Kind("create_compilation_job", make_compilation_job, "CompilationJobArn"),
    "notebook instance": Kind("create_notebook_instance", make_notebook_instance, "NotebookInstanceArn"),
    "experiment": Kind("create_experiment", lambda name: {"ExperimentName": name}, "ExperimentArn"),
    "trial": Kind("create_trial", lambda name: {"TrialName": name, "ExperimentName": name}, "TrialArn"),
    "trial component": Kind("create_trial_component", lambda name: {"TrialComponentName": name}, "TrialComponentArn"),
    "pipeline": Kind("create_pipeline", make_pipeline, "PipelineArn"),
    "model package group": Kind(
        "create_model_package_group", lambda name: {"ModelPackageGroupName": name}, "ModelPackageGroupArn"
    ),
    "feature group": Kind("create_feature_group", make_feature_group, "FeatureGroupArn"),
}
# What has to be there before a resource of a kind: kinds of the same name.
NEEDS = {
    "endpoint configuration": ["model"],
    "endpoint": ["model", "endpoint configuration"],
    "transform job": ["model"],
    "trial": ["experiment"],
}


def create(server: Server, kind: str, name: str, **more: Any) -> str:
    made = KINDS[kind]
    response = getattr(server.client("sagemaker"), made.operation)(**made.request(name), **more)
    return str(response[made.arn])
