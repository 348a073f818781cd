"""SageMaker resources that moto lacks, stored and described as they came."""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from moto.core.utils import utcnow

from emulator.exceptions import ResourceInUse, ResourceNotFound, ValidationException
from emulator.moto_services.sagemaker.responses import answering, build_answer, cut_page, read_member
from emulator.moto_services.sagemaker_kinds import KINDS, Kind

_PAGE = 10


def storing_more_kinds() -> AbstractContextManager[None]:
    """Answer the operations of ``KINDS``."""
    answers = {"create": _create, "describe": _describe, "update": _update, "delete": _delete, "list": _list}
    return answering({name: partial(answers[verb], kind) for kind in KINDS for verb, name in kind.list_operations()})


def find_stored(backend: Any, arn: str) -> Any:
    """Find the resource of one of the kinds by its ARN; None if there is none."""
    return next((each for each in vars(backend).get("stored_kinds", {}).values() if each.arn == arn), None)


def _find_key(kind: Kind, response: Any) -> tuple[str, str, str]:
    domain = read_member(response, "DomainId") if kind.in_domain else ""
    return kind.name, domain, read_member(response, f"{kind.name}Name")


def list_stored(backend: Any) -> dict[tuple[str, str, str], Any]:
    """Return the resources by kind, domain and name, which may be changed."""
    # An attribute of moto's backend is stored and reset with it.
    stored: dict[tuple[str, str, str], Any] = vars(backend).setdefault("stored_kinds", {})
    return stored


def _find(kind: Kind, response: Any) -> Any:
    key = _find_key(kind, response)
    found = list_stored(response.sagemaker_backend).get(key)
    if found is None and kind.name == "CodeRepository":
        raise ValidationException(f"Cannot find CodeRepository {key[-1]}.")
    if found is None:
        # Terraform's provider knows by these words that what it has deleted is gone.
        where = f" in {key[1]}" if kind.in_domain else ""
        raise ResourceNotFound(f"No {kind.name} with the name {key[-1]}{where}: it does not exist.")
    return found


def _create(kind: Kind, response: Any) -> Any:
    from moto.sagemaker.models import BaseObject

    backend, key = response.sagemaker_backend, _find_key(kind, response)
    if kind.in_domain and key[1] not in backend.domains:
        raise ResourceNotFound(f"Domain {key[1]} does not exist.")
    name = "/".join(part for part in key[1:] if part)
    arn = f"arn:{backend.partition}:sagemaker:{backend.region_name}:{backend.account_id}:{kind.arn}/{name}"
    if key in list_stored(backend):
        refusal = ValidationException if kind.name == "CodeRepository" else ResourceInUse
        raise refusal(f"{kind.name} already exists: {arn}.")
    stored: Any = BaseObject()
    stored.arn, stored.tags = arn, read_member(response, "Tags") or []
    stored.members = {
        **{name: value for name, value in response._get_params().items() if name != "Tags"},  # noqa: SLF001
        f"{kind.name}Arn": arn,
        "CreationTime": utcnow(),
        "LastModifiedTime": utcnow(),
        **dict([kind.status] if kind.status else []),
    }
    list_stored(backend)[key] = stored
    return build_answer({f"{kind.name}Arn": arn})


def _describe(kind: Kind, response: Any) -> Any:
    return build_answer(dict(_find(kind, response).members))


def _update(kind: Kind, response: Any) -> Any:
    stored = _find(kind, response)
    changed = response._get_params()  # noqa: SLF001 - moto has no other
    removed = changed.pop("DeleteProperties", ())
    kept = {name: value for name, value in stored.members.items() if name not in removed}
    if kind.has_properties:
        merged = {**kept.get("Properties", {}), **changed.get("Properties", {})}
        for name in changed.pop("PropertiesToRemove", ()):
            merged.pop(name, None)
        changed["Properties"] = merged
    stored.members = {**kept, **changed, "LastModifiedTime": utcnow()}
    return build_answer({f"{kind.name}Arn": stored.arn})


def _delete(kind: Kind, response: Any) -> Any:
    stored = _find(kind, response)
    del list_stored(response.sagemaker_backend)[_find_key(kind, response)]
    return build_answer({f"{kind.name}Arn": stored.arn} if kind.has_properties else None)


def _list(kind: Kind, response: Any) -> Any:
    prefix = kind.name if kind.in_domain else ""
    part, domain = read_member(response, f"{prefix}NameContains") or "", read_member(response, "DomainIdEquals")
    source, typed = read_member(response, "SourceUri"), read_member(response, f"{kind.name}Type")
    members = [
        stored.members
        for key, stored in list_stored(response.sagemaker_backend).items()
        if key[0] == kind.name
        and part in key[-1]
        and domain in (None, key[1])
        and source in (None, stored.members.get("Source", {}).get("SourceUri"))
        and typed in (None, stored.members.get(f"{kind.name}Type"))
    ]
    by_name = (read_member(response, "SortBy") or "").upper() == "NAME"
    sort_by = f"{kind.name}Name" if by_name else "CreationTime"
    return build_answer(
        read_page(response, kind.listed, members, sort_by, "Ascending" if kind.in_domain else "Descending")
    )


def read_page(
    response: Any,
    listed: str,
    members: list[dict[str, Any]],
    sort_by: str | None = None,
    order: str = "Descending",
) -> dict[str, Any]:
    """Build one page of a list.

    Args:
        response: what the request asks by ``SortBy``, ``SortOrder``, ``NextToken`` and ``MaxResults``.
        listed: the member of the answer.
        members: of every resource.
        sort_by: the member that they are sorted by, in place of what the request names.
        order: where the request does not say.

    Raises:
        ValidationException: the token is not one of ours.
    """
    key = sort_by or read_member(response, "SortBy") or "CreationTime"
    descending = (read_member(response, "SortOrder") or order).upper()[0] == "D"
    # Those that lack the member are the least.
    ordered = sorted(members, key=lambda each: (key in each, each.get(key)), reverse=descending)
    return cut_page(response, listed, ordered, _PAGE)
