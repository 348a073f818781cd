"""Lineage over real HTTP: artifacts, contexts, actions and associations."""

import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.emulator.operations.conftest import Service
from tests.integration.emulator.operations.test_experiments import read_error


@pytest.fixture
def client(service: Service) -> Any:
    return service.client()


def make_artifact(client: Any, **more: Any) -> str:
    source = {"SourceUri": f"s3://bucket/{uuid.uuid4()}", "SourceTypes": [{"SourceIdType": "S3ETag", "Value": "a"}]}
    answer = client.create_artifact(**{"ArtifactType": "Chart", "Source": source, **more})
    return str(answer["ArtifactArn"])


def make_component(client: Any) -> str:
    return str(client.create_trial_component(TrialComponentName=f"part-{uuid.uuid4()}")["TrialComponentArn"])


def test_an_artifact_is_described_changed_listed_and_deleted(client: Any) -> None:
    uri = f"s3://bucket/{uuid.uuid4()}"
    arn = make_artifact(client, ArtifactName="roc", Source={"SourceUri": uri}, Properties={"a": "1", "b": "2"})
    client.update_artifact(
        ArtifactArn=arn, ArtifactName="curve", Properties={"b": "3", "c": "4"}, PropertiesToRemove=["a"]
    )
    described = client.describe_artifact(ArtifactArn=arn)
    assert (described["ArtifactName"], described["ArtifactType"]) == ("curve", "Chart")
    assert described["Source"]["SourceUri"] == uri
    assert described["Properties"] == {"b": "3", "c": "4"}
    assert described["LastModifiedTime"] >= described["CreationTime"]
    (listed,) = client.list_artifacts(SourceUri=uri)["ArtifactSummaries"]
    assert (listed["ArtifactArn"], listed["ArtifactName"]) == (arn, "curve")
    assert client.list_artifacts(SourceUri=uri, ArtifactType="Model")["ArtifactSummaries"] == []
    assert client.delete_artifact(Source={"SourceUri": uri})["ArtifactArn"] == arn
    with pytest.raises(ClientError) as caught:
        client.describe_artifact(ArtifactArn=arn)
    assert read_error(caught)[0] == "ResourceNotFound"


def test_a_source_has_one_artifact(client: Any) -> None:
    source = {"SourceUri": f"s3://bucket/{uuid.uuid4()}"}
    make_artifact(client, Source=source)
    with pytest.raises(ClientError) as caught:
        make_artifact(client, Source={**source, "SourceTypes": []})
    # The words by which the SDK's Run goes on.
    code, message = read_error(caught)
    assert code == "ValidationException"
    assert "already exists" in message
    make_artifact(client, Source={**source, "SourceTypes": [{"SourceIdType": "Custom", "Value": "2"}]})


def test_associations_are_found_from_both_ends(client: Any) -> None:
    component = make_component(client)
    read, written = make_artifact(client, ArtifactName="read"), make_artifact(client, ArtifactName="written")
    client.add_association(SourceArn=read, DestinationArn=component, AssociationType="ContributedTo")
    client.add_association(SourceArn=component, DestinationArn=written, AssociationType="Produced")
    (one,) = client.list_associations(SourceArn=component)["AssociationSummaries"]
    assert (one["DestinationArn"], one["DestinationName"], one["DestinationType"]) == (written, "written", "Chart")
    assert one["SourceName"] == component.rpartition("/")[2]
    (other,) = client.list_associations(DestinationArn=component)["AssociationSummaries"]
    assert (other["SourceArn"], other["AssociationType"]) == (read, "ContributedTo")
    assert client.list_associations(SourceArn=component, AssociationType="SameAs")["AssociationSummaries"] == []
    with pytest.raises(ClientError) as caught:
        client.add_association(SourceArn=component, DestinationArn=written)
    assert "already exists" in read_error(caught)[1]
    with pytest.raises(ClientError) as caught:
        client.delete_artifact(ArtifactArn=written)
    assert "has associations" in read_error(caught)[1]
    client.delete_association(SourceArn=component, DestinationArn=written)
    with pytest.raises(ClientError) as caught:
        client.delete_association(SourceArn=component, DestinationArn=written)
    assert read_error(caught)[0] == "ResourceNotFound"
    client.delete_artifact(ArtifactArn=written)


def test_associations_of_what_does_not_exist_are_refused(client: Any) -> None:
    component = make_component(client)
    with pytest.raises(ClientError) as caught:
        client.add_association(SourceArn=component, DestinationArn=f"{component}-other")
    assert read_error(caught)[0] == "ResourceNotFound"


def test_associations_come_in_pages_and_outlive_a_deleted_end(client: Any) -> None:
    component = make_component(client)
    arns = {make_artifact(client) for _ in range(12)}
    for arn in arns:
        client.add_association(SourceArn=component, DestinationArn=arn)
    client.delete_trial_component(TrialComponentName=component.rpartition("/")[2])
    pages = client.get_paginator("list_associations").paginate(SourceArn=component, SortBy="DestinationArn")
    found = [each for page in pages for each in page["AssociationSummaries"]]
    assert [each["DestinationArn"] for each in found] == sorted(arns, reverse=True)
    assert all("SourceName" not in each for each in found)


def test_contexts_and_actions_keep_their_properties(client: Any) -> None:
    source = {"SourceUri": f"s3://bucket/{uuid.uuid4()}"}
    context = client.create_context(
        ContextName="endpoint", ContextType="Endpoint", Source=source, Properties={"a": "1", "b": "2"}
    )["ContextArn"]
    client.update_context(ContextName="endpoint", Properties={"c": "3"}, PropertiesToRemove=["a"])
    assert client.describe_context(ContextName="endpoint")["Properties"] == {"b": "2", "c": "3"}
    action = client.create_action(ActionName="approve", ActionType="Approval", Source=source)["ActionArn"]
    client.add_association(SourceArn=action, DestinationArn=context)
    (found,) = client.list_associations(SourceArn=action)["AssociationSummaries"]
    assert (found["SourceType"], found["DestinationType"]) == ("Approval", "Endpoint")
    assert client.list_contexts(SourceUri=source["SourceUri"])["ContextSummaries"][0]["ContextName"] == "endpoint"
    assert client.list_actions(ActionType="Deployment")["ActionSummaries"] == []
    assert client.delete_action(ActionName="approve")["ActionArn"] == action
    assert client.delete_context(ContextName="endpoint")["ContextArn"] == context
