"""Model packages over real HTTP: what is kept, deleted and announced."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.emulator.operations.conftest import Service
from tests.waiting import wait_until


def read_error(caught: pytest.ExceptionInfo[ClientError]) -> tuple[str, str]:
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def create_group(service: Service, name: str, versions: int = 0) -> list[str]:
    client = service.client()
    client.create_model_package_group(ModelPackageGroupName=name)
    return [client.create_model_package(ModelPackageGroupName=name)["ModelPackageArn"] for _ in range(versions)]


def test_packages_and_then_their_group_are_deleted(service: Service) -> None:
    client = service.client()
    (package,) = create_group(service, "deleted", 1)
    with pytest.raises(ClientError) as caught:
        client.delete_model_package_group(ModelPackageGroupName="deleted")
    assert read_error(caught)[0] == "ConflictException"
    client.delete_model_package(ModelPackageName=package)
    client.delete_model_package_group(ModelPackageGroupName="deleted")
    listed = client.list_model_package_groups()["ModelPackageGroupSummaryList"]
    assert "deleted" not in [each["ModelPackageGroupName"] for each in listed]
    for ask in (
        lambda: client.describe_model_package(ModelPackageName=package),
        lambda: client.delete_model_package(ModelPackageName=package),
        lambda: client.describe_model_package_group(ModelPackageGroupName="deleted"),
        lambda: client.delete_model_package_group(ModelPackageGroupName="deleted"),
    ):
        with pytest.raises(ClientError) as caught:
            ask()
        code, message = read_error(caught)
        assert code == "ValidationException"
        assert message.endswith("does not exist.")  # which Terraform waits for
    create_group(service, "deleted")


def test_a_version_is_not_used_twice(service: Service) -> None:
    client = service.client()
    first, second = create_group(service, "versions", 2)
    client.delete_model_package(ModelPackageName=first)
    third = client.create_model_package(ModelPackageGroupName="versions")["ModelPackageArn"]
    assert third.endswith("/3")
    assert client.describe_model_package(ModelPackageName=third)["ModelPackageVersion"] == 3
    assert client.describe_model_package(ModelPackageName=second)["ModelPackageVersion"] == 2


def test_a_version_is_the_next_after_the_highest(service: Service) -> None:
    client = service.client()
    first, second, third = create_group(service, "gaps", 3)
    for arn in (first, second):
        client.delete_model_package(ModelPackageName=arn)
    fourth = client.create_model_package(ModelPackageGroupName="gaps")["ModelPackageArn"]
    assert fourth.endswith("/4")
    listed = client.list_model_packages(ModelPackageGroupName="gaps")["ModelPackageSummaryList"]
    assert {each["ModelPackageArn"] for each in listed} == {third, fourth}
    with pytest.raises(ClientError, match="does not exist"):
        client.describe_model_package(ModelPackageName=second)


def test_a_group_that_exists_is_not_overwritten(service: Service) -> None:
    create_group(service, "twice", 1)
    with pytest.raises(ClientError) as caught:
        create_group(service, "twice")
    code, message = read_error(caught)
    assert code == "ValidationException"
    assert "already exists" in message


def test_a_package_says_whether_its_validation_is_skipped(service: Service) -> None:
    client = service.client()
    (package,) = create_group(service, "skip", 1)
    assert client.describe_model_package(ModelPackageName=package)["SkipModelValidation"] == "None"
    other = client.create_model_package(ModelPackageGroupName="skip", SkipModelValidation="All")["ModelPackageArn"]
    assert client.describe_model_package(ModelPackageName=other)["SkipModelValidation"] == "All"


def test_an_approval_keeps_the_rest_and_sends_its_event(service: Service) -> None:
    client, events, sqs = service.client(), service.client("events"), service.client("sqs")
    queue = sqs.create_queue(QueueName="approvals")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker Model Package State Change"],
        "detail": {"ModelPackageGroupName": ["approved"], "ModelApprovalStatus": ["Approved"]},
    }
    events.put_rule(Name="approvals", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="approvals", Targets=[{"Id": "queue", "Arn": arn}])
    (package,) = create_group(service, "approved", 1)
    client.update_model_package(ModelPackageArn=package, CustomerMetadataProperties={"a": "1", "b": "2"})
    client.update_model_package(
        ModelPackageArn=package, ModelApprovalStatus="Approved", CustomerMetadataPropertiesToRemove=["a"]
    )
    client.update_model_package(ModelPackageArn=package, ApprovalDescription="good")
    described = client.describe_model_package(ModelPackageName=package)
    assert described["ModelApprovalStatus"] == "Approved"
    assert described["CustomerMetadataProperties"] == {"b": "2"}
    received: list[dict[str, Any]] = []

    def receive() -> bool:
        received.extend(sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []))
        return len(received) >= 2

    wait_until(receive, lambda: received)
    detail = json.loads(received[0]["Body"])["detail"]
    assert detail["ModelPackageArn"] == package
    assert detail["ModelPackageName"] == "approved/1"
