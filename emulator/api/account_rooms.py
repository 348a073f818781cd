"""What the pages of the API look into: the rooms of the account that a request names.

Pages answer before the rooms are there: what is heavy to import is imported by whoever asks for it first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import request

from emulator.exceptions import ResourceNotFound, ValidationException

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from emulator.jobs import Jobs
    from emulator.jobs.accounts import Accounts
    from emulator.jobs.records.database.store import JobStore
    from emulator.jobs.records.training_job import TrainingJob
    from emulator.moto_services.cloudwatch.logs import LogGroups
    from emulator.moto_services.cloudwatch.metrics import Metrics
    from emulator.moto_services.s3.objects import ObjectStore


@dataclass(frozen=True, slots=True)
class AccountRooms:
    """The rooms of one account."""

    account: str
    jobs: Jobs
    store: JobStore

    def logs(self, region: str) -> LogGroups:
        """Return CloudWatch Logs of a region."""
        from emulator.moto_services.cloudwatch.logs import LogGroups

        return LogGroups(self.account, region)

    def metrics(self, region: str) -> Metrics:
        """Return CloudWatch's metrics of a region."""
        from emulator.moto_services.cloudwatch.metrics import Metrics

        return Metrics(self.account, region)

    def objects(self, region: str) -> ObjectStore:
        """Return S3."""
        from emulator.moto_services.s3.objects import ObjectStore

        return ObjectStore(self.account, region)

    def find_training_job(self, region: str, name: str) -> TrainingJob:
        """Find a job.

        Raises:
            ResourceNotFound: there is none.
        """
        job = self.store.find_training_job(region, name)
        if job is None:
            raise ResourceNotFound(f"There is no training job {name} in {region}.", status=404)
        return job


class RoomsOfRequests:
    """Finds the rooms that a request is about."""

    def __init__(self, wait_for_accounts: Callable[[], Accounts], account: str, region: str) -> None:
        """Take what there will be once the emulator has started.

        Args:
            wait_for_accounts: returns when the jobs of the last run are taken up.
            account: of requests that name none.
            region: of requests that name none.
        """
        self._wait_for_accounts = wait_for_accounts
        self.account = account
        self.region = region

    def find(self) -> AccountRooms:
        """Find the rooms of the request's ``account``.

        Raises:
            ResourceNotFound: nobody has asked as that account.
        """
        accounts = self._wait_for_accounts()
        account = request.args.get("account") or self.account
        if account not in accounts.list_ids():
            raise ResourceNotFound(f"There is no account {account[:40]} here.", status=404)
        return AccountRooms(account, accounts.find_jobs(account), accounts.open_store(account))


def read_number(name: str, default: int, most: int) -> int:
    """Read a whole number of the query.

    Raises:
        ValidationException: it is none, or above ``most``.
    """
    return parse_number(name, request.args.get(name, str(default)), most)


def parse_number(name: str, text: str, most: int) -> int:
    """Parse a whole number.

    Raises:
        ValidationException: it is none, or above ``most``; ``name`` says which.
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) > most:
        raise ValidationException(f"{name} is {text[:40]!r}: give a whole number from 0 to {most}.")
    return int(text)


def read_choice(name: str, choices: Collection[str]) -> str:
    """Read one of several words of the query; empty where it is not there.

    Raises:
        ValidationException: it is none of them.
    """
    text = request.args.get(name, "")
    if text and text not in choices:
        raise ValidationException(f"{name} is {text[:40]!r}: give one of {', '.join(sorted(choices))}.")
    return text
