"""The composition: settings in, one running emulator out. ``Emulator`` lists what starts, in the order of the start."""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from emulator.addresses import check_advertised, find_addresses
from emulator.exceptions import InternalFailure, ResourceInUse, StartupError
from emulator.faults import FAULTS, parse_fault
from emulator.gateway.authentication import ACCOUNT_HEADER, LOOPBACK_HOSTS, read_region
from emulator.gateway.listener import Listener
from emulator.keys import load_keys
from emulator.settings import VERSION, check_shared, format_url
from emulator.state_archive import apply_staged, read_last_import, stage_archive, write_archive
from emulator.state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from container_runtime.runtime import ContainerRuntime
    from container_runtime.selection import ChosenRuntime
    from emulator.addresses import Addresses
    from emulator.certificates import Certificates
    from emulator.events.outcomes import Outcome
    from emulator.gateway.gateway import Rooms
    from emulator.jobs import Jobs as RoomOfJobs
    from emulator.jobs.accounts import Accounts
    from emulator.jobs.records.database.store import JobStore
    from emulator.jobs.records.training_job import TrainingJob
    from emulator.keys import Keys
    from emulator.replica.bucket import Bucket
    from emulator.replica.replica import Replica
    from emulator.settings import Settings

logger = logging.getLogger(__name__)

LOST_EXIT_CODE = 75
"""Of an emulator that another one has taken the place of (EX_TEMPFAIL)."""
# Events of jobs that ended while the emulator stops still go out, for so long.
_DRAIN_SECONDS = 5.0


