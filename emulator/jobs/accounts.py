"""Jobs by account: separate services and a separate store for each."""

from collections.abc import Callable
from pathlib import Path
from threading import RLock

from emulator.exceptions import InternalFailure
from emulator.jobs import Jobs
from emulator.jobs.store.store import JobStore
from emulator.state.job_stores import list_stored_accounts, name_store


class AccountStores:
    """The job stores of all accounts, each opened when it is first asked for. Thread safe."""

    def __init__(self, folder: Path, *, followed: bool = False, await_write: Callable[[], None] = lambda: None) -> None:
        """Open nothing yet.

        Args:
            folder: of the stores.
            followed: see ``JobStore``.
            await_write: see ``JobStore``.
        """
        self.folder = folder
        self._followed = followed
        self._await_write = await_write
        self._lock = RLock()
        self._stores: dict[str, JobStore] = {}

    def open(self, account_id: str) -> JobStore:
        """Open the store of an account.

        Raises:
            StartupError: its file cannot be used.
        """
        with self._lock:
            if account_id not in self._stores:
                path = self.folder / name_store(account_id)
                self._stores[account_id] = JobStore(path, followed=self._followed, await_write=self._await_write)
            return self._stores[account_id]

    def find(self, account_id: str) -> JobStore | None:
        """Find a store that is open."""
        with self._lock:
            return self._stores.get(account_id)

    def list_open(self) -> list[JobStore]:
        """List the stores that are open."""
        with self._lock:
            return list(self._stores.values())

    def close(self) -> None:
        """Close every file."""
        with self._lock:
            for store in self._stores.values():
                store.close()


class Accounts:
    """The jobs of all accounts, each account's recovered when it is first asked for. Thread safe."""

    def __init__(self, stores: AccountStores, build_jobs: Callable[[str, JobStore], Jobs]) -> None:
        """Recover nothing yet.

        Args:
            stores: of the accounts; closed after this object.
            build_jobs: makes the jobs of an account on its store.
        """
        self._stores = stores
        self._build_jobs = build_jobs
        self._lock = RLock()
        self._jobs: dict[str, Jobs] = {}
        self._closed = False

    def find_jobs(self, account_id: str) -> Jobs:
        """Find the jobs of an account, recovered from where the last process left them.

        Raises:
            InternalFailure: the account is new, and the emulator is shutting down.
        """
        if (jobs := self._jobs.get(account_id)) is not None:
            return jobs
        with self._lock:
            if account_id not in self._jobs:
                if self._closed:
                    raise InternalFailure("The emulator is shutting down.")
                jobs = self._build_jobs(account_id, self._stores.open(account_id))
                jobs.recover()
                self._jobs[account_id] = jobs
            return self._jobs[account_id]

    def list_jobs(self) -> list[Jobs]:
        """List the jobs of every account that asked, or has a store."""
        with self._lock:
            return list(self._jobs.values())

    def list_ids(self) -> list[str]:
        """List the accounts that asked, or have a store."""
        with self._lock:
            return sorted(self._jobs)

    def open_all(self) -> None:
        """Recover the jobs of every account that has a store.

        Raises:
            ContainerRuntimeError: the engine does not answer.
        """
        for account_id in list_stored_accounts(self._stores.folder):
            self.find_jobs(account_id)

    def close(self) -> None:
        """Stop every job and wait for its end. The stores stay open: events of the ends are still to be delivered."""
        with self._lock:
            self._closed = True
            for jobs in self._jobs.values():
                jobs.close()
