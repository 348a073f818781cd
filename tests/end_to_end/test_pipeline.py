"""Tests of pipelines through the API: processing and training, and a failure."""

import io
import json
import uuid
import zipfile
from typing import Any

import pytest

from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

pytestmark = pytest.mark.any_back_end

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
ROLE = "arn:aws:iam::123456789012:role/Pipeline"
CLUSTER = {"InstanceCount": {"Get": "Parameters.count"}, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1}
SPLIT = "open('/opt/ml/processing/train/rows.txt', 'w').write('1 2 3')"
TRAIN = (
    "import os, pathlib; ml = pathlib.Path(os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml')); "
    "text = (ml / 'input/data/train/rows.txt').read_text(); (ml / 'model/sum').write_text(text)"
)


def build_steps(bucket: str, train: str) -> list[dict[str, Any]]:
    split = {
        "AppSpecification": {"ImageUri": IMAGE, "ContainerEntrypoint": ["python3", "-c", SPLIT]},
        "ProcessingResources": {"ClusterConfig": CLUSTER},
        "RoleArn": ROLE,
        "ProcessingOutputConfig": {
            "Outputs": [
                {
                    "OutputName": "train",
                    "S3Output": {
                        "S3Uri": {
                            "Std:Join": {
                                "On": "/",
                                "Values": [f"s3://{bucket}", {"Get": "Execution.PipelineExecutionId"}, "train"],
                            }
                        },
                        "LocalPath": "/opt/ml/processing/train",
                        "S3UploadMode": "EndOfJob",
                    },
                }
            ]
        },
    }
    uri = {"Get": "Steps.Split.ProcessingOutputConfig.Outputs['train'].S3Output.S3Uri"}
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}
    training = {
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python3", "-c", train],
        },
        "RoleArn": ROLE,
        "InputDataConfig": [{"ChannelName": "train", "DataSource": source}],
        "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/out"},
        "ResourceConfig": CLUSTER,
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
    }
    return [
        {"Name": "Train", "Type": "Training", "Arguments": training},
        {"Name": "Split", "Type": "Processing", "Arguments": split},
        {"Name": "After", "Type": "Processing", "Arguments": split, "DependsOn": ["Train"]},
    ]


def run(emulator: RunningEmulator, train: str, count: str = "1") -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The execution's ARN, its description at its end, and its steps by name."""
    name = f"pipeline-{uuid.uuid4().hex[:8]}"
    emulator.client("s3").create_bucket(Bucket=name)
    return run_steps(emulator, name, build_steps(name, train), count)


