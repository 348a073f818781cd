"""The jobs of every account: each has a room and a store of its own, so that none sees another's."""

from __future__ import annotations

import re
from threading import RLock
from typing import TYPE_CHECKING

from emulator.jobs.records.database.store import JobStore
from emulator.settings import DEFAULT_ACCOUNT_ID

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from emulator.jobs import Jobs

_FILE_NAME = re.compile(r"jobs(-(?P<account>\d{12}))?\.sqlite")


def name_store(account_id: str) -> str:
    """Return the name of the file that holds an account's jobs."""
    return "jobs.sqlite" if account_id == DEFAULT_ACCOUNT_ID else f"jobs-{account_id}.sqlite"


def list_stored_accounts(folder: Path) -> list[str]:
    """List the accounts that have jobs in a state folder, whether an emulator runs on it or not."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    found = [_FILE_NAME.fullmatch(name) for name in names]
    return [each["account"] or DEFAULT_ACCOUNT_ID for each in found if each is not None]


class Accounts:
    """Opens an account's store and room when the account first asks. Thread safe."""

    def __init__(self, folder: Path, build_jobs: Callable[[str, JobStore], Jobs], *, followed: bool = False) -> None:
        """Open nothing yet.

        Args:
            folder: of the stores.
            build_jobs: makes the room of an account on its store.
            followed: see ``JobStore``.
        """
        self._folder = folder
        self._build_jobs = build_jobs
        self._followed = followed
        self._lock = RLock()
        self._stores: dict[str, JobStore] = {}
        self._jobs: dict[str, Jobs] = {}

    def open_store(self, account_id: str) -> JobStore:
        """Open the store of an account.

        Raises:
            StartupError: its file cannot be used.
        """
        with self._lock:
            if account_id not in self._stores:
                self._stores[account_id] = JobStore(self._folder / name_store(account_id), followed=self._followed)
            return self._stores[account_id]

    def find_jobs(self, account_id: str) -> Jobs:
        """Find the room of an account, taken up where the last process left it."""
        if (jobs := self._jobs.get(account_id)) is not None:
            return jobs
        with self._lock:
            if account_id not in self._jobs:
                jobs = self._build_jobs(account_id, self.open_store(account_id))
                jobs.recover()
                self._jobs[account_id] = jobs
            return self._jobs[account_id]

    def list_jobs(self) -> list[Jobs]:
        """List the rooms of every account that asked, or has a store."""
        with self._lock:
            return list(self._jobs.values())

    def list_ids(self) -> list[str]:
        """List the accounts that asked, or have a store."""
        with self._lock:
            return sorted(self._jobs)

    def open_all(self) -> None:
        """Open the rooms of every account that has a store: their jobs may still run.

        Raises:
            ContainerRuntimeError: the engine does not answer.
        """
        for account_id in list_stored_accounts(self._folder):
            self.find_jobs(account_id)

    @property
    def stores(self) -> list[JobStore]:
        """Every store that is open."""
        with self._lock:
            return list(self._stores.values())

    def close_jobs(self) -> None:
        """Stop every job and wait for its end. The stores stay open: events of the ends are still to be delivered."""
        with self._lock:
            for jobs in self._jobs.values():
                jobs.close()

    def close_stores(self) -> None:
        """Close every file."""
        with self._lock:
            for store in self._stores.values():
                store.close()
