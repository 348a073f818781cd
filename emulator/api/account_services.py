"""Account services: the state and jobs of the account that a request names."""

from collections.abc import Callable, Collection

from flask import request

from emulator.api import PREFIX
from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.jobs import Jobs
from emulator.jobs.accounts import Accounts
from emulator.jobs.model.training_job import TrainingJob
from emulator.services import Services


class RequestAccounts:
    """Finds the account that a request is about, and its services."""

    def __init__(self, wait_for_accounts: Callable[[], Accounts], account: str, region: str) -> None:
        """Store the settings. The accounts are available only after the emulator has started.

        Args:
            wait_for_accounts: waits until the jobs of the previous process are recovered, and returns the accounts.
            account: the account of requests that name none.
            region: the region of requests that name none.
        """
        self._wait_for_accounts = wait_for_accounts
        self.account = account
        self.region = region

    def find_jobs(self) -> Jobs:
        """Find the jobs of the account that the query parameter ``account`` names.

        Raises:
            ResourceNotFound: the account has never been used.
        """
        accounts = self._wait_for_accounts()
        account = request.args.get("account") or self.account
        if account not in accounts.list_ids():
            raise ResourceNotFound(f"There is no account {account[:40]} here.", status=404)
        return accounts.find_jobs(account)

    def find(self) -> Services:
        """Find the services of the account that the query parameter ``account`` names.

        Raises:
            ResourceNotFound: the account has never been used.
        """
        return self.find_jobs().services


def find_training_job(services: Services, region: str, name: str) -> TrainingJob:
    """Find a training job of an account.

    Raises:
        ResourceNotFound: the job does not exist.
    """
    job = services.store.find_training_job(region, name)
    if job is None:
        raise ResourceNotFound(f"There is no training job {name} in {region}.", status=404)
    return job


def read_required(name: str) -> str:
    """Read a parameter that the query must have.

    Raises:
        ValidationException: it is missing, or empty.
    """
    text = request.args.get(name, "")
    if not text:
        raise ValidationException(f"The query parameter {name} is missing: see {PREFIX}docs.")
    return text


def read_number(name: str, default: int, most: int) -> int:
    """Read an integer from 0 to ``most`` from the query.

    Raises:
        ValidationException: it is not such an integer.
    """
    return parse_number(name, request.args.get(name, str(default)), most)


def parse_number(name: str, text: str, most: int) -> int:
    """Parse an integer from 0 to ``most``.

    Raises:
        ValidationException: it is not such an integer; ``name`` is used in the message.
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) > most:
        raise ValidationException(f"{name} is {text[:40]!r}: give a whole number from 0 to {most}.")
    return int(text)


def read_choice(name: str, choices: Collection[str]) -> str:
    """Read one of several choices from the query; return an empty string if it is not given.

    Raises:
        ValidationException: it is not one of the choices.
    """
    text = request.args.get(name, "")
    if text and text not in choices:
        raise ValidationException(f"{name} is {text[:40]!r}: give one of {', '.join(sorted(choices))}.")
    return text
