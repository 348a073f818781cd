"""The composition: Settings in, one running emulator out. Reads from top to bottom in the order of the start."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from emulator.exceptions import StartupError
from emulator.gateway.authentication import LOOPBACK_HOSTS
from emulator.gateway.instance import Instance
from emulator.gateway.listener import LOOPBACK, Listener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.types import WSGIApplication

    from container_runtime.runtime import ContainerRuntime
    from emulator.gateway.sagemaker import SageMaker
    from emulator.jobs import TrainingJobs
    from emulator.jobs.store import JobStore
    from emulator.settings import Settings

logger = logging.getLogger(__name__)

# Events of jobs that ended while the emulator stops still go out, for so long.
_DRAIN_SECONDS = 5.0
# While rooms are imported, requests that could be answered get their turn ten times as often as Python's default.
_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, slots=True)
class ChosenRuntime:
    """A container back end, and why it was chosen."""

    runtime: ContainerRuntime
    reason: str


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
        with ExitStack() as closers, _short_turns():
            instance = Instance(settings.state_dir)
            closers.callback(instance.close)
            listener = Listener(LOOPBACK, settings.port)
            closers.callback(listener.close)
            self.settings = replace(settings, port=listener.port)

            gateway = self._build_gateway()
            listener.serve(gateway)
            self._moto.set_result(self._build_moto(closers))
            self.chosen = choose_runtime(self.settings)
            closers.callback(self.chosen.runtime.close)
            self._listen_for_containers(gateway, closers)
            self._build_rooms(closers)

            instance.announce(self.settings.endpoint_url, settings.region)
            self._closers = closers.pop_all()

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

    def _listen_for_containers(self, gateway: WSGIApplication, closers: ExitStack) -> None:
        """Containers of a Docker network reach this machine at the network's gateway."""
        address = self.chosen.runtime.host_address
        self._own_hosts.add(address)
        if address != LOOPBACK:
            listener = Listener(address, self.settings.port)
            closers.callback(listener.close)
            listener.serve(gateway)

    def _build_rooms(self, closers: ExitStack) -> None:
        from emulator.events.invoke_api import InvokeApplication
        from emulator.events.lambda_runtime import LambdaRuntime
        from emulator.events.publisher import Publisher
        from emulator.gateway.sagemaker import SageMaker
        from emulator.jobs import TrainingJobs
        from emulator.jobs.store import JobStore
        from emulator.moto_services.logs import LogGroups
        from emulator.moto_services.s3 import ObjectStore

        settings, runtime = self.settings, self.chosen.runtime
        account_id = settings.account_id
        endpoint_url = f"http://{runtime.host_address}:{settings.port}"

        self._store = store = JobStore(settings.state_dir / "jobs.sqlite")
        closers.callback(store.close)
        functions = LambdaRuntime(runtime, endpoint_url, settings.state_dir / "lambda", settings.container_credentials)
        closers.callback(functions.close)
        publisher = Publisher(account_id, functions)
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
        self._invoke.set_result(InvokeApplication(functions, account_id, settings.region))
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
def _short_turns() -> Iterator[None]:
    default = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(default)


def choose_runtime(settings: Settings) -> ChosenRuntime:
    """Open the container back end that the settings ask for.

    Raises:
        StartupError: Docker was asked for and does not answer, or the back end cannot be opened.
    """
    from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError

    try:
        if settings.runtime == "process":
            return ChosenRuntime(_open_processes(settings), "asked for")
        try:
            return ChosenRuntime(_open_docker(settings), "asked for" if settings.runtime == "docker" else "it answers")
        except EngineUnavailableError as error:
            if settings.runtime == "docker":
                raise StartupError(f"{error} Start an engine, or use --runtime process.") from error
            logger.info("No Docker engine: %s", error)
            return ChosenRuntime(_open_processes(settings), "no Docker engine answers")
    except ContainerRuntimeError as error:
        raise StartupError(str(error)) from error


def _open_docker(settings: Settings) -> ContainerRuntime:
    from container_runtime.docker_engine import DockerEngine

    # The same after a restart on the same folder, so that the containers of the last run are found.
    return DockerEngine(hashlib.sha256(str(settings.state_dir.resolve()).encode()).hexdigest()[:12])


def _open_processes(settings: Settings) -> ContainerRuntime:
    from container_runtime.local_process import LocalProcesses

    return LocalProcesses(settings.state_dir / "containers")


def read_version() -> str:
    """The version of the distribution, or ``unknown`` where only the sources are there."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("smdebug-emulator")
    except PackageNotFoundError:
        return "unknown"
