"""Calls that Terraform's resources take: apply, plan, destroy, apply again.

boto3 sends them, so that they are tried where Terraform is not installed; test_terraform.py runs Terraform itself.
"""

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.running_emulator import RunningEmulator

BUCKET, NAME = "of-terraform", "of-terraform"
POLICY_ARN = f"arn:aws:iam::123456789012:policy/{NAME}"
FULL_ACCESS = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"
TOKEN = "t" * 32
DEFINITION = json.dumps({"Version": "2020-12-01", "Steps": [{"Name": "End", "Type": "Fail", "Arguments": {}}]})
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Sid": "OnlyTls",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    ],
}
ALLOWED = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
BLOCKED = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)
# What the provider reads of a bucket, and the error by which it knows that there is none.
READ_OF_BUCKETS = {
    "get_bucket_cors": "NoSuchCORSConfiguration",
    "get_bucket_website": "NoSuchWebsiteConfiguration",
    "get_bucket_lifecycle_configuration": "NoSuchLifecycleConfiguration",
    "get_bucket_replication": "ReplicationConfigurationNotFoundError",
    "get_object_lock_configuration": "ObjectLockConfigurationNotFoundError",
    "get_bucket_acl": "",
    "get_bucket_versioning": "",
    "get_bucket_accelerate_configuration": "",
    "get_bucket_request_payment": "",
    "get_bucket_logging": "",
    "get_bucket_encryption": "",
    "get_bucket_location": "",
    "get_bucket_tagging": "",
    "get_bucket_policy": "",
    "get_public_access_block": "",
}


def build_zip() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(zipfile.ZipInfo("m.py"), "def handler(event, context): return 1\n")
    return content.getvalue()


