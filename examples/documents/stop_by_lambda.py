"""Custom rule in a CreateTrainingJob request, and a function that stops the job.

CloudWatch Events call the Lambda function.
"""

import io
import json
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import boto3

SOURCE = Path(__file__).parent / "source"
BUCKET = "debugger-documents"
ACCOUNT = boto3.client("sts").get_caller_identity()["Account"]
ROLE = f"arn:aws:iam::{ACCOUNT}:role/DebuggerDocuments"
# Looks at the event as the handler of AWS's page does: member by member, each of which may be missing.
HANDLER = """
import json

import boto3


def lambda_handler(event, context):
    detail = event.get("detail", {})
    statuses = detail.get("DebugRuleEvaluationStatuses") or []
    if detail.get("TrainingJobStatus") == "InProgress":
        for status in statuses:
            if status.get("RuleEvaluationStatus") == "IssuesFound":
                name = detail.get("TrainingJobName")
                print(status.get("RuleConfigurationName"), "found an issue, stopping", name)
                boto3.client("sagemaker").stop_training_job(TrainingJobName=name)
                break
    return {"statusCode": 200, "body": json.dumps("done")}
"""


def deploy_function(job: str) -> None:
    """Let events of this job alone call the function: the jobs of others are not ours to stop."""
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w") as package:
        package.writestr("lambda_function.py", HANDLER)
    functions, events = boto3.client("lambda"), boto3.client("events")
    function = functions.create_function(
        FunctionName="debugger-stop",
        Runtime="python3.11",
        Role=ROLE,
        Handler="lambda_function.lambda_handler",
        Code={"ZipFile": bundle.getvalue()},
    )["FunctionArn"]
    pattern = {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker Training Job State Change"],
        "detail": {"TrainingJobName": [job]},
    }
    rule = events.put_rule(Name="debugger-rule-fired", EventPattern=json.dumps(pattern))["RuleArn"]
    functions.add_permission(
        FunctionName="debugger-stop",
        StatementId="events",
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        SourceArn=rule,
    )
    events.put_targets(Rule="debugger-rule-fired", Targets=[{"Id": "1", "Arn": function}])


def remove_function() -> None:
    events = boto3.client("events")
    events.remove_targets(Rule="debugger-rule-fired", Ids=["1"])
    events.delete_rule(Name="debugger-rule-fired")
    boto3.client("lambda").delete_function(FunctionName="debugger-stop")
    boto3.client("iam").delete_role(RoleName="DebuggerDocuments")


def upload_sources() -> tuple[str, str]:
    """URIs of the training's bundle and of the rule."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        tar.add(SOURCE / "torch_script.py", arcname="torch_script.py")
    s3.put_object(Bucket=BUCKET, Key="source/sourcedir.tar.gz", Body=bundle.getvalue())
    s3.upload_file(str(SOURCE / "vanishing_gradient_rule.py"), BUCKET, "rules/vanishing_gradient_rule.py")
    return f"s3://{BUCKET}/source/sourcedir.tar.gz", f"s3://{BUCKET}/rules/vanishing_gradient_rule.py"


def main(name: str) -> None:
    boto3.client("iam").create_role(RoleName="DebuggerDocuments", AssumeRolePolicyDocument="{}")
    deploy_function(name)
    try:
        train_until_stopped(name)
    finally:
        remove_function()


def train_until_stopped(name: str) -> None:
    source, rule = upload_sources()
    sagemaker = boto3.client("sagemaker")
    sagemaker.create_training_job(
        TrainingJobName=name,
        RoleArn=ROLE,
        AlgorithmSpecification={
            "TrainingImage": "pytorch-training:1.6.0-cpu-py36-ubuntu16.04",
            "TrainingInputMode": "File",
        },
        HyperParameters={
            "sagemaker_program": "torch_script.py",
            "sagemaker_submit_directory": source,
            "steps": "6000",
            "seconds-a-step": "0.1",
        },
        OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/output"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 900},
        DebugHookConfig={
            "S3OutputPath": f"s3://{BUCKET}/tensors",
            "CollectionConfigurations": [
                {"CollectionName": "gradients", "CollectionParameters": {"save_interval": "5"}}
            ],
        },
        DebugRuleConfigurations=[
            {
                "RuleConfigurationName": "VGRule",
                "InstanceType": "ml.t3.medium",
                "VolumeSizeInGB": 30,
                "RuleEvaluatorImage": "sagemaker-debugger-rule-evaluator:latest",
                "RuleParameters": {
                    "source_s3_uri": rule,
                    "rule_to_invoke": "VanishingGradientRule",
                    "threshold": "20.0",
                },
            }
        ],
    )
    while (described := sagemaker.describe_training_job(TrainingJobName=name))["TrainingJobStatus"] in (
        "InProgress",
        "Stopping",
    ):
        time.sleep(0.3)
    for judged in described["DebugRuleEvaluationStatuses"]:
        print(judged["RuleConfigurationName"], judged["RuleEvaluationStatus"])
    print(name, described["TrainingJobStatus"])


if __name__ == "__main__":
    main(*sys.argv[1:] or [f"stopped-by-lambda-{time.strftime('%H-%M-%S')}"])