def run_steps(
    emulator: RunningEmulator, name: str, steps: list[dict[str, Any]], count: str = "1"
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """As ``run``, of a pipeline of these steps."""
    sagemaker = emulator.client("sagemaker")
    definition = {
        "Version": "2020-12-01",
        "Parameters": [{"Name": "count", "Type": "Integer", "DefaultValue": 1}],
        "Steps": steps,
    }
    sagemaker.create_pipeline(
        PipelineName=name, PipelineDefinition=json.dumps(definition), RoleArn=ROLE, ClientRequestToken="t" * 32
    )
    parameters = [{"Name": "count", "Value": count}]
    arn = sagemaker.start_pipeline_execution(PipelineName=name, PipelineParameters=parameters)["PipelineExecutionArn"]

    def describe() -> dict[str, Any]:
        found: dict[str, Any] = sagemaker.describe_pipeline_execution(PipelineExecutionArn=arn)
        return found

    ended = {"Succeeded", "Failed", "Stopped"}
    wait_until(lambda: describe()["PipelineExecutionStatus"] in ended, lambda: f"{describe()}\n{emulator.log_text()}")
    shown = sagemaker.list_pipeline_execution_steps(PipelineExecutionArn=arn)["PipelineExecutionSteps"]
    (summary,) = sagemaker.list_pipeline_executions(PipelineName=name)["PipelineExecutionSummaries"]
    assert summary["PipelineExecutionArn"] == arn
    return arn, describe(), {step["StepName"]: step for step in shown}


def test_steps_run_in_the_order_of_their_needs(emulator: RunningEmulator) -> None:
    arn, execution, steps = run(emulator, TRAIN)
    assert execution["PipelineExecutionStatus"] == "Succeeded", steps
    assert {name: step["StepStatus"] for name, step in steps.items()} == dict.fromkeys(
        ("Split", "Train", "After"), "Succeeded"
    )
    assert steps["Split"]["EndTime"] <= steps["Train"]["StartTime"]
    assert steps["Train"]["EndTime"] <= steps["After"]["StartTime"]
    sagemaker = emulator.client("sagemaker")
    job = steps["Train"]["Metadata"]["TrainingJob"]["Arn"].rpartition("/")[2]
    trained = sagemaker.describe_training_job(TrainingJobName=job)
    assert trained["ResourceConfig"]["InstanceCount"] == 1
    uri = trained["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"]
    assert uri.endswith(f"/{arn.rpartition('/')[2]}/train")
    shown = sagemaker.list_pipeline_parameters_for_execution(PipelineExecutionArn=arn)["PipelineParameters"]
    assert shown == [{"Name": "count", "Value": "1"}]


def test_a_step_that_fails_ends_the_execution(emulator: RunningEmulator) -> None:
    _, execution, steps = run(emulator, "raise SystemExit(3)")
    assert execution["PipelineExecutionStatus"] == "Failed"
    assert execution["FailureReason"] == "Step failure: One or multiple steps failed."
    assert "exit code: 3" in steps["Train"]["FailureReason"]
    assert steps.keys() == {"Split", "Train"}


def test_what_the_api_refuses_fails_the_step(emulator: RunningEmulator) -> None:
    _, execution, steps = run(emulator, TRAIN, count="99")
    assert execution["PipelineExecutionStatus"] == "Failed"
    assert "at most 16 instances" in steps["Split"]["FailureReason"]
    sagemaker = emulator.client("sagemaker")
    with pytest.raises(sagemaker.exceptions.ResourceNotFound):
        sagemaker.start_pipeline_execution(PipelineName="nobody")


DOUBLE = b"def handler(event, context):\n    return {'doubled': event['number'] * 2, 'of': event['number']}\n"


def test_steps_that_are_not_jobs(emulator: RunningEmulator) -> None:
    """A function doubles a number of a file, a condition takes its branch by that, and the branch fails on purpose."""
    name = f"pipeline-{uuid.uuid4().hex[:8]}"
    emulator.client("s3").create_bucket(Bucket=name)
    emulator.client("s3").put_object(Bucket=name, Key="scores.json", Body=json.dumps({"scores": {"auc": [21]}}))
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("code.py", DOUBLE)
    role = emulator.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    arn = emulator.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role=role,
        Handler="code.handler",
        Code={"ZipFile": code.getvalue()},
    )["FunctionArn"]
    number = {"Std:JsonGet": {"S3Uri": f"s3://{name}/scores.json", "Path": "scores.auc[0]"}}
    doubled = {"Get": "Steps.Double.OutputParameters['doubled']"}
    model = {"ExecutionRoleArn": ROLE, "PrimaryContainer": {"Image": IMAGE, "ModelDataUrl": f"s3://{name}/m"}}
    message = {"Std:Join": {"On": " ", "Values": ["too good:", doubled]}}
    package = {
        "ModelPackageGroupName": f"{name}-group",
        "InferenceSpecification": {
            "Containers": [{"Image": IMAGE}],
            "SupportedContentTypes": ["text/csv"],
            "SupportedResponseMIMETypes": ["text/csv"],
        },
    }
    good = [
        {"Name": "Model", "Type": "Model", "Arguments": model},
        {"Name": "Package", "Type": "RegisterModel", "Arguments": package, "DependsOn": ["Model"]},
        {"Name": "Refuse", "Type": "Fail", "Arguments": {"ErrorMessage": message}, "DependsOn": ["Package"]},
    ]
    conditions = [
        {"Type": "GreaterThan", "LeftValue": doubled, "RightValue": {"Get": "Parameters.count"}},
        {"Type": "Not", "Expression": {"Type": "In", "QueryValue": doubled, "Values": [41, 43]}},
    ]
    steps = [
        {
            "Name": "If",
            "Type": "Condition",
            "Arguments": {
                "Conditions": conditions,
                "IfSteps": good,
                "ElseSteps": [{"Name": "Never", "Type": "Fail", "Arguments": {"ErrorMessage": "not this branch"}}],
            },
        },
        {
            "Name": "Double",
            "Type": "Lambda",
            "FunctionArn": arn,
            "Arguments": {"number": number},
            "OutputParameters": [{"OutputName": "doubled", "OutputType": "Integer"}],
        },
    ]
    _, execution, shown = run_steps(emulator, name, steps)
    assert {each: step["StepStatus"] for each, step in shown.items()} == {
        "Double": "Succeeded",
        "If": "Succeeded",
        "Model": "Succeeded",
        "Package": "Succeeded",
        "Refuse": "Failed",
    }, shown
    assert execution["PipelineExecutionStatus"] == "Failed"
    assert shown["If"]["Metadata"] == {"Condition": {"Outcome": "True"}}
    outputs = [{"Name": "doubled", "Value": "42"}]
    assert shown["Double"]["Metadata"] == {"Lambda": {"Arn": arn, "OutputParameters": outputs}}
    assert shown["Refuse"]["FailureReason"] == "too good: 42"
    assert shown["Refuse"]["Metadata"] == {"Fail": {"ErrorMessage": "too good: 42"}}
    sagemaker = emulator.client("sagemaker")
    made = shown["Model"]["Metadata"]["Model"]["Arn"].rpartition("/")[2]
    assert sagemaker.describe_model(ModelName=made)["PrimaryContainer"]["ModelDataUrl"] == f"s3://{name}/m"
    registered = sagemaker.list_model_packages(ModelPackageGroupName=f"{name}-group")["ModelPackageSummaryList"]
    assert [each["ModelPackageArn"] for each in registered] == [shown["Package"]["Metadata"]["RegisterModel"]["Arn"]]


def test_a_function_that_fails_fails_its_step(emulator: RunningEmulator) -> None:
    name = f"pipeline-{uuid.uuid4().hex[:8]}"
    gone = "arn:aws:lambda:us-east-1:123456789012:function:nobody"
    _, execution, shown = run_steps(emulator, name, [{"Name": "Call", "Type": "Lambda", "FunctionArn": gone}])
    assert execution["PipelineExecutionStatus"] == "Failed"
    assert "ResourceNotFound" in shown["Call"]["FailureReason"]