def apply(client: Callable[[str], Any]) -> None:
    s3, iam, functions, events, sagemaker = map(client, ("s3", "iam", "lambda", "events", "sagemaker"))
    s3.create_bucket(Bucket=BUCKET)
    s3.put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": [{"Key": "by", "Value": "terraform"}]})
    s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(POLICY))
    s3.put_public_access_block(Bucket=BUCKET, PublicAccessBlockConfiguration=BLOCKED)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration={"Rules": [rule]})
    role = iam.create_role(RoleName=NAME, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    iam.put_role_policy(RoleName=NAME, PolicyName="p", PolicyDocument=json.dumps(ALLOWED))
    iam.create_policy(PolicyName=NAME, PolicyDocument=json.dumps(ALLOWED))
    for policy in (POLICY_ARN, FULL_ACCESS):
        iam.attach_role_policy(RoleName=NAME, PolicyArn=policy)
    arn = functions.create_function(
        FunctionName=NAME, Runtime="python3.11", Role=role, Handler="m.handler", Code={"ZipFile": build_zip()}
    )["FunctionArn"]
    functions.get_waiter("function_active_v2").wait(FunctionName=NAME, WaiterConfig={"Delay": 1})
    pattern = json.dumps({"source": ["aws.sagemaker"]})
    rule_arn = events.put_rule(Name=NAME, EventPattern=pattern, State="ENABLED")["RuleArn"]
    assert events.put_targets(Rule=NAME, Targets=[{"Id": "f", "Arn": arn}])["FailedEntryCount"] == 0
    functions.add_permission(
        FunctionName=NAME,
        StatementId="AllowEvents",
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        SourceArn=rule_arn,
    )
    sagemaker.create_model_package_group(ModelPackageGroupName=NAME, Tags=[{"Key": "by", "Value": "terraform"}])
    sagemaker.create_pipeline(
        PipelineName=NAME,
        PipelineDefinition=DEFINITION,
        RoleArn=role,
        ClientRequestToken=TOKEN,
        PipelineDisplayName="x",
    )


def read(client: Callable[[str], Any]) -> dict[str, Any]:
    """What a plan compares."""
    s3, iam, functions, events, sagemaker = map(client, ("s3", "iam", "lambda", "events", "sagemaker"))
    s3.head_bucket(Bucket=BUCKET)
    of_bucket = {}
    for operation, absent in READ_OF_BUCKETS.items():
        ask = getattr(s3, operation)
        if absent:
            with pytest.raises(ClientError) as caught:
                ask(Bucket=BUCKET)
            assert caught.value.response["Error"]["Code"] == absent, operation
        else:
            of_bucket[operation] = ask(Bucket=BUCKET)
    role = iam.get_role(RoleName=NAME)["Role"]
    function = functions.get_function(FunctionName=NAME)
    functions.get_function_code_signing_config(FunctionName=NAME)
    assert functions.list_versions_by_function(FunctionName=NAME)["Versions"][0]["Version"] == "$LATEST"
    group = sagemaker.describe_model_package_group(ModelPackageGroupName=NAME)
    pipeline = sagemaker.describe_pipeline(PipelineName=NAME)
    return {
        "policy": json.loads(of_bucket["get_bucket_policy"]["Policy"]),
        "blocked": of_bucket["get_public_access_block"]["PublicAccessBlockConfiguration"],
        "versioning": of_bucket["get_bucket_versioning"]["Status"],
        "tags": of_bucket["get_bucket_tagging"]["TagSet"],
        "trust": role["AssumeRolePolicyDocument"],
        "policies": iam.list_role_policies(RoleName=NAME)["PolicyNames"],
        "attached": [each["PolicyName"] for each in iam.list_attached_role_policies(RoleName=NAME)["AttachedPolicies"]],
        "function": [function["Configuration"][member] for member in ("Handler", "Runtime", "Role", "CodeSha256")],
        "permissions": [
            each["Sid"] for each in json.loads(functions.get_policy(FunctionName=NAME)["Policy"])["Statement"]
        ],
        "rule": json.loads(events.describe_rule(Name=NAME)["EventPattern"]),
        "targets": [each["Id"] for each in events.list_targets_by_rule(Rule=NAME)["Targets"]],
        "rule_tags": events.list_tags_for_resource(ResourceARN=events.describe_rule(Name=NAME)["Arn"])["Tags"],
        "group": [
            group["ModelPackageGroupStatus"],
            sagemaker.list_tags(ResourceArn=group["ModelPackageGroupArn"])["Tags"],
        ],
        "pipeline": [pipeline["PipelineDefinition"], pipeline["PipelineDisplayName"], pipeline["RoleArn"]],
        "pipeline_tags": sagemaker.list_tags(ResourceArn=pipeline["PipelineArn"])["Tags"],
    }


def destroy(client: Callable[[str], Any]) -> None:
    s3, iam, functions, events, sagemaker = map(client, ("s3", "iam", "lambda", "events", "sagemaker"))
    sagemaker.delete_pipeline(PipelineName=NAME, ClientRequestToken=TOKEN)
    sagemaker.delete_model_package_group(ModelPackageGroupName=NAME)
    functions.remove_permission(FunctionName=NAME, StatementId="AllowEvents")
    events.remove_targets(Rule=NAME, Ids=["f"])
    events.delete_rule(Name=NAME)
    functions.delete_function(FunctionName=NAME)
    for policy in (POLICY_ARN, FULL_ACCESS):
        iam.detach_role_policy(RoleName=NAME, PolicyArn=policy)
    iam.delete_policy(PolicyArn=POLICY_ARN)
    iam.delete_role_policy(RoleName=NAME, PolicyName="p")
    assert iam.list_instance_profiles_for_role(RoleName=NAME)["InstanceProfiles"] == []
    iam.delete_role(RoleName=NAME)
    s3.delete_public_access_block(Bucket=BUCKET)
    s3.delete_bucket_policy(Bucket=BUCKET)
    s3.delete_bucket(Bucket=BUCKET)


def list_absent(client: Callable[[str], Any]) -> list[str]:
    """The errors by which the provider knows that what it destroyed is gone."""
    asked: list[Callable[[], Any]] = [
        lambda: client("s3").head_bucket(Bucket=BUCKET),
        lambda: client("iam").get_role(RoleName=NAME),
        lambda: client("lambda").get_function(FunctionName=NAME),
        lambda: client("events").describe_rule(Name=NAME),
        lambda: client("sagemaker").describe_model_package_group(ModelPackageGroupName=NAME),
        lambda: client("sagemaker").describe_pipeline(PipelineName=NAME),
    ]
    codes = []
    for ask in asked:
        with pytest.raises(ClientError) as caught:
            ask()
        codes.append(caught.value.response["Error"]["Code"])
    return codes


@pytest.mark.any_back_end
def test_what_is_applied_is_read_destroyed_and_applied_again(served: RunningEmulator) -> None:
    client = served.client
    apply(client)
    first = read(client)
    assert (first["policy"], first["blocked"], first["trust"]) == (POLICY, BLOCKED, TRUST)
    assert first["pipeline"][:2] == [DEFINITION, "x"]
    assert read(client) == first, "a second plan is empty"
    absent = ["404", "NoSuchEntity", *["ResourceNotFoundException"] * 2, "ValidationException", "ResourceNotFound"]
    destroy(client)
    assert list_absent(client) == absent
    apply(client)
    assert read(client) == first
    destroy(client)
