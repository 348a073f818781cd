"""Tests of AWS-managed policies, which scripts attach to the role of their jobs."""

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from emulator.moto_services.iam.aws_managed_policies import creating_aws_managed_policies
from tests.integration.emulator.small_emulator import Emulator

FULL_ACCESS = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"
DOCUMENT = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
EXECUTION = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"


@pytest.fixture(autouse=True)
def _creating() -> Iterator[None]:
    with creating_aws_managed_policies():
        yield


def test_they_are_attached_to_roles_users_and_groups_and_detached(emulator: Emulator) -> None:
    iam = emulator.client("iam")
    iam.create_role(RoleName="jobs", AssumeRolePolicyDocument="{}")
    iam.create_user(UserName="somebody")
    iam.create_group(GroupName="everybody")
    for arn in (FULL_ACCESS, EXECUTION):
        iam.attach_role_policy(RoleName="jobs", PolicyArn=arn)
    iam.attach_user_policy(UserName="somebody", PolicyArn=FULL_ACCESS)
    iam.attach_group_policy(GroupName="everybody", PolicyArn=FULL_ACCESS)
    attached = iam.list_attached_role_policies(RoleName="jobs")["AttachedPolicies"]
    assert {each["PolicyArn"] for each in attached} == {FULL_ACCESS, EXECUTION}
    assert iam.get_policy(PolicyArn=FULL_ACCESS)["Policy"]["AttachmentCount"] == 3
    iam.detach_role_policy(RoleName="jobs", PolicyArn=FULL_ACCESS)
    attached = iam.list_attached_role_policies(RoleName="jobs")["AttachedPolicies"]
    assert [each["PolicyArn"] for each in attached] == [EXECUTION]


def test_their_documents_can_be_read(emulator: Emulator) -> None:
    iam = emulator.client("iam")
    version = iam.get_policy(PolicyArn=FULL_ACCESS)["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=FULL_ACCESS, VersionId=version)["PolicyVersion"]["Document"]
    assert any("sagemaker:*" in each["Action"] for each in document["Statement"])


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::aws:policy/NoSuchPolicy",
        "arn:aws:iam::aws:policy/service-role/AmazonSageMakerFullAccess",
        "arn:aws:iam::123456789012:policy/AmazonSageMakerFullAccess",
    ],
)
def test_others_are_not_found(emulator: Emulator, arn: str) -> None:
    iam = emulator.client("iam")
    iam.create_role(RoleName="jobs", AssumeRolePolicyDocument="{}")
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.attach_role_policy(RoleName="jobs", PolicyArn=arn)
    assert iam.list_policies(OnlyAttached=True)["Policies"] == []


def test_all_are_listed_and_found_by_scope_without_becoming_state(emulator: Emulator) -> None:
    iam = emulator.client("iam")
    # There are a thousand of them: their path has fewer.
    path = "/service-role/"
    own = iam.create_policy(PolicyName="own", Path=path, PolicyDocument=DOCUMENT)["Policy"]["Arn"]

    def list_arns(**asked: str) -> set[str]:
        pages = iam.get_paginator("list_policies").paginate(**asked)
        return {each["Arn"] for page in pages for each in page["Policies"]}

    assert {own, EXECUTION} <= list_arns(PathPrefix=path)
    assert list_arns(Scope="Local") == {own}
    of_aws = list_arns(Scope="AWS", PathPrefix=path)
    assert EXECUTION in of_aws
    assert not of_aws & {own, FULL_ACCESS}
    assert iam.list_policies(Scope="All", OnlyAttached=True)["Policies"] == []
