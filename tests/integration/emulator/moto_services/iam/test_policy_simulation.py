"""Tests of IAM policy simulation, which SDKs call before they create a job."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.moto_services.iam.policy_simulation import simulating_policies
from tests.integration.emulator.small_emulator import Emulator

ALLOW_JOBS = {"Effect": "Allow", "Action": "sagemaker:Create*", "Resource": "*"}
DENY_ONE = {"Effect": "Deny", "Action": ["sagemaker:CreateModel"], "Resource": ["*"]}
READ_BUCKET = {"Effect": "Allow", "NotAction": "s3:Put*", "Resource": "arn:aws:s3:::mine/*"}


@pytest.fixture(autouse=True)
def _simulating() -> Iterator[None]:
    with simulating_policies():
        yield


def write(*statements: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def read_decisions(answer: Any) -> dict[tuple[str, str], str]:
    return {
        (each["EvalActionName"], each["EvalResourceName"]): each["EvalDecision"] for each in answer["EvaluationResults"]
    }


def test_policies_of_a_role_a_user_and_its_group_are_judged(emulator: Emulator) -> None:
    iam = emulator.client("iam")
    role = iam.create_role(RoleName="jobs", AssumeRolePolicyDocument=write())["Role"]["Arn"]
    iam.put_role_policy(RoleName="jobs", PolicyName="own", PolicyDocument=write(ALLOW_JOBS))
    managed = iam.create_policy(PolicyName="managed", PolicyDocument=write(DENY_ONE))["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="jobs", PolicyArn=managed)
    user = iam.create_user(UserName="somebody")["User"]["Arn"]
    iam.create_group(GroupName="readers")
    iam.put_group_policy(GroupName="readers", PolicyName="read", PolicyDocument=write(READ_BUCKET))
    iam.add_user_to_group(GroupName="readers", UserName="somebody")
    actions = ["sagemaker:CreateTrainingJob", "sagemaker:CreateModel", "sagemaker:StopTrainingJob"]
    judged = read_decisions(iam.simulate_principal_policy(PolicySourceArn=role, ActionNames=actions))
    assert list(judged.values()) == ["allowed", "explicitDeny", "implicitDeny"]
    judged = read_decisions(
        iam.simulate_principal_policy(
            PolicySourceArn=user,
            ActionNames=["s3:GetObject", "s3:PutObject"],
            ResourceArns=["arn:aws:s3:::mine/a", "arn:aws:s3:::other/a"],
        )
    )
    assert judged == {
        ("s3:GetObject", "arn:aws:s3:::mine/a"): "allowed",
        ("s3:GetObject", "arn:aws:s3:::other/a"): "implicitDeny",
        ("s3:PutObject", "arn:aws:s3:::mine/a"): "implicitDeny",
        ("s3:PutObject", "arn:aws:s3:::other/a"): "implicitDeny",
    }
    judged = read_decisions(
        iam.simulate_custom_policy(PolicyInputList=[write(ALLOW_JOBS)], ActionNames=["SageMaker:createmodel"])
    )
    assert list(judged.values()) == ["allowed"]


@pytest.mark.parametrize("arn", ["arn:aws:iam::123456789012:role/nobody", "arn:aws:iam::123456789012:root", "nonsense"])
def test_an_unknown_principal_is_refused(emulator: Emulator, arn: str) -> None:
    with pytest.raises(ClientError) as refused:
        emulator.client("iam").simulate_principal_policy(
            PolicySourceArn=arn.ljust(20, "x"), ActionNames=["s3:GetObject"]
        )
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 404)
    assert refused.value.response["Error"]["Code"] in ("NoSuchEntity", "ValidationError")


@pytest.mark.parametrize("document", ["{", "[]", "1", '{"Statement": ["Allow"]}', '{"Statement": [{"Action": 1}]}'])
def test_what_is_not_a_policy_is_refused(emulator: Emulator, document: str) -> None:
    with pytest.raises(ClientError) as refused:
        emulator.client("iam").simulate_custom_policy(PolicyInputList=[document], ActionNames=["s3:GetObject"])
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
