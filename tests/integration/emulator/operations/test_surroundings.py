"""Requests for jobs whose role, image or bucket AWS would refuse."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.settings import Settings
from sdk_compat.aws_variables import assume_role
from tests.boto3_client import make_client
from tests.integration.emulator.jobs.job_harness import REGION
from tests.integration.emulator.operations.conftest import Service

ELSEWHERE = "eu-west-1"
SIGNER = {"AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
NO_TRUST = {"Version": "2012-10-17", "Statement": []}
AWS_ACCOUNT, NOBODYS_ACCOUNT = "763104351884", "999999999999"


def name_image(account: str, region: str = REGION, repository: str = "tiny") -> str:
    return f"{account}.dkr.ecr.{region}.amazonaws.com/{repository}:1"


def trust(*services: str) -> dict[str, Any]:
    principal = {"Service": services[0] if len(services) == 1 else list(services)}
    return {"Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]}


def build_training(service: Service, name: str, **members: Any) -> dict[str, Any]:
    request = service.harness.request(name)
    # The harness's own has lines, which the model does not allow.
    algorithm = request["AlgorithmSpecification"] | {"ContainerEntrypoint": [sys.executable, "-c", ""]}
    return request | {"AlgorithmSpecification": algorithm} | members


def build_processing(service: Service, name: str, image: str = "tiny:1", **members: Any) -> dict[str, Any]:
    request: dict[str, Any] = {
        "ProcessingJobName": name,
        "AppSpecification": {"ImageUri": image, "ContainerEntrypoint": [sys.executable, "-c", ""]},
        "ProcessingResources": {"ClusterConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large"}},
        "RoleArn": "arn:aws:iam::123456789012:role/x",
    }
    request["ProcessingResources"]["ClusterConfig"]["VolumeSizeInGB"] = 1
    return request | members


def build_tuning(service: Service, name: str) -> dict[str, Any]:
    training = build_training(service, name)
    members = ("AlgorithmSpecification", "RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition")
    algorithm = training["AlgorithmSpecification"]
    training["AlgorithmSpecification"] = {
        "TrainingImage": algorithm["TrainingImage"],
        "TrainingInputMode": "File",
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.*)"}],
    }
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1},
            "ParameterRanges": {"IntegerParameterRanges": [{"Name": "y", "MinValue": "1", "MaxValue": "9"}]},
        },
        "TrainingJobDefinition": {member: training[member] for member in members},
    }


@contextmanager
def refused(message: str) -> Iterator[None]:
    with pytest.raises(ClientError) as caught:
        yield
    error = caught.value.response["Error"]
    assert (error["Code"], message in error["Message"]) == ("ValidationException", True), error


@pytest.fixture
def iam(service: Service) -> Iterator[Any]:
    client = service.client("iam")
    yield client
    for role in client.list_roles()["Roles"]:
        client.delete_role(RoleName=role["RoleName"])


@pytest.fixture(scope="module")
def bucket_elsewhere(service: Service) -> str:
    s3 = make_client(service.endpoint_url, "s3", ELSEWHERE)
    s3.create_bucket(Bucket="elsewhere", CreateBucketConfiguration={"LocationConstraint": ELSEWHERE})
    s3.put_object(Bucket="elsewhere", Key="data/a", Body=b"1")
    return "s3://elsewhere/data"


def test_a_role_that_does_not_exist_is_refused_where_there_are_roles_for_sagemaker(service: Service, iam: Any) -> None:
    client, absent = service.client(), "arn:aws:iam::123456789012:role/absent"
    client.create_training_job(**build_training(service, "no-roles", RoleArn=absent))
    # A function's role says nothing about those of jobs.
    iam.create_role(RoleName="function", AssumeRolePolicyDocument=json.dumps(trust("lambda.amazonaws.com")))
    iam.create_role(RoleName="nobody", AssumeRolePolicyDocument=json.dumps(NO_TRUST))
    client.create_training_job(**build_training(service, "role-of-a-function", RoleArn=absent))
    assume_role(service.endpoint_url, SIGNER, "SageMakerRole")
    client.create_training_job(**build_training(service, "role-of-the-command-run", RoleArn=absent))
    document = json.dumps(trust("lambda.amazonaws.com", "sagemaker.amazonaws.com"))
    own = iam.create_role(RoleName="own", Path="/service-role/", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    client.create_training_job(**build_training(service, "own-role", RoleArn=own))
    of_others = "arn:aws:iam::111122223333:role/theirs"
    client.create_training_job(**build_training(service, "role-of-others", RoleArn=of_others))
    words = f"Could not assume role {absent}. Please ensure that the role exists and allows principal 'sagemaker."
    with refused(words):
        client.create_training_job(**build_training(service, "refused", RoleArn=absent))
    with refused(words):
        client.create_processing_job(**build_processing(service, "refused", RoleArn=absent))
    tuning = build_tuning(service, "refused")
    tuning["TrainingJobDefinition"]["RoleArn"] = absent
    with refused(words):
        client.create_hyper_parameter_tuning_job(**tuning)
    iam.delete_role(RoleName="own")
    client.create_training_job(**build_training(service, "no-role-for-sagemaker-left", RoleArn=absent))


def test_lenient_roles_take_a_role_that_does_not_exist(
    service: Service, iam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    iam.create_role(RoleName="own", AssumeRolePolicyDocument=json.dumps(trust("sagemaker.amazonaws.com")))
    request = build_training(service, "lenient", RoleArn="arn:aws:iam::123456789012:role/absent")
    with refused("Could not assume role"):
        service.client().create_training_job(**request)
    lenient = Settings(state_dir=service.harness.settings.state_dir, lenient_roles=True)
    services = service.harness.jobs.services
    object.__setattr__(services, "settings", lenient)
    try:
        service.client().create_training_job(**request)
    finally:
        object.__setattr__(services, "settings", service.harness.settings)


def test_an_image_of_another_region_is_refused(service: Service) -> None:
    client, image = service.client(), name_image(AWS_ACCOUNT, ELSEWHERE)
    words = f"Invalid region {ELSEWHERE} in image URI {image}. Please provide an image URI in region {REGION}."
    request = build_training(service, "image-elsewhere")
    with refused(words):
        algorithm = request["AlgorithmSpecification"] | {"TrainingImage": image}
        client.create_training_job(**request | {"AlgorithmSpecification": algorithm})
    with refused(words):
        client.create_processing_job(**build_processing(service, "image-elsewhere", image))
    rule = service.harness.rule("Rule", "pass", RuleEvaluatorImage=image)
    with refused(words):
        client.create_training_job(**request, DebugHookConfig=service.harness.hook(), DebugRuleConfigurations=[rule])


def test_an_image_of_an_account_that_nobody_knows_is_refused(service: Service) -> None:
    client = service.client()
    role = "arn:aws:iam::123456789012:role/x"
    for number, account in enumerate((AWS_ACCOUNT, "123456789012")):
        client.create_processing_job(**build_processing(service, f"known-account-{number}", name_image(account)))
    image = name_image(NOBODYS_ACCOUNT)
    with refused(f"Access denied for repository: tiny in registry ID: {NOBODYS_ACCOUNT}. Please check if your ECR"):
        client.create_processing_job(**build_processing(service, "nobodys", image))
    with refused(f"image exist and role {role} has proper pull permissions"):
        client.create_processing_job(**build_processing(service, "nobodys", image))
    # A repository of that account makes it known.
    from moto.ecr.models import ecr_backends

    ecr_backends[NOBODYS_ACCOUNT][REGION].create_repository("tiny", None, {}, {}, "MUTABLE", [])
    client.create_processing_job(**build_processing(service, "somebodys", image))


@pytest.mark.parametrize(
    "members",
    [
        {"OutputDataConfig": {"S3OutputPath": "s3://elsewhere/out"}},
        {"CheckpointConfig": {"S3Uri": "s3://elsewhere/checkpoints"}},
        {"DebugHookConfig": {"S3OutputPath": "s3://elsewhere/tensors"}},
        {"TensorBoardOutputConfig": {"S3OutputPath": "s3://elsewhere/logs"}},
        {"ProfilerConfig": {"S3OutputPath": "s3://elsewhere/profile"}},
    ],
)
@pytest.mark.usefixtures("bucket_elsewhere")
def test_a_bucket_of_another_region_is_refused(service: Service, members: dict[str, Any]) -> None:
    with refused("bucket must be in the same region as the job, which is us-east-1"):
        service.client().create_training_job(**build_training(service, "bucket-elsewhere", **members))


def test_data_in_another_region_are_refused(service: Service, bucket_elsewhere: str) -> None:
    client = service.client()
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": bucket_elsewhere}}
    words = "and the bucket elsewhere is in eu-west-1: bucket must be in the same region"
    with refused(f"S3Uri of the channel train is {bucket_elsewhere}, {words}"):
        channel = {"ChannelName": "train", "DataSource": source}
        client.create_training_job(**build_training(service, "data-elsewhere", InputDataConfig=[channel]))
    taken = {"S3Uri": bucket_elsewhere, "LocalPath": "/opt/ml/processing/a", "S3DataType": "S3Prefix"}
    given = {"InputName": "a", "S3Input": taken | {"S3InputMode": "File"}}
    with refused(f"S3Uri of the input a is {bucket_elsewhere}, {words}"):
        client.create_processing_job(**build_processing(service, "data-elsewhere", ProcessingInputs=[given]))
    left = {"S3Uri": bucket_elsewhere, "LocalPath": "/opt/ml/processing/b", "S3UploadMode": "EndOfJob"}
    output = {"Outputs": [{"OutputName": "b", "S3Output": left}]}
    with refused(f"S3Uri of the output b is {bucket_elsewhere}, {words}"):
        client.create_processing_job(**build_processing(service, "data-elsewhere", ProcessingOutputConfig=output))
