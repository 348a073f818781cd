"""Tests of CloudFormation: create, update, describe and delete of a stack.

The stack has a bucket, a queue and a topic.
"""

import json
from typing import Any

import pytest

from tests.contract.like_moto_server.servers import MOTO_SERVER, PAGE, Departure, Server, read_error


def write_template(name: str, *, timeout: int = 30) -> str:
    resources: dict[str, Any] = {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": {"Fn::Sub": "${Prefix}-stacked"}}},
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name, "VisibilityTimeout": timeout}},
        "Topic": {
            "Type": "AWS::SNS::Topic",
            "Properties": {
                "TopicName": name,
                "Subscription": [{"Protocol": "sqs", "Endpoint": {"Fn::GetAtt": ["Queue", "Arn"]}}],
            },
        },
    }
    return json.dumps(
        {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Parameters": {"Prefix": {"Type": "String"}},
            "Resources": resources,
            "Outputs": {
                "Bucket": {"Value": {"Ref": "Bucket"}},
                "Queue": {"Value": {"Fn::GetAtt": ["Queue", "Arn"]}},
                "Topic": {"Value": {"Ref": "Topic"}, "Export": {"Name": f"{name}-topic"}},
            },
        }
    )


@pytest.fixture
def stack(server: Server, name: str) -> str:
    server.client("cloudformation").create_stack(
        StackName=name,
        TemplateBody=write_template(name),
        Parameters=[{"ParameterKey": "Prefix", "ParameterValue": name}],
        Tags=[{"Key": "team", "Value": "red"}],
    )
    return name


def describe(server: Server, stack: str) -> dict[str, Any]:
    (found,) = server.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    return dict(found)


def test_a_stack_makes_what_its_template_says(server: Server, stack: str) -> None:
    server.client("cloudformation").get_waiter("stack_create_complete").wait(StackName=stack)
    found = describe(server, stack)
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}
    assert outputs == {
        "Bucket": f"{stack}-stacked",
        "Queue": f"arn:aws:sqs:us-east-1:123456789012:{stack}",
        "Topic": f"arn:aws:sns:us-east-1:123456789012:{stack}",
    }
    assert found["Tags"] == [{"Key": "team", "Value": "red"}]
    server.client("s3").head_bucket(Bucket=outputs["Bucket"])
    (subscription,) = server.client("sns").list_subscriptions_by_topic(TopicArn=outputs["Topic"])["Subscriptions"]
    assert subscription["Endpoint"] == outputs["Queue"]
    resources = server.client("cloudformation").list_stack_resources(StackName=stack)["StackResourceSummaries"]
    assert {each["LogicalResourceId"] for each in resources} == {"Bucket", "Queue", "Topic"}
    exports = server.client("cloudformation").list_exports()["Exports"]
    assert outputs["Topic"] in {each["Value"] for each in exports if each["Name"] == f"{stack}-topic"}


def test_an_update_changes_the_queue(server: Server, stack: str) -> None:
    cloudformation, sqs = server.client("cloudformation"), server.client("sqs")
    cloudformation.update_stack(
        StackName=stack,
        TemplateBody=write_template(stack, timeout=77),
        Parameters=[{"ParameterKey": "Prefix", "UsePreviousValue": True}],
    )
    cloudformation.get_waiter("stack_update_complete").wait(StackName=stack)
    url = sqs.get_queue_url(QueueName=stack)["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    assert found["Attributes"] == {"VisibilityTimeout": "77"}


def test_a_change_set_changes_nothing_until_it_is_executed(server: Server, name: str) -> None:
    cloudformation = server.client("cloudformation")
    cloudformation.create_change_set(
        StackName=name,
        ChangeSetName="first",
        ChangeSetType="CREATE",
        TemplateBody=write_template(name),
        Parameters=[{"ParameterKey": "Prefix", "ParameterValue": name}],
    )
    assert describe(server, name)["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert read_error(server.client("s3").head_bucket, Bucket=f"{name}-stacked") == "404"
    changes = cloudformation.describe_change_set(StackName=name, ChangeSetName="first")["Changes"]
    assert {each["ResourceChange"]["LogicalResourceId"] for each in changes} == {"Bucket", "Queue", "Topic"}
    cloudformation.execute_change_set(StackName=name, ChangeSetName="first")
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name)
    server.client("s3").head_bucket(Bucket=f"{name}-stacked")


def test_a_deleted_stack_takes_along_what_it_made(server: Server, stack: str) -> None:
    cloudformation = server.client("cloudformation")
    cloudformation.delete_stack(StackName=stack)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)
    assert read_error(cloudformation.describe_stacks, StackName=stack) == "ValidationError"
    assert read_error(server.client("s3").head_bucket, Bucket=f"{stack}-stacked") == "404"
    found = read_error(server.client("sqs").get_queue_url, QueueName=stack)
    assert found == "AWS.SimpleQueueService.NonExistentQueue"
    assert stack not in str(server.client("sns").list_topics()["Topics"])


def test_an_existing_stack_is_not_created_again(server: Server, stack: str) -> None:
    create = server.client("cloudformation").create_stack
    parameters = [{"ParameterKey": "Prefix", "ParameterValue": stack}]
    found = read_error(create, StackName=stack, TemplateBody=write_template(stack), Parameters=parameters)
    assert found == "AlreadyExistsException"


def test_a_template_that_is_none_is_refused(server: Server, name: str) -> None:
    create = server.client("cloudformation").create_stack
    found = read_error(create, StackName=name, TemplateBody="{}")
    source = "AWS CloudFormation API Reference: Common Error Types"
    server.expect(found, "ValidationError", Departure(MOTO_SERVER, PAGE, source))
