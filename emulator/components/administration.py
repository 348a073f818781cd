"""Administration of a running emulator: health, reset, prune, export and import of its state."""

from __future__ import annotations

import os
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator import VERSION
from emulator.exceptions import InternalFailure, ResourceInUse
from emulator.settings import format_url
from emulator.state.archive import read_last_import, stage_archive, write_archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from container_runtime.selection import ChosenRuntime
    from emulator.components.ports import Ports, Replica
    from emulator.jobs import Jobs
    from emulator.jobs.accounts import Accounts, AccountStores
    from emulator.moto_services.durable import DurableMoto
    from emulator.moto_services.s3.backend import DurableS3


@dataclass(frozen=True, slots=True)
class Started:
    """What is there once the emulator has started: what was recovered, and what holds the state.

    Attributes:
        accounts: the jobs of every account, recovered.
        stores: the accounts' job stores.
        chosen: the container back end.
        s3: the objects of S3.
        moto: what moto holds besides.
    """

    accounts: Accounts
    stores: AccountStores
    chosen: ChosenRuntime
    s3: DurableS3
    moto: DurableMoto


class Administration:
    """Answers the emulator's own API. What needs the jobs waits until they are recovered.

    Attributes:
        started: set by the last component that it needs; cancelled where the start fails.
    """

    def __init__(self, ports: Ports, replica: Replica, ask_restart: Callable[[], None]) -> None:
        """Take the components that are there before the first request.

        Args:
            ports: the ports, whose settings are those that the emulator runs with.
            replica: the replica of the state.
            ask_restart: called when the state is to be replaced: whoever made the emulator closes it and makes another.
        """
        self._ports = ports
        self._replica = replica
        self._ask_restart = ask_restart
        self.started: Future[Started] = Future()

    def wait_for_accounts(self) -> Accounts:
        """Return the accounts when the jobs of the last process are recovered."""
        return self.started.result().accounts

    def interrupt(self, region: str | None, name: str, capacity_seconds: float) -> None:
        """See ``TrainingJobs.interrupt``."""
        settings = self._ports.settings
        jobs = self.wait_for_accounts().find_jobs(settings.account_id)
        jobs.training.interrupt(region or settings.region, name, capacity_seconds)

    def reset(self, prefix: str) -> int:
        """Stop and forget the jobs whose names begin with ``prefix``; without one, everything: S3 and moto as well.

        Returns:
            How many jobs were forgotten. S3 and moto go when the last job has ended.
        """
        started = self.started.result()
        forgotten: int = sum(jobs.reset(prefix) for jobs in started.accounts.list_jobs())
        if not prefix:
            started.s3.reset()
            started.moto.reset()
        return forgotten

    def prune(self, older_than: float | None, keep_size: int | None, dry_run: bool) -> list[dict[str, Any]]:
        """Remove what ended jobs left: see ``Retention`` for the bounds. Never anything of a job that runs.

        Returns:
            What was removed, or would be, the oldest first.

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
                # An account that asked meanwhile has jobs by now.
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
            ResourceInUse: jobs run.
        """
        self._check_idle()
        started = self.started.result()
        with started.s3.at_rest(), started.moto.at_rest():
            write_archive(self._ports.settings.state_dir, target)

    def import_state(self, source: Path) -> str:
        """Take the state from an archive; the emulator then starts again, at the same address.

        Returns:
            The value of ``lastImport`` in ``describe`` once the state is in place.

        Raises:
            ResourceInUse: jobs run.
            ValidationException: ``source`` is no such archive.
        """
        self._check_idle()
        name = stage_archive(source, self._ports.settings.state_dir)
        self._ask_restart()
        return name

    @property
    def advertised_url(self) -> str | None:
        """Where other machines reach the emulator; None where none does."""
        name, settings = self._ports.addresses.advertised, self._ports.settings
        return None if name is None else format_url(settings.scheme, name, settings.port)

    def describe(self) -> dict[str, Any]:
        """Say how the emulator is doing, as ``GET /_emulator/health`` answers it."""
        settings = self._ports.settings
        ready = self.started.done() and not self.started.cancelled()
        description: dict[str, Any] = {
            "status": "running" if ready else "starting",
            "version": VERSION,
            "pid": os.getpid(),
            "endpoint": settings.endpoint_url,
            "advertised": self.advertised_url,
            "stateDir": str(settings.state_dir),
            "lastImport": read_last_import(settings.state_dir),
        }
        if self._replica.replica is not None:
            description["copy"] = self._replica.replica.describe()
        return description | (_describe_started(self.started.result()) if ready else {})

    def _check_idle(self) -> None:
        if number := sum(jobs.count_running() for jobs in self._list_jobs()):
            raise ResourceInUse(f"{number} jobs and evaluations run: stop them, or wait for their ends.", status=409)

    def _list_jobs(self) -> list[Jobs]:
        return self.wait_for_accounts().list_jobs()


def _describe_started(started: Started) -> dict[str, Any]:
    stores = started.stores.list_open()
    description: dict[str, Any] = {
        "runtime": started.chosen.runtime.name,
        "runtimeReason": started.chosen.reason,
        "jobRegions": sorted({region for store in stores for region in store.list_regions()}),
        "runningTrainingJobs": sum(len(store.list_running_training_jobs()) for store in stores),
        "runningRuleEvaluations": sum(len(store.list_running_rule_evaluations()) for store in stores),
        "undeliveredEvents": sum(len(store.list_outbox()) for store in stores),
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
