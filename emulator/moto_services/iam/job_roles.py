"""Roles of jobs: whether IAM holds them."""

import json
from typing import Any

from moto.utilities.utils import get_partition

from emulator.moto_services.locks import service_lock
from emulator.moto_services.unit_of_work import reading

_SERVICE = "sagemaker.amazonaws.com"
# The tag of the roles that `run` and `env` make, for scripts that ask for the role that they run as.
_MADE_BY = ("MadeBy", "smdebug-emulator")


def lacks_role(account_id: str, region: str, role_arn: str) -> bool:
    """Return whether somebody made roles in an account that SageMaker may assume, and this one does not exist.

    A role of another account counts as existing.
    """
    from moto.iam.models import iam_backends

    if role_arn.split(":")[4] != account_id:
        return False
    with reading(), service_lock("iam"):
        roles = list(iam_backends[account_id][get_partition(region)].roles.values())
        return all(role.arn != role_arn for role in roles) and any(
            _may_assume(role) and not _is_made_by_us(role) for role in roles
        )


def _is_made_by_us(role: Any) -> bool:
    return any((tag["Key"], tag["Value"]) == _MADE_BY for tag in role.tags)


def _may_assume(role: Any) -> bool:
    try:
        statements = json.loads(role.assume_role_policy_document)["Statement"]
    except (ValueError, TypeError, KeyError):
        return False
    return any(_names_service(each) for each in (statements if isinstance(statements, list) else [statements]))


def _names_service(statement: Any) -> bool:
    match statement:
        case {"Effect": "Allow", "Principal": {"Service": str(service)}}:
            return service == _SERVICE
        case {"Effect": "Allow", "Principal": {"Service": list(services)}}:
            return _SERVICE in services
    return False
