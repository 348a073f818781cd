"""SageMaker resources that are stored only, created, changed and deleted."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.emulator.operations.conftest import Service

ROLE = "arn:aws:iam::123456789012:role/jobs"
CONTENT = "ZWNobw=="
SCHEDULE = {
    "MonitoringJobDefinitionName": "q",
    "MonitoringType": "DataQuality",
    "ScheduleConfig": {"ScheduleExpression": "cron(0 * ? * * *)"},
}
# Of each kind, by its name in methods: its name in members, what it takes besides its name, a change, and the member of
# its list.
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None, str]] = {
    "code_repository": (
        "CodeRepository",
        {"GitConfig": {"RepositoryUrl": "https://example.com/a.git"}},
        {"GitConfig": {"SecretArn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:x"}},
        "CodeRepositorySummaryList",
    ),
    "image": ("Image", {"RoleArn": ROLE, "Description": "d"}, {"DisplayName": "x"}, "Images"),
    "app_image_config": (
        "AppImageConfig",
        {"KernelGatewayImageConfig": {"KernelSpecs": [{"Name": "python3"}]}},
        {"JupyterLabAppImageConfig": {"ContainerConfig": {"ContainerArguments": ["a"]}}},
        "AppImageConfigs",
    ),
    "studio_lifecycle_config": (
        "StudioLifecycleConfig",
        {"StudioLifecycleConfigContent": CONTENT, "StudioLifecycleConfigAppType": "JupyterLab"},
        None,
        "StudioLifecycleConfigs",
    ),
    "user_profile": (
        "UserProfile",
        {"UserSettings": {"ExecutionRole": ROLE}},
        {"UserSettings": {"SecurityGroups": ["sg-1"]}},
        "UserProfiles",
    ),
    "space": ("Space", {"SpaceDisplayName": "a"}, {"SpaceDisplayName": "b"}, "Spaces"),
    "monitoring_schedule": (
        "MonitoringSchedule",
        {"MonitoringScheduleConfig": SCHEDULE},
        {"MonitoringScheduleConfig": SCHEDULE | {"MonitoringJobDefinitionName": "r"}},
        "MonitoringScheduleSummaries",
    ),
}


@pytest.fixture(scope="module")
def domain(service: Service) -> str:
    created = service.client().create_domain(
        DomainName="stored", AuthMode="IAM", DefaultUserSettings={}, SubnetIds=["subnet-1"], VpcId="vpc-1"
    )
    found: str = created["DomainId"]
    assert created["DomainArn"].endswith(f"/{found}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_described_as_it_came_changed_listed_and_deleted(service: Service, kind: str, domain: str) -> None:
    name, members, change, listed = KINDS[kind]
    client = service.client()
    where = {"DomainId": domain} if kind in ("user_profile", "space") else {}
    key = {f"{name}Name": "it", **where}
    tags = [{"Key": "by", "Value": "test"}]

    def call(verb: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(client, f"{verb}_{kind}")(**key, **more)
        return answer

    arn = call("create", **members, Tags=tags)[f"{name}Arn"]
    described = call("describe")
    assert {member: described[member] for member in (*members, f"{name}Arn")} == {**members, f"{name}Arn": arn}
    assert {"Tags"}.isdisjoint(described)
    assert client.list_tags(ResourceArn=arn)["Tags"] == tags
    client.add_tags(ResourceArn=arn, Tags=[{"Key": "by", "Value": "another"}])
    assert client.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "by", "Value": "another"}]
    with pytest.raises(ClientError, match="already exists"):
        call("create", **members)
    if change is not None:
        call("update", **change)
        changed = call("describe")
        assert {member: changed[member] for member in change} == change
        assert changed["CreationTime"] == described["CreationTime"]
    second = {f"{name}Name": "another", **where}
    getattr(client, f"create_{kind}")(**second, **members)
    pages = client.get_paginator(f"list_{kind[:-1]}ies" if kind.endswith("y") else f"list_{kind}s").paginate(
        PaginationConfig={"PageSize": 1}
    )
    assert {each[f"{name}Name"] for page in pages for each in page[listed]} == {"it", "another"}
    for each in (key, second):
        getattr(client, f"delete_{kind}")(**each)
    for verb in ("describe", "delete"):
        with pytest.raises(ClientError) as caught:
            call(verb)
        code = "ValidationException" if kind == "code_repository" else "ResourceNotFound"
        assert caught.value.response["Error"]["Code"] == code
    call("create", **members)
    call("delete")


def test_a_property_of_an_image_is_deleted(service: Service) -> None:
    client = service.client()
    client.create_image(ImageName="less", RoleArn=ROLE, Description="d")
    client.update_image(ImageName="less", DeleteProperties=["Description"])
    assert "Description" not in client.describe_image(ImageName="less")


def test_a_profile_needs_its_domain(service: Service) -> None:
    with pytest.raises(ClientError, match="ResourceNotFound"):
        service.client().create_user_profile(DomainId="d-none", UserProfileName="x")


def test_a_domain_is_updated_and_gone_after_its_deletion(service: Service, domain: str) -> None:
    client = service.client()
    assert client.describe_domain(DomainId=domain)["TagPropagation"] == "DISABLED"
    client.update_domain(DomainId=domain, TagPropagation="ENABLED", DefaultUserSettings={"ExecutionRole": ROLE})
    described = client.describe_domain(DomainId=domain)
    assert (described["TagPropagation"], described["DefaultUserSettings"]) == ("ENABLED", {"ExecutionRole": ROLE})
    for ask in (client.describe_domain, client.update_domain):
        with pytest.raises(ClientError, match="ResourceNotFound"):
            ask(DomainId="d-none")


def test_what_a_resource_lacks_is_not_described_as_empty(service: Service) -> None:
    client = service.client()
    client.create_model(ModelName="plain", ExecutionRoleArn=ROLE, PrimaryContainer={"Image": "x"})
    assert "VpcConfig" not in client.describe_model(ModelName="plain")
    variant = {"VariantName": "v", "ModelName": "plain", "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    client.create_endpoint_config(EndpointConfigName="plain", ProductionVariants=[variant])
    assert "DataCaptureConfig" not in client.describe_endpoint_config(EndpointConfigName="plain")


def test_a_feature_group_may_have_an_online_store_only(service: Service) -> None:
    client = service.client()
    features = [{"FeatureName": name, "FeatureType": "String"} for name in ("job", "time")]
    client.create_feature_group(
        FeatureGroupName="online",
        RecordIdentifierFeatureName="job",
        EventTimeFeatureName="time",
        FeatureDefinitions=features,
        OnlineStoreConfig={"EnableOnlineStore": True},
    )
    described = client.describe_feature_group(FeatureGroupName="online")
    assert described["OnlineStoreConfig"] == {"EnableOnlineStore": True}
    assert "OfflineStoreConfig" not in described
    client.delete_feature_group(FeatureGroupName="online")
    for ask in (client.describe_feature_group, client.delete_feature_group):
        with pytest.raises(ClientError, match="ResourceNotFound"):
            ask(FeatureGroupName="online")


def test_the_policy_of_a_model_package_group_is_kept_and_deleted(service: Service) -> None:
    client = service.client()
    client.create_model_package_group(ModelPackageGroupName="shared")
    asked = {"ModelPackageGroupName": "shared"}
    policy = '{"Version": "2012-10-17", "Statement": []}'
    for absent in (True, False):
        if not absent:
            client.put_model_package_group_policy(**asked, ResourcePolicy=policy)
            assert client.get_model_package_group_policy(**asked)["ResourcePolicy"] == policy
            client.delete_model_package_group_policy(**asked)
        with pytest.raises(ClientError, match="Cannot find resource policy"):
            client.get_model_package_group_policy(**asked)


def test_tags_of_a_lifecycle_configuration_are_kept(service: Service) -> None:
    client = service.client()
    arn = client.create_notebook_instance_lifecycle_config(
        NotebookInstanceLifecycleConfigName="tagged", Tags=[{"Key": "a", "Value": "b"}]
    )["NotebookInstanceLifecycleConfigArn"]
    assert client.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "a", "Value": "b"}]