class Emulator:
    """A running emulator.

    Attributes:
        settings: those it runs with; the port is the real one where 0 was given.
        chosen: the container back end.
    """

    def __init__(self, settings: Settings, ask_restart: Callable[[], None], bucket: Bucket | None = None) -> None:
        """Start everything, in this order; return when every room answers.

        Each step imports what it starts. The port is open before the first heavy import, so that a client that comes
        early waits and is not refused; requests are answered as soon as their own room is ready.

        Args:
            settings: what it runs with.
            ask_restart: called when its state is to be replaced: whoever made this object closes it and makes another.
            bucket: of another S3, in which the state is kept, too; None for none.

        Raises:
            StartupError: the text is one line that says what to do. Nothing is left running.
        """
        self._accounts: Accounts | None = None
        self._ask_restart = ask_restart
        with ExitStack() as closers:
            # The state folder is this process's own, and its ports are open.
            addresses = self._addresses = find_addresses(settings)
            folder = StateFolder(settings.state_dir)
            closers.callback(folder.close)
            apply_staged(settings.state_dir)
            self._replica = None if bucket is None else _open_replica(bucket, settings, closers)
            disk = settings.disk
            certificates = open_certificates(settings, addresses)
            listeners: list[Listener] = []
            closers.callback(_close_ports, listeners)
            for address in addresses.listening:
                listeners.append(Listener(address, settings.port, disk, certificates))
                settings = replace(settings, port=listeners[0].port)
            keys = load_keys(settings.state_dir)
            settings = self.settings = replace(
                settings,
                keys=keys,
                # Who is beyond this machine proves who he is.
                require_signature=settings.require_signature or addresses.advertised is not None,
                ca_bundle=None if certificates is None else certificates.bundle,
            )

            # The emulator's pages answer; requests for the rooms below wait.
            from emulator.api.account_rooms import RoomsOfRequests
            from emulator.api.application import build_pages
            from emulator.api.changes import Streams, build_changes_pages
            from emulator.api.faults import build_fault_pages
            from emulator.api.jobs import build_jobs_pages
            from emulator.api.objects import build_objects_pages
            from emulator.api.openapi import build_openapi_pages
            from emulator.api.profiles import build_profiles_pages
            from emulator.api.prune import build_prune_pages
            from emulator.api.records import build_records_pages
            from emulator.api.run_readers import RunReaders
            from emulator.api.spot import build_spot_pages
            from emulator.api.state import build_state_pages
            from emulator.api.tensorboards import TensorBoards, build_tensorboard_command, build_tensorboards_pages
            from emulator.api.tensors import build_tensors_pages
            from emulator.console.page import build_console_pages
            from emulator.gateway.gateway import Gateway, Rooms
            from emulator.moto_services.accounts import find_account
            from emulator.moto_services.wsgi import MotoApplication, has_sagemaker_operation, has_sagemaker_resource

            FAULTS.set(dict(map(parse_fault, settings.faults)))
            closers.callback(FAULTS.set, {})
            own_hosts = {*LOOPBACK_HOSTS, *addresses.listening, *filter(None, [addresses.advertised])}
            readers = RunReaders(self._build_reader_environment)
            closers.callback(readers.close)
            tensorboards = TensorBoards(partial(build_tensorboard_command, settings.state_dir))
            closers.callback(tensorboards.close)
            streams = Streams()
            asked = RoomsOfRequests(self._wait_for_accounts, settings.account_id, settings.region)
            pages = build_pages(
                self.describe,
                [
                    build_jobs_pages(asked),
                    build_tensors_pages(asked, readers, self._build_reader_environment),
                    build_profiles_pages(asked, readers, self._locate_measures),
                    build_tensorboards_pages(asked, tensorboards),
                    build_objects_pages(asked),
                    build_records_pages(asked),
                    build_changes_pages(asked, streams, readers.warm),
                    build_spot_pages(self.interrupt),
                    build_fault_pages(),
                    build_state_pages(self.reset, self.export_state, self.import_state),
                    build_prune_pages(self.prune),
                    build_openapi_pages(VERSION),
                    build_console_pages(),
                ],
            )
            rooms = self._rooms = Rooms(
                own_hosts,
                pages,
                has_sagemaker_operation,
                partial(find_account, default=settings.account_id),
                settings.moto_api,
                keys=keys,
                settle=None if self._replica is None else self._replica.settle,
                **build_checks(settings, keys),
            )
            gateway = Gateway(rooms)
            closers.callback(_stop_listening, rooms, listeners)
            closers.callback(streams.close)
            for listener in listeners:
                listener.serve(gateway)
            if certificates is not None and addresses.advertised is not None:
                check_advertised(addresses, settings.port, certificates.bundle)

            # moto answers, and has what it had in the last run.
            from emulator.moto_services.store import MotoStore

            self._moto = MotoStore(settings.state_dir, disk, self._replica, tracks_instances=settings.moto_api)
            closers.callback(self._moto.close)
            moto = MotoApplication()
            moto.preload()
            rooms.moto.set_result(moto)

            # Containers can run. Those of a Docker bridge reach this machine at its gateway.
            restored = self._replica is not None and self._replica.restored
            self.chosen = choose_runtime(settings, restored=restored)
            runtime = self.chosen.runtime
            closers.callback(runtime.close)
            own_hosts.add(runtime.host_address)
            if certificates is not None:
                certificates.include(runtime.host_address)
            if runtime.host_address not in addresses.listening and not addresses.takes_all:
                listeners.append(Listener(runtime.host_address, settings.port, disk, certificates))
                listeners[-1].serve(gateway)
            offer_port(runtime, settings.port, listeners[0])
            endpoint_url = format_url(settings.scheme, runtime.host_address, settings.port)

            # What is known of jobs and messages is read from the disk, and kept there.
            from emulator.jobs.accounts import Accounts
            from emulator.jobs.records.database.sent_messages import record_message
            from emulator.jobs.runs.admission import Admission, find_most_jobs
            from emulator.moto_services.sns import bound_http_endpoints, capture_published

            admission = Admission(settings.max_jobs or find_most_jobs(), disk)

            def build_jobs(account_id: str, store: JobStore) -> Jobs:
                return Jobs(
                    store,
                    runtime,
                    publisher,
                    partial(ObjectStore, account_id),
                    partial(LogGroups, account_id),
                    partial(Metrics, account_id),
                    replace(settings, account_id=account_id),
                    endpoint_url,
                    admission=admission,
                )

            accounts = self._accounts = Accounts(settings.state_dir, build_jobs, followed=self._replica is not None)
            closers.callback(accounts.close_stores)
            store = accounts.open_store(settings.account_id)
            if self._replica is not None:
                self._replica.start()
            closers.enter_context(capture_published(lambda message: record_message(store.add_sent, message)))
            closers.enter_context(bound_http_endpoints(allow_internet=settings.allow_internet))
            # The containers of jobs and functions still ask while they end; after them nobody is to write any more.
            closers.callback(_stop_listening, rooms, listeners)
            closers.callback(streams.close)

            # Functions run.
            from emulator.lambda_functions.invoke_api import InvokeApplication
            from emulator.lambda_functions.invoker import FunctionInvoker

            find_region = partial(read_region, default=settings.region)
            invoker = FunctionInvoker(
                runtime,
                endpoint_url,
                settings.state_dir / "lambda",
                settings.container_credentials,
                pythons=settings.pythons,
                issue_credentials=settings.issue_credentials,
                ca_bundle=settings.ca_bundle,
            )
            closers.callback(invoker.close)
            rooms.invoke.set_result(InvokeApplication(invoker, itemgetter(ACCOUNT_HEADER), find_region))

            # Events reach the targets of EventBridge's rules.
            from emulator.events.publisher import Publisher

            publisher = Publisher(invoker, record=partial(record_outcome, accounts))
            closers.callback(publisher.close)
            closers.callback(publisher.drain, _DRAIN_SECONDS)

            # Alarms change their states.
            from emulator.events.alarms import Alarms

            closers.callback(Alarms(publisher).close)

            # Rules with a schedule fire.
            from emulator.events.schedules import Schedules

            closers.callback(Schedules(publisher).close)

            # Jobs run, those of the last run included.
            from emulator.gateway.sagemaker import SageMaker
            from emulator.jobs import Jobs
            from emulator.moto_services.cloudwatch.logs import LogGroups
            from emulator.moto_services.cloudwatch.metrics import Metrics
            from emulator.moto_services.s3.objects import ObjectStore

            closers.callback(accounts.close_jobs)
            recover_jobs(accounts, settings)
            sagemaker = SageMaker(accounts.find_jobs, has_sagemaker_resource)
            rooms.sagemaker.set_result(sagemaker)

            # What ended jobs left goes, as the settings say.
            if settings.retention is not None or settings.retention_size is not None:
                from emulator.jobs.runs.remains import Pruner

                look = partial(self.prune, settings.retention, settings.retention_size, False)  # noqa: FBT003
                closers.callback(Pruner(look).close)

            # Every room answers: other processes may find this one by its folder.
            folder.announce(
                settings.endpoint_url,
                settings.region,
                settings.account_id,
                keys if settings.require_signature else None,
                settings.ca_bundle,
            )
            self._closers = closers.pop_all()
        threading.Thread(target=sagemaker.preload, name="preload", daemon=True).start()

    def close(self) -> None:
        """Stop every job, wait for its end, and give everything back. No container is left."""
        self._closers.close()

    def interrupt(self, region: str | None, name: str, capacity_seconds: float) -> None:
        """See ``TrainingJobs.interrupt``; waits until the jobs of the last run are taken up."""
        jobs = self._wait_for_accounts().find_jobs(self.settings.account_id)
        jobs.training.interrupt(region or self.settings.region, name, capacity_seconds)

    def reset(self, prefix: str) -> int:
        """Stop and forget the jobs whose names begin with ``prefix``; without one, everything: S3 and moto as well.

        Returns:
            How many jobs were forgotten. S3 and moto go when the last job has ended.
        """
        forgotten: int = sum(jobs.reset(prefix) for jobs in self._list_jobs())
        if not prefix:
            self._moto.reset()
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

        rooms = self._list_jobs()
        folder = self.settings.state_dir
        try:
            removed = prune(
                lambda: [*find_folders(folder), *(each for jobs in rooms for each in jobs.find_remains())],
                # An account that asked meanwhile has a room by now.
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
        with self._moto.at_rest():
            write_archive(self.settings.state_dir, target)

    def import_state(self, source: Path) -> str:
        """Take the state from an archive; the emulator begins anew for it, as after a restart, at the same address.

        Returns:
            What ``lastImport`` of ``describe`` is when it is in place.

        Raises:
            ResourceInUse: jobs run.
            ValidationException: ``source`` is no such archive.
        """
        self._check_idle()
        name = stage_archive(source, self.settings.state_dir)
        self._ask_restart()
        return name

    @property
    def advertised_url(self) -> str | None:
        """Where other machines reach the emulator; None where none does."""
        name = self._addresses.advertised
        return None if name is None else format_url(self.settings.scheme, name, self.settings.port)

    def _wait_for_accounts(self) -> Accounts:
        """Return the accounts when the jobs of the last run are taken up."""
        self._rooms.sagemaker.result()
        assert self._accounts is not None
        return self._accounts

    def _build_reader_environment(self, account: str) -> dict[str, str]:
        """Build what a process that reads an account's S3 finds; it fails at once where the emulator is gone."""
        from emulator.api.run_readers import build_reader_environment
        from emulator.jobs.staging.opt_ml import build_aws_environment
        from emulator.trust import build_trust_variables

        settings = replace(self.settings, account_id=account)
        aws = build_aws_environment(settings.region, settings.container_credentials, settings.endpoint_url)
        if settings.ca_bundle is not None:
            aws |= build_trust_variables(str(settings.ca_bundle))
        return build_reader_environment({**aws, "AWS_MAX_ATTEMPTS": "2", "SMDEBUG_S3_OUTAGE_WAIT": "0"})

    def _locate_measures(self, job: TrainingJob) -> Path:
        """Find where what is measured of a job lies until it is uploaded; it may not be there."""
        from emulator.jobs.staging.opt_ml import find_measures, find_work_folder

        return find_measures(find_work_folder(self.settings, job.name, job.id))

    def _check_idle(self) -> None:
        if number := sum(jobs.count_running() for jobs in self._list_jobs()):
            raise ResourceInUse(f"{number} jobs and evaluations run: stop them, or wait for their ends.", status=409)

    def _list_jobs(self) -> list[RoomOfJobs]:
        """List the jobs of every account; waits until those of the last run are taken up."""
        return self._wait_for_accounts().list_jobs()

    def describe(self) -> dict[str, Any]:
        """Say how the emulator is doing, as ``GET /_emulator/health`` answers it."""
        ready = self._rooms.sagemaker.done()
        description: dict[str, Any] = {
            "status": "running" if ready else "starting",
            "version": VERSION,
            "pid": os.getpid(),
            "endpoint": self.settings.endpoint_url,
            "advertised": self.advertised_url,
            "stateDir": str(self.settings.state_dir),
            "lastImport": read_last_import(self.settings.state_dir),
        }
        if self._replica is not None:
            description["copy"] = self._replica.describe()
        if ready and self._accounts is not None:
            stores = self._accounts.stores
            description |= {
                "runtime": self.chosen.runtime.name,
                "runtimeReason": self.chosen.reason,
                "jobRegions": sorted({region for store in stores for region in store.list_regions()}),
                "runningTrainingJobs": sum(len(store.list_running_training_jobs()) for store in stores),
                "runningRuleEvaluations": sum(len(store.list_running_rule_evaluations()) for store in stores),
                "undeliveredEvents": sum(len(store.list_outbox()) for store in stores),
            }
            if self.chosen.describe_swarm is not None:
                description["swarm"] = self._describe_swarm(self.chosen.describe_swarm)
        return description

    @staticmethod
    def _describe_swarm(describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        from container_runtime.runtime import ContainerRuntimeError

        try:
            return describe()
        except ContainerRuntimeError as error:
            return {"nodes": [], "waiting": [], "error": str(error)}


def _open_replica(bucket: Bucket, settings: Settings, closers: ExitStack) -> Replica:
    """Open the copy of the state, and take the state from it where it is to be.

    Raises:
        StartupError: see ``open_replica``.
    """
    # Imported here: most emulators have none.
    from emulator.replica.replica import open_replica

    replica = open_replica(bucket, settings.state_dir, end_at_once)
    closers.callback(replica.close)
    return replica


def end_at_once(reason: str) -> None:
    """End this process as a kill would: another emulator drives its jobs, and has their containers."""
    logger.critical(
        "%s: this emulator no longer owns its state, and ends at once. Its jobs are that one's now; started again, "
        "it takes the state from there.",
        reason,
    )
    os._exit(LOST_EXIT_CODE)


def _close_ports(listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.close()


def _stop_listening(rooms: Rooms, listeners: list[Listener]) -> None:
    """Answer the requests that run, and close the ports. Where the start failed, none waits for what will not come."""
    rooms.cancel()
    _close_ports(listeners)


def build_checks(settings: Settings, keys: Keys) -> dict[str, Any]:
    """Build what refuses requests that prove nothing, where the settings ask for it."""
    if not settings.require_signature:
        return {}
    # Imported here: it needs a part of moto, which the first answers would wait for.
    from emulator.gateway.guard import Guard, TokenCheck

    guard = Guard(keys, settings.account_id, settings.access_keys)
    return {"guard": guard, "token_check": TokenCheck(keys.token)}


def open_certificates(settings: Settings, addresses: Addresses) -> Certificates | None:
    """Read or make what clients are shown; None where only this machine's clients are there, and none asked for TLS.

    Raises:
        StartupError: a file cannot be used.
    """
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        lacking, given = (
            ("--tls-key", "--tls-certificate") if settings.tls_key is None else ("--tls-certificate", "--tls-key")
        )
        raise StartupError(f"{given} needs {lacking}, too: name the file of either, the same one where it holds both.")
    if addresses.advertised is None and not settings.tls and settings.tls_certificate is None:
        return None
    # Imported here: most emulators need none of it.
    from emulator.certificates import Certificates

    return Certificates(settings.state_dir, addresses.advertised, settings.tls_certificate, settings.tls_key)


def record_outcome(accounts: Accounts, outcome: Outcome) -> None:
    """Keep what became of an event at a target with the jobs of the event's account."""
    if outcome.account in accounts.list_ids():
        accounts.open_store(outcome.account).add_outcome(outcome.event_id, asdict(outcome), time.time_ns() // 1_000_000)


def choose_runtime(settings: Settings, *, restored: bool = False) -> ChosenRuntime:
    """Open the container back end that the settings ask for.

    Args:
        settings: which.
        restored: whether the state was taken from a copy, which has no folders of jobs.

    Raises:
        StartupError: Docker was asked for and does not answer or lacks our images, or the back end cannot be opened.
    """
    from container_runtime.runtime import ContainerRuntimeError
    from container_runtime.selection import select_runtime
    from emulator.jobs.staging.opt_ml import WORK_FOLDERS

    try:
        check_shared(settings)
        return select_runtime(
            settings.runtime,
            settings.state_dir,
            settings.container_user,
            strict_versions=settings.strict_versions,
            allow_internet=settings.allow_internet,
            address=settings.advertise,
            registry=settings.registry,
            carry=settings.shared_folder is None,
            lost=settings.state_dir / WORK_FOLDERS if restored else None,
        )
    except ContainerRuntimeError as error:
        raise StartupError(str(error)) from error


def offer_port(runtime: ContainerRuntime, port: int, listener: Listener) -> None:
    """Let containers reach the emulator, those of the last run among them.

    Raises:
        StartupError: the engine does not answer.
    """
    from container_runtime.runtime import ContainerRuntimeError

    try:
        runtime.offer(port, listener.take)
    except ContainerRuntimeError as error:
        raise StartupError(str(error)) from error


def recover_jobs(accounts: Accounts, settings: Settings) -> None:
    """Take up the jobs of the last run.

    Raises:
        StartupError: their containers cannot be found.
    """
    from container_runtime.runtime import ContainerRuntimeError

    try:
        accounts.open_all()
    except ContainerRuntimeError as error:
        raise StartupError(f"The jobs of {settings.state_dir} cannot be taken up again: {error}") from error
