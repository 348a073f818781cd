"""Lineage: artifacts and associations, as the SDK's ``Run`` records its charts."""

import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from moto.core.utils import utcnow

from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.moto_services.sagemaker.responses import answering, build_answer, read_member
from emulator.moto_services.sagemaker.stored_kinds import list_stored, read_page

_Members = dict[str, Any]


def tracking_lineage() -> AbstractContextManager[None]:
    """Answer the operations of artifacts and associations."""
    return answering(
        {
            "create_artifact": _create_artifact,
            "describe_artifact": _describe_artifact,
            "update_artifact": _update_artifact,
            "delete_artifact": _delete_artifact,
            "list_artifacts": _list_artifacts,
            "add_association": _add_association,
            "delete_association": _delete_association,
            "list_associations": _list_associations,
        }
    )


def _ask(response: Any, *members: str) -> list[Any]:
    return [read_member(response, member) for member in members]


def _list_kind(response: Any, kind: str) -> list[Any]:
    return [stored for key, stored in list_stored(response.sagemaker_backend).items() if key[0] == kind]


def _store(response: Any, kind: str, arn: str, members: _Members, tags: Iterable[Mapping[str, str]] = ()) -> None:
    from moto.sagemaker.models import BaseObject

    stored: Any = BaseObject()
    stored.arn, stored.tags, stored.members = arn, list(tags), {**members, "CreationTime": utcnow()}
    list_stored(response.sagemaker_backend)[kind, "", arn] = stored


def _find_artifact(response: Any, arn: str) -> Any:
    stored = list_stored(response.sagemaker_backend).get(("Artifact", "", arn))
    if stored is None:
        raise ResourceNotFound(f"Artifact '{arn}' does not exist.")
    return stored


def _create_artifact(response: Any) -> Any:
    source, tags = _ask(response, "Source", "Tags")
    for stored in _list_kind(response, "Artifact"):
        if _is_source(stored.members["Source"], source):
            raise ValidationException(
                f"An artifact of the source {source['SourceUri']} already exists: {stored.arn}. There can be one of "
                "each SourceUri and its SourceTypes."
            )
    backend = response.sagemaker_backend
    arn = f"arn:{backend.partition}:sagemaker:{backend.region_name}:{backend.account_id}:artifact/{uuid.uuid4().hex}"
    names = ("ArtifactName", "ArtifactType", "Properties", "MetadataProperties")
    given = {name: value for name, value in zip(names, _ask(response, *names), strict=True) if value is not None}
    _store(response, "Artifact", arn, {**given, "Source": source, "ArtifactArn": arn}, tags or ())
    return build_answer({"ArtifactArn": arn})


def _is_source(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all((one.get(member) or None) == (other.get(member) or None) for member in ("SourceUri", "SourceTypes"))


def _describe_artifact(response: Any) -> Any:
    members = _find_artifact(response, *_ask(response, "ArtifactArn")).members
    return build_answer({"LastModifiedTime": members["CreationTime"], **members})


def _update_artifact(response: Any) -> Any:
    arn, name, properties, removed = _ask(response, "ArtifactArn", "ArtifactName", "Properties", "PropertiesToRemove")
    members = _find_artifact(response, arn).members
    merged = {**members.get("Properties", {}), **(properties or {})}
    members["Properties"] = {key: value for key, value in merged.items() if key not in (removed or ())}
    members["LastModifiedTime"] = utcnow()
    if name is not None:
        members["ArtifactName"] = name
    return build_answer({"ArtifactArn": arn})


def _delete_artifact(response: Any) -> Any:
    arn, source = _ask(response, "ArtifactArn", "Source")
    if (arn is None) == (source is None):
        raise ValidationException("Give either ArtifactArn or Source.")
    if source is not None:
        found = [each for each in _list_kind(response, "Artifact") if _is_source(each.members["Source"], source)]
        if not found:
            raise ResourceNotFound(f"There is no artifact of the source {source['SourceUri']}.")
        arn = found[0].arn
    _find_artifact(response, arn)
    ends = [(each.members["SourceArn"], each.members["DestinationArn"]) for each in _list_kind(response, "Association")]
    if any(arn in each for each in ends):
        raise ValidationException(f"Artifact '{arn}' has associations: delete them first.")
    del list_stored(response.sagemaker_backend)["Artifact", "", arn]
    return build_answer({"ArtifactArn": arn})


def _list_artifacts(response: Any) -> Any:
    uri, kind = _ask(response, "SourceUri", "ArtifactType")
    found = [
        {"LastModifiedTime": each.members["CreationTime"], **each.members}
        for each in _list_kind(response, "Artifact")
        if uri in (None, each.members["Source"]["SourceUri"]) and kind in (None, each.members["ArtifactType"])
    ]
    return build_answer(read_page(response, "ArtifactSummaries", found))


def _describe_entity(response: Any, arn: str) -> tuple[str | None, str | None]:
    """Return the name and the type of an entity that associations connect.

    Raises:
        ResourceNotFound: it does not exist.
    """
    backend = response.sagemaker_backend
    for (kind, *_), stored in list_stored(backend).items():
        if stored.arn == arn:
            return stored.members.get(f"{kind}Name"), stored.members.get(f"{kind}Type")
    for component in backend.trial_components.values():
        if component.arn == arn:
            return component.trial_component_name, next((each.get("SourceType") for each in component.sources), None)
    for experiment in backend.experiments.values():
        if experiment.arn == arn:
            return experiment.experiment_name, None
    raise ResourceNotFound(f"Lineage entity '{arn}' does not exist.")


def _add_association(response: Any) -> Any:
    source, destination, kind = _ask(response, "SourceArn", "DestinationArn", "AssociationType")
    for arn in (source, destination):
        _describe_entity(response, arn)
    ends = {"SourceArn": source, "DestinationArn": destination}
    if ("Association", "", f"{source} {destination}") in list_stored(response.sagemaker_backend):
        raise ValidationException(f"An association from {source} to {destination} already exists.")
    _store(response, "Association", f"{source} {destination}", {**ends, **({"AssociationType": kind} if kind else {})})
    return build_answer(ends)


def _delete_association(response: Any) -> Any:
    source, destination = _ask(response, "SourceArn", "DestinationArn")
    if list_stored(response.sagemaker_backend).pop(("Association", "", f"{source} {destination}"), None) is None:
        raise ResourceNotFound(f"There is no association from {source} to {destination}.")
    return build_answer({"SourceArn": source, "DestinationArn": destination})


def _list_associations(response: Any) -> Any:
    filters = ("SourceArn", "DestinationArn", "SourceType", "DestinationType", "AssociationType")
    wanted = dict(zip(filters, _ask(response, *filters), strict=True))
    found = []
    for stored in _list_kind(response, "Association"):
        described = dict(stored.members)
        for end in ("Source", "Destination"):
            try:
                name, kind = _describe_entity(response, described[f"{end}Arn"])
            except ResourceNotFound:
                name, kind = None, None  # a component or a context that was deleted since
            described |= {f"{end}Name": name, f"{end}Type": kind}
        described = {key: value for key, value in described.items() if value is not None}
        if all(value in (None, described.get(key)) for key, value in wanted.items()):
            found.append(described)
    return build_answer(read_page(response, "AssociationSummaries", found))
