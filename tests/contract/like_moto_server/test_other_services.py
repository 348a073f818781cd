"""Tests of IAM, STS, Logs, Secrets Manager, SSM parameters, DynamoDB and KMS."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.contract.like_moto_server.servers import ACCOUNT, MOTO_SERVER, Departure, Server, read_error


def write_policy(action: str, **more: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, **more}]})


TRUST = write_policy("sts:AssumeRole", Principal={"Service": "sagemaker.amazonaws.com"})


def test_a_role_has_policies_until_they_are_detached(server: Server, name: str) -> None:
    iam = server.client("iam")
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST, Tags=[{"Key": "a", "Value": "1"}])["Role"]
    assert role["Arn"] == f"arn:aws:iam::{ACCOUNT}:role/{name}"
    assert iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"] == json.loads(TRUST)
    assert iam.list_role_tags(RoleName=name)["Tags"] == [{"Key": "a", "Value": "1"}]

    document = write_policy("s3:GetObject", Resource="*")
    policy = iam.create_policy(PolicyName=name, PolicyDocument=document)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName=name, PolicyArn=policy)
    iam.put_role_policy(RoleName=name, PolicyName="inline", PolicyDocument=document)
    attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    assert attached == [{"PolicyName": name, "PolicyArn": policy}]
    assert iam.get_role_policy(RoleName=name, PolicyName="inline")["PolicyDocument"] == json.loads(document)

    assert read_error(iam.delete_role, RoleName=name) == "DeleteConflict"
    iam.detach_role_policy(RoleName=name, PolicyArn=policy)
    iam.delete_role_policy(RoleName=name, PolicyName="inline")
    iam.delete_role(RoleName=name)
    assert read_error(iam.get_role, RoleName=name) == "NoSuchEntity"


def test_a_policy_that_a_role_has_is_not_deleted(server: Server, name: str) -> None:
    iam = server.client("iam")
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)
    document = write_policy("s3:GetObject", Resource="*")
    policy = iam.create_policy(PolicyName=name, PolicyDocument=document)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName=name, PolicyArn=policy)
    source = "AWS Identity and Access Management API Reference: DeletePolicy"
    server.expect(
        read_error(iam.delete_policy, PolicyArn=policy), "DeleteConflict", Departure(MOTO_SERVER, None, source)
    )


def test_a_policy_has_versions_of_which_one_is_the_default(server: Server, name: str) -> None:
    iam = server.client("iam")
    first, second = (write_policy(action, Resource="*") for action in ("s3:GetObject", "s3:PutObject"))
    policy = iam.create_policy(PolicyName=name, PolicyDocument=first)["Policy"]["Arn"]
    iam.create_policy_version(PolicyArn=policy, PolicyDocument=second, SetAsDefault=True)
    assert iam.get_policy(PolicyArn=policy)["Policy"]["DefaultVersionId"] == "v2"
    found = iam.get_policy_version(PolicyArn=policy, VersionId="v1")["PolicyVersion"]
    assert (found["Document"], found["IsDefaultVersion"]) == (json.loads(first), False)
    assert read_error(iam.delete_policy_version, PolicyArn=policy, VersionId="v2") == "DeleteConflict"


@pytest.mark.parametrize("document", ["not JSON", "{}", '{"Version": "2012-10-17", "Statement": "none"}'])
def test_a_policy_that_is_none_is_refused(server: Server, name: str, document: str) -> None:
    create = server.client("iam").create_policy
    assert read_error(create, PolicyName=name, PolicyDocument=document) == "MalformedPolicyDocument"


def test_a_role_is_assumed(server: Server, name: str) -> None:
    role = server.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    sts = server.client("sts")
    assumed = sts.assume_role(RoleArn=role, RoleSessionName="me")
    assert assumed["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/me"
    assert sts.get_caller_identity()["Account"] == ACCOUNT


def test_log_events_are_put_read_and_filtered(server: Server, name: str) -> None:
    logs = server.client("logs")
    logs.create_log_group(logGroupName=name, tags={"team": "red"})
    logs.put_retention_policy(logGroupName=name, retentionInDays=7)
    logs.create_log_stream(logGroupName=name, logStreamName="one")
    (group,) = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    assert group["retentionInDays"] == 7
    assert logs.list_tags_log_group(logGroupName=name)["tags"] == {"team": "red"}

    now = int(datetime.now(UTC).timestamp() * 1000)
    events = [{"timestamp": now + number, "message": text} for number, text in enumerate(("good", "ERROR bad", "x"))]
    logs.put_log_events(logGroupName=name, logStreamName="one", logEvents=events)
    read = logs.get_log_events(logGroupName=name, logStreamName="one", startFromHead=True)["events"]
    assert [each["message"] for each in read] == ["good", "ERROR bad", "x"]
    found = logs.filter_log_events(logGroupName=name, filterPattern="ERROR")["events"]
    assert [each["message"] for each in found] == ["ERROR bad"]
    assert read_error(logs.create_log_group, logGroupName=name) == "ResourceAlreadyExistsException"
    logs.delete_log_group(logGroupName=name)
    assert read_error(logs.describe_log_streams, logGroupName=name) == "ResourceNotFoundException"


def test_a_secret_has_versions_and_can_be_restored(server: Server, name: str) -> None:
    secrets = server.client("secretsmanager")
    arn = secrets.create_secret(Name=name, SecretString="one", Tags=[{"Key": "a", "Value": "1"}])["ARN"]
    secrets.put_secret_value(SecretId=name, SecretString="two")
    assert secrets.get_secret_value(SecretId=arn)["SecretString"] == "two"
    assert secrets.get_secret_value(SecretId=name, VersionStage="AWSPREVIOUS")["SecretString"] == "one"
    assert secrets.describe_secret(SecretId=name)["Tags"] == [{"Key": "a", "Value": "1"}]
    assert read_error(secrets.create_secret, Name=name, SecretString="x") == "ResourceExistsException"

    secrets.delete_secret(SecretId=name, RecoveryWindowInDays=7)
    assert read_error(secrets.get_secret_value, SecretId=name) == "InvalidRequestException"
    secrets.restore_secret(SecretId=name)
    assert secrets.get_secret_value(SecretId=name)["SecretString"] == "two"
    secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    assert read_error(secrets.get_secret_value, SecretId=name) == "ResourceNotFoundException"


def test_parameters_have_versions_and_paths(server: Server, name: str) -> None:
    ssm = server.client("ssm")
    for key in ("a", "b/c"):
        ssm.put_parameter(Name=f"/{name}/{key}", Value="1", Type="String")
    assert read_error(ssm.put_parameter, Name=f"/{name}/a", Value="2", Type="String") == "ParameterAlreadyExists"
    assert ssm.put_parameter(Name=f"/{name}/a", Value="2", Type="String", Overwrite=True)["Version"] == 2
    assert ssm.get_parameter(Name=f"/{name}/a")["Parameter"]["Value"] == "2"
    assert ssm.get_parameter(Name=f"/{name}/a:1")["Parameter"]["Value"] == "1"

    def list_names(*, recursive: bool) -> list[str]:
        found = ssm.get_parameters_by_path(Path=f"/{name}", Recursive=recursive)["Parameters"]
        return sorted(each["Name"] for each in found)

    assert list_names(recursive=False) == [f"/{name}/a"]
    assert list_names(recursive=True) == [f"/{name}/a", f"/{name}/b/c"]
    ssm.delete_parameter(Name=f"/{name}/a")
    assert read_error(ssm.get_parameter, Name=f"/{name}/a") == "ParameterNotFound"


def test_a_secure_parameter_is_readable_only_where_asked(server: Server, name: str) -> None:
    ssm = server.client("ssm")
    ssm.put_parameter(Name=name, Value="hidden", Type="SecureString")
    assert ssm.get_parameter(Name=name)["Parameter"]["Value"] != "hidden"
    assert ssm.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"] == "hidden"


@pytest.fixture
def table(server: Server, name: str) -> str:
    keys = [("id", "HASH", "S"), ("step", "RANGE", "N")]
    server.client("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind, _ in keys],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, _, kind in keys],
    )
    return name


def test_items_are_queried_by_their_keys(server: Server, table: str) -> None:
    dynamodb = server.client("dynamodb")
    for step in range(4):
        item = {"id": {"S": "run"}, "step": {"N": str(step)}, "loss": {"N": str(4 - step)}}
        dynamodb.put_item(TableName=table, Item=item)
    found = dynamodb.query(
        TableName=table,
        KeyConditionExpression="id = :id AND step >= :step",
        FilterExpression="loss < :loss",
        ExpressionAttributeValues={":id": {"S": "run"}, ":step": {"N": "1"}, ":loss": {"N": "3"}},
        ScanIndexForward=False,
    )
    assert [item["step"]["N"] for item in found["Items"]] == ["3", "2"]
    assert (found["Count"], found["ScannedCount"]) == (2, 3)
    page = dynamodb.scan(TableName=table, Limit=3)
    assert len(page["Items"]) == 3
    assert len(dynamodb.scan(TableName=table, ExclusiveStartKey=page["LastEvaluatedKey"])["Items"]) == 1


def test_updates_hold_to_their_conditions(server: Server, table: str) -> None:
    dynamodb = server.client("dynamodb")
    key = {"id": {"S": "run"}, "step": {"N": "0"}}
    update = {
        "TableName": table,
        "Key": key,
        "UpdateExpression": "SET seen = if_not_exists(seen, :none) + :one",
        "ExpressionAttributeValues": {":none": {"N": "0"}, ":one": {"N": "1"}},
        "ReturnValues": "ALL_NEW",
    }
    assert [dynamodb.update_item(**update)["Attributes"]["seen"]["N"] for _ in range(2)] == ["1", "2"]
    refused = read_error(dynamodb.put_item, TableName=table, Item=key, ConditionExpression="attribute_not_exists(id)")
    assert refused == "ConditionalCheckFailedException"
    delete = {"Delete": {"TableName": table, "Key": key}}
    again = {"Put": {"TableName": table, "Item": key, "ConditionExpression": "attribute_not_exists(id)"}}
    found = read_error(dynamodb.transact_write_items, TransactItems=[again])
    assert found == "TransactionCanceledException"
    dynamodb.transact_write_items(TransactItems=[delete])
    assert "Item" not in dynamodb.get_item(TableName=table, Key=key)


def test_a_table_that_is_not_there(server: Server, name: str) -> None:
    dynamodb = server.client("dynamodb")
    assert read_error(dynamodb.describe_table, TableName=name) == "ResourceNotFoundException"
    assert read_error(dynamodb.get_item, TableName=name, Key={"id": {"S": "x"}}) == "ResourceNotFoundException"


def test_a_key_encrypts_and_an_alias_names_it(server: Server, name: str) -> None:
    kms = server.client("kms")
    key = kms.create_key(Description=name)["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName=f"alias/{name}", TargetKeyId=key)
    context = {"job": name}
    sealed = kms.encrypt(KeyId=f"alias/{name}", Plaintext=b"secret", EncryptionContext=context)["CiphertextBlob"]
    assert kms.decrypt(CiphertextBlob=sealed, EncryptionContext=context)["Plaintext"] == b"secret"
    assert read_error(kms.decrypt, CiphertextBlob=sealed) == "InvalidCiphertextException"
