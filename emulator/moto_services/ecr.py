"""Repositories of ECR in moto's backend."""

from emulator.moto_services.locks import service_lock
from emulator.moto_services.unit_of_work import reading


def has_repository(account_id: str, region: str, name: str) -> bool:
    """Return whether an account has a repository in a region."""
    from moto.ecr.models import ecr_backends

    with reading(), service_lock("ecr"):
        return name in ecr_backends[account_id][region].repositories
