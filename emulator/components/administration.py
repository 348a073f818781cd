"""Administration of a running emulator: health, reset, prune, export, import."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator import VERSION
from emulator.exceptions import InternalFailure, ResourceInUse, ResourceNotFound
from emulator.settings import format_url
from emulator.state.archive import StagedImport, discard_staged, read_last_import, stage_archive, write_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from container_runtime.back_ends import ChosenRuntime
    from emulator.components.ports import Ports, ReplicaComponent
    from emulator.jobs import Jobs
    from emulator.jobs.accounts import Accounts, AccountStores
    from emulator.moto_services.store import MotoStore


class Started(NamedTuple):
    """The parts of the emulator that administration needs, available once it has started.

    Attributes:
        accounts: the jobs of every account, recovered.
        stores: the accounts' job stores.
        chosen: the container back end.
        moto: the state of every other service, including S3.
    """

    accounts: Accounts
    stores: AccountStores
    chosen: ChosenRuntime
    moto: MotoStore


class Administration:
    """Answers the emulator's own API. Requests that need the jobs wait until they are recovered.

    Attributes:
        started: set by the last component that it needs; cancelled if the start fails.
    """

    def __init__(self, ports: Ports, replica: ReplicaComponent, ask_restart: Callable[[], None]) -> None:
        """Store the components that are available before the first request.

        Args:
            ports: the ports, whose settings are those that the emulator runs with.
            replica: the replica of the state.
            ask_restart: called when the state is to be replaced; the owner then closes the emulator and makes another.
        """
        self._ports = ports
        self._replica = replica
        self._ask_restart = ask_restart
        self.started: Future[Started] = Future()
        self._resetting = threading.Lock()
        self._is_restoring = False

    def wait_for_accounts(self) -> Accounts:
        """Return the accounts once the jobs of the last process are recovered."""
        return self.started.result().accounts

    def interrupt(self, region: str | None, name: str, capacity_seconds: float) -> None:
        """Interrupt a Spot training job. See ``TrainingJobs.interrupt``."""
        settings = self._ports.settings
        jobs = self.wait_for_accounts().find_jobs(settings.account_id)
        jobs.training.interrupt(region or settings.region, name, capacity_seconds)

    def count_state(self) -> dict[str, int]:
        """Count what a full reset would remove; ``otherData`` is 1 if a service besides jobs and S3 holds any."""
        jobs, moto = self._list_jobs(), self.started.result().moto
        return {
            "jobs": sum(each.count() for each in jobs),
            "running": sum(each.count_running() for each in jobs),
            **moto.count_s3(),
            "otherData": int(not moto.is_empty),
        }

    def reset(self, prefix: str, keep: bool) -> tuple[int, bool]:
        """Stop and remove the jobs whose names begin with ``prefix``; with an empty prefix, remove all state.

        S3 and moto are cleared after the last job has ended.

        Args:
            prefix: prefix of jobs' names.
            keep: whether to keep removed state for a day, for ``undo_reset``; applies to a full reset only.

        Returns:
            The number of removed jobs, and whether state was kept. Nothing is kept if there was nothing to remove.

        Raises:
            ResourceInUse: the state cannot be kept; nothing is removed.
        """
        started = self.started.result()
        with self._resetting:
            kept = keep and not prefix and self._keep_state()
            forgotten: int = sum(jobs.reset(prefix) for jobs in self._list_jobs())
            if not prefix:
                started.moto.reset()
            return forgotten, kept

    def undo_reset(self) -> tuple[StagedImport, int]:
        """Restore the state that the last reset removed; the present state is kept in turn.

        Returns:
            The import, whose name is ``lastImport`` in ``describe`` once the state is restored, and the time of the
            reset in epoch milliseconds.

        Raises:
            ResourceInUse: jobs are running, the present state cannot be kept, or another state is being restored.
            ResourceNotFound: nothing was reset within the last day.
        """
        with self._resetting, self._ports.kept_states.take_last() as last:
            self._check_not_restoring()
            if last is None:
                raise ResourceNotFound("Nothing can be undone: no reset within the last day kept a copy.", status=404)
            self._check_idle()
            staged = stage_archive(last.path, self._ports.settings.state_dir)
            with self._discarded_on_error():
                self._keep_state()
            self._is_restoring = True
            self._ask_restart()
        return staged, last.forgotten_ms

    def _keep_state(self) -> bool:
        """Stop all jobs and keep all state for a day; return False if there is none."""
        started = self.started.result()
        if not any(self.count_state().values()):
            return False
        for jobs in self._list_jobs():
            jobs.stop("")
        self._await_objects()
        with started.moto.at_rest():
            self._ports.kept_states.keep()
        return True

    def _await_objects(self) -> None:
        """Wait until the folder has all objects that are restored from another S3: an archive holds its files only.

        Raises:
            ResourceInUse: some did not come.
        """
        if (replica := self._replica.replica) is None:
            return
        replica.missing.wait()
        if replica.missing.names:
            raise ResourceInUse(f"{len(replica.missing.names)} objects were not restored yet: try again.", status=409)

    def prune(self, older_than: float | None, keep_size: int | None, dry_run: bool) -> list[dict[str, Any]]:
        """Remove what ended jobs left behind, but nothing of running jobs. See ``Retention`` for the bounds.

        Returns:
            What was removed, or would be in a dry run, the oldest first.

        Raises:
            InternalFailure: the container engine does not answer.
        """
        from container_runtime.runtime import ContainerRuntimeError
        from emulator.jobs.runs.remains import Retention, find_folders, prune

        every = self._list_jobs()
        folder = self._ports.settings.state_dir
        try:
            removed = prune(
                lambda: [*find_folders(folder), *(each for jobs in every for each in jobs.find_remains())],
                # An account whose first request came in the meantime has jobs by now.
                lambda: {name for jobs in self._list_jobs() for name in jobs.list_active()},
                Retention(older_than, keep_size),
                dry_run=dry_run,
            )
        except ContainerRuntimeError as error:
            raise InternalFailure(f"Nothing was removed: {error}") from error
        return [
            {"kind": each.kind, "name": each.name, "job": each.job, "size": each.size, "lastMs": each.last_ms}
            for each in removed
        ]

    def export_state(self, target: Path) -> None:
        """Write the archive of the state to ``target``.

        Raises:
            ResourceInUse: jobs are running.
        """
        self._check_idle()
        started = self.started.result()
        self._await_objects()
        with started.moto.at_rest():
            write_archive(self._ports.settings.state_dir, target)

    def import_state(self, source: Path) -> StagedImport:
        """Import the state from an archive; the emulator then restarts at the same address.

        Returns:
            The import, whose name is ``lastImport`` in ``describe`` once the state is imported.

        Raises:
            ResourceInUse: jobs are running, or another state is being restored.
            ValidationException: ``source`` is not a state archive.
        """
        self._check_idle()
        with self._resetting:
            self._check_not_restoring()
            staged = stage_archive(source, self._ports.settings.state_dir)
            with self._discarded_on_error():
                self._check_idle()  # again: the archive may be large, and jobs have been created meanwhile
            self._is_restoring = True
            self._ask_restart()
        return staged

    @contextmanager
    def _discarded_on_error(self) -> Iterator[None]:
        """Discard the staged archive if the context raises an error: the next start would apply it."""
        try:
            yield
        except BaseException:
            discard_staged(self._ports.settings.state_dir)
            raise

    def _check_not_restoring(self) -> None:
        """Raise ResourceInUse until the restart after an import or undo: a second one would overwrite the first."""
        if self._is_restoring:
            raise ResourceInUse("Another state is being restored: try again in a moment.", status=409)

    @property
    def advertised_url(self) -> str | None:
        """Return the emulator's URL for other machines; None if it serves this machine only."""
        name, settings = self._ports.addresses.advertised, self._ports.settings
        return None if name is None else format_url(settings.scheme, name, settings.port)

    def describe(self) -> dict[str, Any]:
        """Return the emulator's health, the answer to ``GET /_emulator/health``."""
        settings = self._ports.settings
        ready = self.started.done() and not self.started.cancelled()
        description: dict[str, Any] = {
            "status": "running" if ready else "starting",
            "version": VERSION,
            "pid": os.getpid(),
            "endpoint": settings.endpoint_url,
            "advertised": self.advertised_url,
            "region": settings.region,
            "account": settings.account_id,
            "stateDir": str(settings.state_dir),
            "lastImport": read_last_import(settings.state_dir),
        }
        if self._replica.replica is not None:
            description["copy"] = self._replica.replica.describe()
        return description | (_describe_started(self.started.result()) if ready else {})

    def _check_idle(self) -> None:
        if number := sum(jobs.count_running() for jobs in self._list_jobs()):
            raise ResourceInUse(
                f"{number} jobs and evaluations are running: stop them, or wait until they end.", status=409
            )

    def _list_jobs(self) -> list[Jobs]:
        return self.wait_for_accounts().list_jobs()


def _describe_started(started: Started) -> dict[str, Any]:
    from emulator.jobs.model.rule_evaluation import RuleEvaluation
    from emulator.jobs.model.training_job import TrainingJob

    stores = started.stores.list_open()
    description: dict[str, Any] = {
        "runtime": started.chosen.runtime.name,
        "runtimeReason": started.chosen.reason,
        "jobRegions": sorted({region for store in stores for region in store.list_regions(TrainingJob)}),
        "runningTrainingJobs": sum(len(store.list_running_jobs(TrainingJob)) for store in stores),
        "runningRuleEvaluations": sum(len(store.list_running_jobs(RuleEvaluation)) for store in stores),
        "undeliveredEvents": sum(len(store.messages.list_outbox()) for store in stores),
    }
    if started.chosen.describe_swarm is not None:
        description["swarm"] = _describe_swarm(started.chosen.describe_swarm)
    return description


def _describe_swarm(describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    from container_runtime.runtime import ContainerRuntimeError

    try:
        return describe()
    except ContainerRuntimeError as error:
        return {"nodes": [], "waiting": [], "error": str(error)}
