"""The composition: Settings in, one running emulator out. Reads from top to bottom in the order of the start."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emulator.exceptions import StartupError
from emulator.gateway.authentication import LOOPBACK_HOSTS
from emulator.gateway.listener import LOOPBACK, Listener
from emulator.state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.types import WSGIApplication

    from container_runtime.selection import Selection
    from emulator.gateway.sagemaker import SageMaker
    from emulator.jobs import TrainingJobs
    from emulator.jobs.records.store import JobStore
    from emulator.settings import Settings

logger = logging.getLogger(__name__)

# Events of jobs that ended while the emulator stops still go out, for so long.
_DRAIN_SECONDS = 5.0
# While rooms are imported, requests that could be answered get their turn ten times as often as Python's default.
_SWITCH_SECONDS = 0.0005


class Emulator:
    """A running emulator.

    What is heavy to import is imported here, step by step, while the port is already open: a client that comes early
    waits, it is not refused.

    Attributes:
        settings: those it runs with; the port is the real one where 0 was given.
        chosen: the container back end.
    """

    def __init__(self, settings: Settings) -> None:
        """Start everything; return when every room answers.

        Raises:
            StartupError: the text is one line that says what to do. Nothing is left running.
        """
        self._closers = ExitStack()
        self._own_hosts: set[str] = set(LOOPBACK_HOSTS)
        self._sagemaker: Future[SageMaker] = Future()
        self._invoke: Future[WSGIApplication] = Future()
        self._moto: Future[WSGIApplication] = Future()
        self._store: JobStore | None = None
        self._listeners: list[Listener] = []
        with ExitStack() as closers, _quick_imports():
            folder = StateFolder(settings.state_dir)
            closers.callback(folder.close)
            closers.callback(self._close_listeners)
            listener = self._open_listener(LOOPBACK, settings.port)
            self.settings = replace(settings, port=listener.port)

            gateway = self._build_gateway()
            listener.serve(gateway)
            self._moto.set_result(self._build_moto(closers))
            self.chosen = choose_runtime(self.settings)
            closers.callback(self.chosen.runtime.close)
            self._listen_for_containers(gateway)
            self._build_rooms(closers)

            folder.announce(self.settings.endpoint_url, settings.region)
            self._closers = closers.pop_all()
        threading.Thread(target=self._sagemaker.result().preload, name="preload", daemon=True).start()

    def close(self) -> None:
        """Stop every job, wait for its end, and give everything back. No container is left."""
        self._closers.close()

    def _build_gateway(self) -> WSGIApplication:
        from emulator.gateway.dispatch import Rooms, build_gateway
        from emulator.moto_services.wsgi import has_sagemaker_operation

        return build_gateway(
            Rooms(
                sagemaker=self._sagemaker,
                invoke=self._invoke,
                moto=self._moto,
                has_moto_operation=has_sagemaker_operation,
                health=self.describe,
                own_hosts=self._own_hosts,
            )
        )

    def _build_moto(self, closers: ExitStack) -> WSGIApplication:
        from emulator.moto_services.s3_backend import open_s3
        from emulator.moto_services.wsgi import MotoApplication

        closers.callback(open_s3(self.settings.state_dir / "s3").close)
        moto = MotoApplication()
        moto.preload()
        return moto

    def _open_listener(self, address: str, port: int) -> Listener:
        listener = Listener(address, port)
        self._listeners.append(listener)
        return listener

    def _close_listeners(self) -> None:
        # Where the start failed, requests may still wait for rooms that will never be.
        for room in (self._sagemaker, self._invoke, self._moto):
            room.cancel()
        for listener in self._listeners:
            listener.close()

    def _listen_for_containers(self, gateway: WSGIApplication) -> None:
        """Containers of a Docker network reach this machine at the network's gateway."""
        address = self.chosen.runtime.host_address
        self._own_hosts.add(address)
        if address != LOOPBACK:
            self._open_listener(address, self.settings.port).serve(gateway)

    def _build_rooms(self, closers: ExitStack) -> None:
        from emulator.events.publisher import Publisher
        from emulator.gateway.sagemaker import SageMaker
        from emulator.jobs import TrainingJobs
        from emulator.jobs.records.sent_messages import record_message
        from emulator.jobs.records.store import JobStore
        from emulator.lambda_functions.invoke_api import InvokeApplication
        from emulator.lambda_functions.invoker import FunctionInvoker
        from emulator.moto_services.logs import LogGroups
        from emulator.moto_services.s3 import ObjectStore
        from emulator.moto_services.sns import capture_published

        settings, runtime = self.settings, self.chosen.runtime
        account_id = settings.account_id
        endpoint_url = f"http://{runtime.host_address}:{settings.port}"

        self._store = store = JobStore(settings.state_dir / "jobs.sqlite")
        closers.callback(store.close)
        closers.callback(capture_published(lambda message: record_message(store, message)))
        # The jobs' containers and functions still ask while they end; after them nobody is to write any more.
        closers.callback(self._close_listeners)
        invoker = FunctionInvoker(runtime, endpoint_url, settings.state_dir / "lambda", settings.container_credentials)
        closers.callback(invoker.close)
        publisher = Publisher(account_id, invoker)
        closers.callback(publisher.close)
        closers.callback(publisher.drain, _DRAIN_SECONDS)
        jobs = TrainingJobs(
            store,
            runtime,
            publisher,
            lambda region: ObjectStore(account_id, region),
            lambda region: LogGroups(account_id, region),
            settings,
            endpoint_url,
        )
        closers.callback(jobs.close)
        self._invoke.set_result(InvokeApplication(invoker, account_id, settings.region))
        self._recover(jobs)
        self._sagemaker.set_result(SageMaker(jobs, account_id))

    def _recover(self, jobs: TrainingJobs) -> None:
        from container_runtime.runtime import ContainerRuntimeError

        try:
            jobs.recover()
        except ContainerRuntimeError as error:
            raise StartupError(f"The jobs of {self.settings.state_dir} cannot be taken up again: {error}") from error

    def describe(self) -> dict[str, Any]:
        """What ``GET /_emulator/health`` answers."""
        ready = self._sagemaker.done()
        description: dict[str, Any] = {
            "status": "running" if ready else "starting",
            "version": read_version(),
            "pid": os.getpid(),
            "endpoint": self.settings.endpoint_url,
            "stateDir": str(self.settings.state_dir),
        }
        if ready and self._store is not None:
            description |= {
                "runtime": self.chosen.runtime.name,
                "runtimeReason": self.chosen.reason,
                "runningTrainingJobs": len(self._store.list_running_training_jobs()),
                "runningRuleEvaluations": len(self._store.list_running_rule_evaluations()),
                "undeliveredEvents": len(self._store.list_outbox()),
            }
        return description


@contextmanager
def _quick_imports() -> Iterator[None]:
    """Short turns for threads, and no garbage collection: imports make much and drop nothing (a tenth of the start)."""
    default = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        sys.setswitchinterval(default)


def choose_runtime(settings: Settings) -> Selection:
    """Open the container back end that the settings ask for.

    Raises:
        StartupError: Docker was asked for and does not answer or lacks our images, or the back end cannot be opened.
    """
    from container_runtime.runtime import ContainerRuntimeError
    from container_runtime.selection import select_runtime

    try:
        return select_runtime(settings.runtime, settings.state_dir)
    except ContainerRuntimeError as error:
        raise StartupError(str(error)) from error


def read_version() -> str:
    """The version of the distribution, or ``unknown`` where only the sources are there."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("smdebug-emulator")
    except PackageNotFoundError:
        return "unknown"
