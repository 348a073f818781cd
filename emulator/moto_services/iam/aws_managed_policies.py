"""AWS-managed policies, created in IAM when a request first names them.

moto brings their documents, and creates all of them or none. All of them would be in each stored state of IAM.
"""

import functools
import json
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from emulator.moto_services.replacements import replaced

_METHODS = ("get_policy", "attach_role_policy", "attach_group_policy", "attach_user_policy")


def creating_aws_managed_policies() -> AbstractContextManager[None]:
    """Create an AWS-managed policy before it is read or attached; list those not created yet, too."""
    from moto.iam.models import IAMBackend

    creating = {name: _create_before(getattr(IAMBackend, name)) for name in _METHODS}
    return replaced(IAMBackend, list_policies=_list_policies, **creating)


def _list_policies(
    backend: Any, marker: str | None, max_items: int, only_attached: bool, path_prefix: str, scope: str
) -> tuple[Any, str | None]:
    policies = dict(backend.managed_policies)
    if scope == "AWS" or (scope == "All" and not only_attached):
        policies = _build_all(backend.account_id, backend.region_name) | policies
    if scope != "All":
        policies = {arn: each for arn, each in policies.items() if (":iam::aws:" in arn) == (scope == "AWS")}
    chosen = [each for each in policies.values() if each.attachment_count or not only_attached]
    page: tuple[Any, str | None] = backend._filter_attached_policies(chosen, marker, max_items, path_prefix)  # noqa: SLF001
    return page


@cache
def _build_all(account_id: str, region: str) -> dict[str, Any]:
    """Build every AWS-managed policy, by its ARN; none becomes part of IAM's state."""
    from moto.iam.models import AWSManagedPolicy

    built = [AWSManagedPolicy.from_data(name, account_id, region, data) for name, data in _read_documents().items()]
    return {policy.arn: policy for policy in built}


def _create_before(method: Any) -> Any:
    @functools.wraps(method)
    def call(backend: Any, policy_arn: str | None, *arguments: Any, **named: Any) -> Any:
        _create(backend, policy_arn)
        return method(backend, policy_arn, *arguments, **named)

    return call


def _create(backend: Any, arn: str | None) -> None:
    from moto.iam.models import AWSManagedPolicy

    if arn is None:  # the request names none, which moto refuses
        return
    owner, _, path = arn.partition(":policy/")
    name = path.rpartition("/")[2]
    if not owner.endswith(":iam::aws") or arn in backend.managed_policies or name not in _read_documents():
        return
    policy = AWSManagedPolicy.from_data(name, backend.account_id, backend.region_name, _read_documents()[name])
    # The path and the partition have to be right, too.
    if policy.arn == arn:
        backend.managed_policies[arn] = policy


@cache
def _read_documents() -> dict[str, Any]:
    from moto.iam.aws_managed_policies import aws_managed_policies_data

    found: dict[str, Any] = json.loads(aws_managed_policies_data)
    return found
