"""Versions of pipelines over real HTTP: lists, aliases, and executions of them."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.emulator.operations.conftest import Service
from tests.integration.emulator.operations.test_pipelines import create, define, fail, follow


def list_versions(service: Service, name: str, **members: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.client().list_pipeline_versions(PipelineName=name, **members)[
        "PipelineVersionSummaries"
    ]
    return found


def start(service: Service, name: str, **members: Any) -> tuple[str, str]:
    """Start an execution; return its ARN and the name of its step."""
    arn: str = service.client().start_pipeline_execution(PipelineName=name, **members)["PipelineExecutionArn"]
    (step,) = follow(service, arn)
    return arn, step


@pytest.fixture(scope="module")
def versions(service: Service) -> str:
    """A pipeline of three versions."""
    name = "versions"
    create(service, name, define(fail("One")), PipelineVersionAliases=["stable"])
    client = service.client()
    for number, step in ((2, "Two"), (3, "Three")):
        updated = client.update_pipeline(PipelineName=name, PipelineDefinition=define(fail(step)))
        assert updated["PipelineVersionId"] == number
    return name


def test_each_definition_is_a_version(service: Service, versions: str) -> None:
    client = service.client()
    listed = list_versions(service, versions)
    assert [each["PipelineVersionId"] for each in listed] == [3, 2, 1]
    assert listed[2]["PipelineVersionAliases"] == ["stable"]
    assert {each["PipelineArn"] for each in listed} == {client.describe_pipeline(PipelineName=versions)["PipelineArn"]}
    assert listed[2]["CreationTime"] < listed[0]["CreationTime"]
    described = client.update_pipeline(PipelineName=versions, PipelineDescription="what it is for")
    assert described["PipelineVersionId"] == 3
    assert len(list_versions(service, versions)) == 3
    (page,) = list_versions(service, versions, MaxResults=1, SortOrder="Ascending")
    assert page["PipelineVersionId"] == 1
    assert list_versions(service, versions, CreatedAfter=listed[0]["CreationTime"]) == []


def test_a_version_is_described_and_started(service: Service, versions: str) -> None:
    client = service.client()
    described = client.describe_pipeline(PipelineName=versions)
    assert described["PipelineDefinition"] == define(fail("Three"))
    assert described["LastModifiedTime"] > described["CreationTime"]
    assert "LastRunTime" not in described
    second = client.describe_pipeline(PipelineName=versions, PipelineVersionId=2)
    assert second["PipelineDefinition"] == define(fail("Two"))
    of_alias = client.describe_pipeline(PipelineName=versions, PipelineVersionAlias="stable")
    assert (of_alias["PipelineDefinition"], of_alias["PipelineVersionAliases"]) == (define(fail("One")), ["stable"])
    _, newest = start(service, versions)
    arn, step = start(service, versions, PipelineVersionAlias="stable")
    assert (newest, step, start(service, versions, PipelineVersionId=2)[1]) == ("Three", "One", "Two")
    execution = client.describe_pipeline_execution(PipelineExecutionArn=arn)
    assert (execution["PipelineVersionId"], execution["PipelineVersionAliases"]) == (1, ["stable"])
    assert list_versions(service, versions)[2]["LastExecutionPipelineExecutionArn"] == arn
    of_version = client.list_pipeline_executions(PipelineName=versions, PipelineVersionAlias="stable")
    assert [each["PipelineExecutionArn"] for each in of_version["PipelineExecutionSummaries"]] == [arn]
    by_arn = client.list_pipeline_executions(PipelineName=described["PipelineArn"])["PipelineExecutionSummaries"]
    assert len(by_arn) == 3
    (listed,) = client.list_pipelines(PipelineNamePrefix=versions)["PipelineSummaries"]
    last = by_arn[0]["StartTime"]
    assert listed["LastExecutionTime"] == client.describe_pipeline(PipelineName=versions)["LastRunTime"] == last


def test_a_version_gets_a_name_and_aliases(service: Service) -> None:
    client = service.client()
    create(service, "aliases", define(fail("One")), PipelineVersionAliases=["a", "b"])
    client.update_pipeline(PipelineName="aliases", PipelineDefinition=define(fail("Two")), PipelineVersionAliases=["c"])
    arn = client.describe_pipeline(PipelineName="aliases")["PipelineArn"]

    def update(version_id: int, **members: Any) -> None:
        client.update_pipeline_version(PipelineArn=arn, PipelineVersionId=version_id, **members)

    update(1, PipelineVersionDisplayName="First", PipelineVersionDescription="of all")
    update(1, PipelineVersionAliasOperations={"Remove": ["a"], "Add": ["d"]})
    update(2, PipelineVersionAliasOperations={"Add": ["a"]})
    second, first = list_versions(service, "aliases")
    assert (first["PipelineVersionAliases"], second["PipelineVersionAliases"]) == (["b", "d"], ["c", "a"])
    assert (first["PipelineVersionDisplayName"], first["PipelineVersionDescription"]) == ("First", "of all")
    with pytest.raises(ClientError, match=r"ConflictException.*Version 1 of the pipeline has the alias 'b'"):
        update(2, PipelineVersionAliasOperations={"Add": ["b"]})
    with pytest.raises(ClientError, match=r"ConflictException.*has the alias 'b'"):
        client.update_pipeline(
            PipelineName="aliases", PipelineDefinition=define(fail("3")), PipelineVersionAliases=["b"]
        )
    with pytest.raises(ClientError, match=r"ValidationException.*the definition does not change"):
        client.update_pipeline(PipelineName="aliases", PipelineVersionAliases=["e"])
    assert len(list_versions(service, "aliases")) == 2


def test_what_does_not_exist(service: Service, versions: str) -> None:
    client = service.client()
    with pytest.raises(ClientError, match=r"ResourceNotFound.*'versions' has no version 9"):
        client.start_pipeline_execution(PipelineName=versions, PipelineVersionId=9)
    with pytest.raises(ClientError, match=r"ResourceNotFound.*has no version with the alias 'x'"):
        client.describe_pipeline(PipelineName=versions, PipelineVersionAlias="x")
    with pytest.raises(ClientError, match=r"ResourceNotFound.*has no version with the alias 'x'"):
        client.list_pipeline_executions(PipelineName=versions, PipelineVersionAlias="x")
    with pytest.raises(ClientError, match=r"ValidationException.*cannot both be given"):
        client.describe_pipeline(PipelineName=versions, PipelineVersionAlias="stable", PipelineVersionId=1)
    for operation in (client.list_pipeline_versions, client.describe_pipeline, client.list_pipeline_executions):
        with pytest.raises(ClientError, match=r"ResourceNotFound.*'nobodys' does not exist"):
            operation(PipelineName="nobodys")
