"""Model packages and their groups, as SageMaker keeps, deletes and announces them."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

from emulator.exceptions import ConflictException, ValidationException
from emulator.moto_services.locks import service_lock
from emulator.moto_services.sagemaker.responses import Answer, answering, build_answer, read_member

_STATE_CHANGE = "SageMaker Model Package State Change"
_NO_SKIP = "None"
# Members of UpdateModelPackage that replace what is stored, with moto's attributes.
_REPLACED = {"ModelApprovalStatus": "model_approval_status", "ApprovalDescription": "approval_description"}


def keeping_model_packages() -> AbstractContextManager[None]:
    """Let model packages be deleted, keep what an update does not name, and send an event for each change."""
    from moto.sagemaker.responses import SageMakerResponse

    own: dict[str, Answer] = {
        "create_model_package": partial(_create_package, SageMakerResponse.create_model_package),
        "describe_model_package": _describe_package,
        "update_model_package": _update_package,
        "delete_model_package": _delete_package,
        "create_model_package_group": partial(_create_group, SageMakerResponse.create_model_package_group),
        "describe_model_package_group": partial(_describe_group, SageMakerResponse.describe_model_package_group),
        "delete_model_package_group": _delete_group,
        "put_model_package_group_policy": _put_policy,
        "get_model_package_group_policy": _get_policy,
        "delete_model_package_group_policy": _delete_policy,
    }
    return answering(own)


def _find_package(response: Any, member: str) -> Any:
    backend, name = response.sagemaker_backend, read_member(response, member)
    found = backend.model_packages.get(backend.model_package_name_mapping.get(name, name))
    if found is None:
        raise ValidationException(f"ModelPackage {name} does not exist.")
    return found


def _find_group(response: Any) -> Any:
    backend, name = response.sagemaker_backend, read_member(response, "ModelPackageGroupName")
    found = backend.model_package_groups.get(name.rpartition("/")[2])
    if found is None:
        arn = f"arn:{backend.partition}:sagemaker:{backend.region_name}:{backend.account_id}:model-package-group/{name}"
        raise ValidationException(f"ModelPackageGroup {arn} does not exist.")
    return found


def _create_package(create: Callable[[Any], Any], response: Any) -> Any:
    backend = response.sagemaker_backend
    before = dict(backend.model_packages)
    answer = create(response)
    package = backend.model_packages[answer.result["ModelPackageArn"]]
    if package.model_package_group_name is not None:
        # moto takes the number of packages in the group for the version, which is too low after a deletion.
        given = package.arn
        _renumber(package, before)
        if package.arn != given:
            del backend.model_packages[given], backend.model_package_name_mapping[given]
            if given in before:
                backend.model_packages[given] = before[given]
                backend.model_package_name_mapping[given] = given
            backend.model_packages[package.arn] = package
            backend.model_package_name_mapping[package.arn] = package.arn
    elif package.arn in before:
        backend.model_packages[package.arn] = before[package.arn]
        raise ValidationException(f"Model Package already exists: {package.arn}")
    package.skip_model_validation = read_member(response, "SkipModelValidation") or _NO_SKIP
    _announce(backend, package)
    return build_answer({"ModelPackageArn": package.arn})


def _renumber(package: Any, others: dict[str, Any]) -> None:
    """Give a package the version after the last one of its group."""
    group = package.model_package_group_name
    versions = [each.model_package_version for each in others.values() if each.model_package_group_name == group]
    package.model_package_version = max(versions, default=0) + 1
    package.arn = f"{package.arn.rpartition('/')[0]}/{package.model_package_version}"
    for statuses in package.model_package_status_details.values():
        for status in statuses:
            status["Name"] = package.arn


def _describe(package: Any) -> dict[str, Any]:
    return {"SkipModelValidation": _NO_SKIP, **package.gen_response_object()}


def _describe_package(response: Any) -> Any:
    return build_answer(_describe(_find_package(response, "ModelPackageName")))


def _update_package(response: Any) -> Any:
    package = _find_package(response, "ModelPackageArn")
    package.add_additional_inference_specifications(read_member(response, "AdditionalInferenceSpecificationsToAdd"))
    for member, attribute in _REPLACED.items():
        if (value := read_member(response, member)) is not None:
            setattr(package, attribute, value)
    removed = set(read_member(response, "CustomerMetadataPropertiesToRemove") or ())
    kept = {key: value for key, value in (package.customer_metadata_properties or {}).items() if key not in removed}
    package.customer_metadata_properties = {
        **kept,
        **(read_member(response, "CustomerMetadataProperties") or {}),
    } or None
    package.modifications_done()
    _announce(response.sagemaker_backend, package)
    return build_answer({"ModelPackageArn": package.arn})


def _delete_package(response: Any) -> Any:
    backend = response.sagemaker_backend
    package = _find_package(response, "ModelPackageName")
    del backend.model_packages[package.arn]
    mapping = backend.model_package_name_mapping
    for name in [name for name, arn in mapping.items() if arn == package.arn]:
        del mapping[name]
    return build_answer()


def _create_group(create: Callable[[Any], Any], response: Any) -> Any:
    found = response.sagemaker_backend.model_package_groups.get(read_member(response, "ModelPackageGroupName"))
    if found is not None:
        raise ValidationException(f"Model Package Group already exists: {found.arn}")
    return create(response)


def _describe_group(describe: Callable[[Any], Any], response: Any) -> Any:
    _find_group(response)
    return describe(response)


def _delete_group(response: Any) -> Any:
    backend = response.sagemaker_backend
    group = _find_group(response)
    name = group.model_package_group_name
    if any(each.model_package_group_name == name for each in backend.model_packages.values()):
        raise ConflictException(f"Model Package Group {name} cannot be deleted: delete its model packages first.")
    del backend.model_package_groups[name]
    return build_answer()


def _put_policy(response: Any) -> Any:
    group = _find_group(response)
    group.resource_policy = read_member(response, "ResourcePolicy")
    return build_answer({"ModelPackageGroupArn": group.arn})


def _get_policy(response: Any) -> Any:
    return build_answer({"ResourcePolicy": _find_policy(response).resource_policy})


def _delete_policy(response: Any) -> Any:
    del _find_policy(response).resource_policy
    return build_answer()


def _find_policy(response: Any) -> Any:
    """Find the group of a request, if it has a resource policy."""
    group = _find_group(response)
    if "resource_policy" not in vars(group):
        raise ValidationException(f"Cannot find resource policy for: {group.arn}.")
    return group


def _announce(backend: Any, package: Any) -> None:
    """Put the event of a change on the default bus."""
    from moto.events.models import events_backends

    detail = _describe(package) | {"Tags": {tag["Key"]: tag["Value"] for tag in package.tags or ()}}
    if package.model_package_group_name is not None:
        detail["ModelPackageName"] = f"{package.model_package_group_name}/{package.model_package_version}"
    event = {
        "Source": "aws.sagemaker",
        "DetailType": _STATE_CHANGE,
        "Resources": [package.arn],
        "Detail": json.dumps(detail, default=_encode_time),
    }
    with service_lock("events"):
        events_backends[backend.account_id][backend.region_name].put_events([event])


def _encode_time(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in an event.")
