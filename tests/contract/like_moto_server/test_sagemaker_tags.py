"""Tests of tags on every kind of SageMaker resource.

Tags are set by Create and AddTags, removed by DeleteTags and read by ListTags.
"""

import pytest
from botocore.exceptions import ClientError

from tests.contract.like_moto_server.sagemaker_resources import KINDS, NEEDS, create
from tests.contract.like_moto_server.servers import MOTO_SERVER, Departure, Server


def list_tags(server: Server, arn: str) -> list[tuple[str, str]] | str:
    """Read the tags of a resource, sorted; the error's code where there is one."""
    try:
        tags = server.client("sagemaker").list_tags(ResourceArn=arn)["Tags"]
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return sorted((tag["Key"], tag["Value"]) for tag in tags)


# What becomes of the tags that Create was given.
AFTER_CREATE = {
    "experiment": Departure(MOTO_SERVER, [], "Amazon SageMaker API Reference: CreateExperiment"),
    "trial": Departure(MOTO_SERVER, [], "Amazon SageMaker API Reference: CreateTrial"),
    "trial component": Departure(MOTO_SERVER, [], "Amazon SageMaker API Reference: CreateTrialComponent"),
    "feature group": Departure(MOTO_SERVER, "500", "Amazon SageMaker API Reference: CreateFeatureGroup"),
}
OVERWRITES = "Amazon SageMaker API Reference: AddTags"


@pytest.mark.parametrize("kind", KINDS)
def test_tags_are_kept_added_overwritten_and_deleted(server: Server, bucket: str, kind: str) -> None:
    server.client("s3").put_object(Bucket=bucket, Key="input/row", Body=b"row")
    for needed in NEEDS.get(kind, []):
        create(server, needed, bucket)
    sagemaker = server.client("sagemaker")

    arn = create(server, kind, bucket, Tags=[{"Key": "team", "Value": "red"}, {"Key": "stage", "Value": "test"}])
    given = list_tags(server, arn)
    departures = [AFTER_CREATE[kind]] if kind in AFTER_CREATE else []
    server.expect(given, [("stage", "test"), ("team", "red")], *departures)
    if isinstance(given, str):
        return  # its tags cannot be asked for at all

    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "blue"}, {"Key": "cost", "Value": ""}])
    appended = sorted([*given, ("team", "blue"), ("cost", "")])
    documented = [("cost", ""), ("stage", "test"), ("team", "blue")]
    server.expect(list_tags(server, arn), documented, Departure(MOTO_SERVER, appended, OVERWRITES))

    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["stage", "cost", "never there"])
    left = [tag for tag in appended if tag[0] == "team"]
    departures = [Departure(MOTO_SERVER, left, OVERWRITES)] if len(left) > 1 else []
    server.expect(list_tags(server, arn), [("team", "blue")], *departures)


@pytest.mark.parametrize("kind", ["model", "experiment", "feature group", "training job", "processing job"])
def test_what_was_made_without_tags_has_none(server: Server, bucket: str, kind: str) -> None:
    arn = create(server, kind, bucket)
    server.expect(list_tags(server, arn), [], *([AFTER_CREATE[kind]] if kind == "feature group" else []))
