"""Versions of pipelines, which moto does not keep."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from emulator.exceptions import ConflictException, ResourceNotFound, ValidationException
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.sagemaker.pipelines import read_definition
from emulator.moto_services.sagemaker.responses import build_answer, read_member
from emulator.moto_services.unit_of_work import keeping, reading

Version = dict[str, Any]
"""``id``, ``definition``, ``creation_s``, ``aliases``, and ``display_name`` and ``description`` where they are set."""


def keeping_versions() -> AbstractContextManager[None]:
    """Add a version to a pipeline whenever its definition changes."""
    from moto.sagemaker.responses import SageMakerResponse

    create, update = SageMakerResponse.create_pipeline, SageMakerResponse.update_pipeline

    @wraps(create)
    def create_pipeline(response: Any) -> Any:
        aliases = _read_aliases(response)
        _refuse_taken(aliases, [])
        answer = create(response)
        pipeline = response.sagemaker_backend.pipelines[_read_name(response)]
        pipeline.versions = [_build_version(1, pipeline, aliases)]
        return answer

    @wraps(update)
    def update_pipeline(response: Any) -> Any:
        aliases, name = _read_aliases(response), _read_name(response)
        pipeline = response.sagemaker_backend.pipelines.get(name)
        versions = [] if pipeline is None else _read_versions(pipeline)
        _refuse_taken(aliases, versions)
        updated: Any = update(response).result
        pipeline = response.sagemaker_backend.pipelines[name]
        if read_definition(pipeline) != versions[-1]["definition"]:
            versions.append(_build_version(versions[-1]["id"] + 1, pipeline, aliases))
        elif aliases:
            raise ValidationException("PipelineVersionAliases cannot be given: the definition does not change.")
        pipeline.versions = versions
        pipeline.last_modified_time = datetime.now(UTC).replace(tzinfo=None)  # moto leaves that of the creation
        return build_answer({**updated, "PipelineVersionId": versions[-1]["id"]})

    return replaced(SageMakerResponse, create_pipeline=create_pipeline, update_pipeline=update_pipeline)


def list_versions(account_id: str, region: str, name: str) -> list[Version]:
    """List the versions of a pipeline, the oldest first.

    Raises:
        ResourceNotFound: the pipeline does not exist.
    """
    with reading(), service_lock("sagemaker"):
        return [dict(version) for version in _read_versions(_find(account_id, region, name))]


def find_version(
    account_id: str, region: str, name: str, version_id: int | None = None, alias: str | None = None
) -> Version:
    """Find a version of a pipeline by its id or alias; the newest if neither is given.

    Raises:
        ResourceNotFound: the pipeline or the version does not exist.
        ValidationException: both are given.
    """
    if version_id is not None and alias is not None:
        raise ValidationException("PipelineVersionId and PipelineVersionAlias cannot both be given.")
    versions = list_versions(account_id, region, name)
    if version_id is None and alias is None:
        return versions[-1]
    for version in versions:
        if version["id"] == version_id or alias in version["aliases"]:
            return version
    wanted = f"version {version_id}" if alias is None else f"version with the alias {alias!r}"
    raise ResourceNotFound(f"Pipeline '{name}' has no {wanted}.")


def describe_pipeline(account_id: str, region: str, name: str, version: Version) -> dict[str, Any]:
    """Describe a pipeline with one of its versions; times are in epoch seconds."""
    from moto.sagemaker.models import sagemaker_backends

    with reading(), service_lock("sagemaker"):
        _find(account_id, region, name)
        described: dict[str, Any] = sagemaker_backends[account_id][region].describe_pipeline(name)
    described = {key: _encode_time(value) for key, value in described.items()}
    return described | {"PipelineDefinition": version["definition"]} | describe_version(version)


def describe_version(version: Version) -> dict[str, Any]:
    """Describe what a version has beside its id and time."""
    described = {
        "PipelineVersionDisplayName": version.get("display_name"),
        "PipelineVersionDescription": version.get("description"),
        "PipelineVersionAliases": version["aliases"] or None,
    }
    return {member: value for member, value in described.items() if value is not None}


def change_version(account_id: str, region: str, name: str, request: Mapping[str, Any]) -> None:
    """Apply UpdatePipelineVersion.

    Raises:
        ResourceNotFound: the pipeline or the version does not exist.
        ConflictException: another version has an alias.
    """
    operations = request.get("PipelineVersionAliasOperations", {})
    added, removed = operations.get("Add", []), operations.get("Remove", [])
    with keeping(), service_lock("sagemaker"):
        pipeline = _find(account_id, region, name)
        versions = _read_versions(pipeline)
        version = next((each for each in versions if each["id"] == request["PipelineVersionId"]), None)
        if version is None:
            raise ResourceNotFound(f"Pipeline '{name}' has no version {request['PipelineVersionId']}.")
        _refuse_taken(added, [each for each in versions if each is not version])
        kept = [alias for alias in version["aliases"] if alias not in removed]
        version["aliases"] = list(dict.fromkeys([*kept, *added]))
        for member, key in (
            ("PipelineVersionDisplayName", "display_name"),
            ("PipelineVersionDescription", "description"),
        ):
            if member in request:
                version[key] = request[member]
        pipeline.versions = versions


def _find(account_id: str, region: str, name: str) -> Any:
    from moto.sagemaker.models import sagemaker_backends

    pipeline = sagemaker_backends[account_id][region].pipelines.get(name)
    if pipeline is None:
        raise ResourceNotFound(f"Pipeline '{name}' does not exist.")
    return pipeline


def _read_versions(pipeline: Any) -> list[Version]:
    """Read the versions; the pipelines of older states have one."""
    versions: list[Version] | None = vars(pipeline).get("versions")
    return [_build_version(1, pipeline, ())] if versions is None else [dict(version) for version in versions]


def _build_version(version_id: int, pipeline: Any, aliases: Collection[str]) -> Version:
    created = pipeline.creation_time.replace(tzinfo=UTC) if version_id == 1 else datetime.now(UTC)
    definition = read_definition(pipeline)
    return {
        "id": version_id,
        "definition": definition,
        "creation_s": created.timestamp(),
        "aliases": list(dict.fromkeys(aliases)),
    }


def _refuse_taken(aliases: Collection[str], versions: Collection[Version]) -> None:
    for version in versions:
        if taken := sorted(set(aliases) & set(version["aliases"])):
            raise ConflictException(f"Version {version['id']} of the pipeline has the alias {taken[0]!r}.")


def _read_aliases(response: Any) -> list[str]:
    return read_member(response, "PipelineVersionAliases") or []


def _read_name(response: Any) -> str:
    return str(read_member(response, "PipelineName"))


def _encode_time(value: Any) -> Any:
    return value.replace(tzinfo=UTC).timestamp() if isinstance(value, datetime) else value
