"""Descriptions of SageMaker's stored resources, without what moto adds or loses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto.core.utils import utcnow

from emulator.exceptions import ResourceNotFound
from emulator.moto_services.replacements import replaced
from emulator.moto_services.sagemaker.responses import build_answer, read_member

# Members of UpdateDomain, with moto's attributes.
_UPDATED_OF_DOMAINS = {
    "DefaultUserSettings": "default_user_settings",
    "DomainSettingsForUpdate": "domain_settings",
    "AppSecurityGroupManagement": "app_security_group_management",
    "DefaultSpaceSettings": "default_space_settings",
    "SubnetIds": "subnet_ids",
    "AppNetworkAccessType": "app_network_access_type",
    "VpcId": "vpc_id",
    "TagPropagation": "tag_propagation",
}
_ONLINE_MEMBERS = ("Description", "OnlineStoreConfig", "ThroughputConfig")


@contextmanager
def describing_like_sagemaker() -> Iterator[None]:
    """Leave out empty structures, answer with a domain's ID, and keep feature groups without an offline store."""
    from moto.sagemaker.models import SageMakerModelBackend
    from moto.sagemaker.responses import SageMakerResponse

    serialized: Any = SageMakerResponse.serialized
    create_domain: Any = SageMakerResponse.create_domain
    create_group: Any = SageMakerResponse.create_feature_group
    define_group: Any = SageMakerModelBackend.create_feature_group

    def serialize_described(response: Any, result: Any) -> Any:
        described = result.result
        if isinstance(described, dict) and response._get_action().startswith("Describe"):  # noqa: SLF001
            result = build_answer({name: value for name, value in described.items() if value != {}})
        return serialized(response, result)

    def create_domain_with_id(response: Any) -> Any:
        created = create_domain(response).result
        domain_id = created["DomainArn"].rpartition("/")[2]
        domain = _find_domain(response, domain_id)
        domain.tag_propagation = read_member(response, "TagPropagation") or "DISABLED"
        return build_answer({**created, "DomainId": domain_id})

    def define_feature_group(backend: Any, *, offline_store_config: dict[str, Any] | None, **named: Any) -> Any:
        # moto writes into the configuration that it is given.
        given = offline_store_config or {"S3StorageConfig": {"S3Uri": ""}}
        arn = define_group(backend, offline_store_config=given, **named)
        if not offline_store_config:
            backend.feature_groups[arn].offline_store_config = {}
        return arn

    def create_feature_group(response: Any) -> Any:
        answer = create_group(response)
        group = response.sagemaker_backend.feature_groups[answer.result["FeatureGroupArn"]]
        group.online_members = {name: value for name in _ONLINE_MEMBERS if (value := read_member(response, name))}
        return answer

    def describe_feature_group(response: Any) -> Any:
        group = _find_group(response)
        return build_answer({**group.describe(), **vars(group).get("online_members", {})})

    with (
        replaced(SageMakerModelBackend, create_feature_group=define_feature_group),
        replaced(
            SageMakerResponse,
            serialized=serialize_described,
            create_domain=create_domain_with_id,
            describe_domain=_describe_domain,
            update_domain=_update_domain,
            create_feature_group=create_feature_group,
            describe_feature_group=describe_feature_group,
            delete_feature_group=_delete_group,
        ),
    ):
        yield


def _find_domain(response: Any, domain_id: str) -> Any:
    found = response.sagemaker_backend.domains.get(domain_id)
    if found is None:
        raise ResourceNotFound(f"Domain {domain_id} does not exist.")
    return found


def _describe_domain(response: Any) -> Any:
    domain = _find_domain(response, read_member(response, "DomainId"))
    return build_answer({**domain.describe(), "TagPropagation": vars(domain).get("tag_propagation", "DISABLED")})


def _update_domain(response: Any) -> Any:
    domain = _find_domain(response, read_member(response, "DomainId"))
    for member, attribute in _UPDATED_OF_DOMAINS.items():
        if (value := read_member(response, member)) is not None:
            setattr(domain, attribute, value)
    domain.last_modified_time = utcnow()
    return build_answer({"DomainArn": domain.arn})


def _find_group(response: Any) -> Any:
    name = read_member(response, "FeatureGroupName").rpartition("/")[2]
    groups = response.sagemaker_backend.feature_groups.values()
    found = next((each for each in groups if each.feature_group_name == name), None)
    if found is None:
        raise ResourceNotFound(f"Resource Not Found: Amazon SageMaker can't find a FeatureGroup with name {name}.")
    return found


def _delete_group(response: Any) -> Any:
    del response.sagemaker_backend.feature_groups[_find_group(response).arn]
    return build_answer()
