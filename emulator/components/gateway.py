"""Components that answer requests: the API's pages, the gateway, and its end."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from emulator import VERSION
from emulator.api import PREFIX
from emulator.components.component import Component
from emulator.gateway.addresses import check_advertised
from emulator.gateway.authentication import HOST_OF_CONTAINERS, LOOPBACK_HOSTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from emulator.api.changes import Streams
    from emulator.components.administration import Administration
    from emulator.components.ports import Faults, Ports, ReplicaComponent
    from emulator.gateway.gateway import Gateway, GatewayServices
    from emulator.jobs.model.training_job import TrainingJob
    from emulator.security.keys import Keys
    from emulator.settings import Settings


class Pages(Component):
    """The emulator's own API and console.

    They are built once the emulator has started: the first answers of AWS's services do not wait for them, and no
    request imports what the start is importing. Two threads that import a package with circular imports, such as moto,
    at different modules, get modules that are not complete. Until then only the emulator's health is answered.
    """

    def __init__(self, ports: Ports, faults: Faults, administration: Administration) -> None:
        super().__init__(ports, faults)
        self._ports = ports
        self._administration = administration
        self._lock = threading.Lock()
        self._started = threading.Event()
        self._built: WSGIApplication | None = None
        self._streams: Streams | None = None
        self._closed = False

    def answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request. All but the one for the emulator's health wait until it has started.

        Raises:
            CancelledError: the emulator stops.
        """
        if not self._started.is_set() and environ["PATH_INFO"] == f"{PREFIX}health":
            return self._health_page(environ, start_response)
        self._started.wait()
        return self._find_application()(environ, start_response)

    def open(self) -> None:
        """Answer the requests that wait, and all others: every component has started."""
        self._started.set()

    def preload(self) -> None:
        """Build the pages, so that their first request does not wait for it."""
        with suppress(CancelledError):
            self._find_application()

    def close_streams(self) -> None:
        """End the open streams of changes; no page is built any more. Idempotent."""
        with self._lock:
            self._closed = True
        self._started.set()
        if self._streams is not None:
            self._streams.close()

    def stop(self) -> None:
        self.close_streams()
        super().stop()

    @cached_property
    def _health_page(self) -> WSGIApplication:
        from emulator.api.application import build_pages

        return build_pages(self._administration.describe)

    def _find_application(self) -> WSGIApplication:
        with self._lock:
            if self._built is None:
                if self._closed:
                    raise CancelledError
                self._built = self._build()
            return self._built

    def _build(self) -> WSGIApplication:
        from emulator.api.account_services import RequestAccounts
        from emulator.api.administration.authority import build_authority_pages
        from emulator.api.administration.faults import build_fault_pages
        from emulator.api.administration.prune import build_prune_pages
        from emulator.api.administration.state import build_state_pages
        from emulator.api.application import build_pages
        from emulator.api.changes import Streams, build_changes_pages
        from emulator.api.description.known_parameters import build_parameter_check
        from emulator.api.description.openapi import build_openapi_pages
        from emulator.api.jobs.job_exports import build_job_exports_pages
        from emulator.api.jobs.job_tags import build_tags_pages
        from emulator.api.jobs.pipeline_executions import build_pipeline_executions_pages
        from emulator.api.jobs.processing_jobs import build_processing_jobs_pages
        from emulator.api.jobs.short_names import build_names_pages
        from emulator.api.jobs.spot import build_spot_pages
        from emulator.api.jobs.training_jobs import build_jobs_pages
        from emulator.api.jobs.tuning_jobs import build_tuning_jobs_pages
        from emulator.api.objects import build_objects_pages
        from emulator.api.profiles import build_profiles_pages
        from emulator.api.run_readers import RunReaders
        from emulator.api.tensorboards import TensorBoards, build_tensorboard_command, build_tensorboards_pages
        from emulator.api.tensors import build_tensors_pages
        from emulator.console.page import build_console_pages

        settings, administration = self._ports.settings, self._administration
        build_environment = partial(_build_reader_environment, settings)
        readers = RunReaders(build_environment)
        self.closers.callback(readers.close)
        tensorboards = TensorBoards(partial(build_tensorboard_command, settings.state_dir))
        self.closers.callback(tensorboards.close)
        streams = self._streams = Streams()
        accounts = RequestAccounts(administration.wait_for_accounts, settings.account_id, settings.region)
        return build_pages(
            administration.describe,
            [
                build_jobs_pages(accounts),
                build_tags_pages(accounts),
                build_names_pages(accounts),
                build_processing_jobs_pages(accounts),
                build_tuning_jobs_pages(accounts),
                build_pipeline_executions_pages(accounts),
                build_tensors_pages(accounts, readers, build_environment),
                build_profiles_pages(accounts, readers, partial(_locate_measures, settings)),
                build_tensorboards_pages(accounts, tensorboards),
                build_objects_pages(accounts),
                build_job_exports_pages(accounts),
                build_changes_pages(accounts, streams, readers.warm),
                build_spot_pages(administration.interrupt),
                build_fault_pages(),
                build_state_pages(
                    administration.export_state,
                    administration.import_state,
                    administration.count_state,
                    administration.reset,
                    administration.undo_reset,
                ),
                build_prune_pages(administration.prune),
                build_authority_pages(settings.ca_bundle),
                build_openapi_pages(VERSION),
                build_parameter_check(),
                build_console_pages(),
            ],
        )


class GatewayComponent(Component):
    """The gateway: answers requests at the ports, and lets them wait for services that are still starting.

    Attributes:
        services: the services; later components set the results of its futures.
    """

    services: GatewayServices
    _application: Gateway

    def __init__(self, ports: Ports, replica: ReplicaComponent, pages: Pages, administration: Administration) -> None:
        super().__init__(ports, replica, pages)
        self._ports = ports
        self._replica = replica
        self._pages = pages
        self._administration = administration

    def start(self) -> None:
        """Start to answer at every port."""
        from emulator.gateway.gateway import Gateway, GatewayServices
        from emulator.moto_services.accounts import find_account
        from emulator.moto_services.wsgi import has_sagemaker_operation

        ports, settings, replica = self._ports, self._ports.settings, self._replica.replica
        advertised = ports.addresses.advertised
        self.services = GatewayServices(
            {
                *LOOPBACK_HOSTS,
                *ports.addresses.listening,
                *filter(None, [advertised]),
                *settings.accepted_hosts,
                *([HOST_OF_CONTAINERS] if settings.behind else []),
            },
            self._pages.answer,
            has_sagemaker_operation,
            partial(find_account, default=settings.account_id),
            settings.moto_api,
            partial(self._administration.reset, "", keep=False),
            keys=ports.keys,
            settle=None if replica is None else replica.settle,
            may_change=None if replica is None else lambda: replica.fence.is_open,
            **_build_checks(settings, ports.keys),
        )
        self._application = Gateway(self.services)
        self.closers.callback(self.stop_answering)
        for listener in ports.listeners:
            listener.serve(self._application)
        if ports.certificates is not None and advertised is not None:
            check_advertised(ports.addresses, settings.port, ports.certificates.bundle)

    def add_address(self, address: str) -> None:
        """Listen on one more address of this machine, such as that of the containers' network.

        Raises:
            StartupError: the address cannot be bound; see ``Listener``.
        """
        ports = self._ports
        self._application.allow_host(address)
        if ports.certificates is not None:
            ports.certificates.include(address)
        if address not in ports.addresses.listening and not ports.addresses.takes_all:
            ports.listen(address, ports.settings.port).serve(self._application)

    def stop_answering(self) -> None:
        """Finish the requests in progress and close the ports; no request waits for a missing service. Idempotent."""
        self._pages.close_streams()
        self._administration.started.cancel()
        self.services.cancel()
        self._ports.close_listeners()


class RequestsEnd(Component):
    """The end of requests, at its position in the stop order.

    Jobs and functions call the emulator until they have ended, so they stop before it. The stores that requests write
    to stop after it.
    """

    def __init__(self, gateway: GatewayComponent, *stores: Component) -> None:
        super().__init__(gateway, *stores)
        self._gateway = gateway

    def stop(self) -> None:
        """Close the ports."""
        self._gateway.stop_answering()


def _build_checks(settings: Settings, keys: Keys) -> dict[str, Any]:
    if not settings.require_signature:
        return {}
    # Imported here: it needs a part of moto, which would delay the first answers.
    from emulator.gateway.guard import Guard, TokenCheck

    guard = Guard(keys, settings.account_id, settings.access_keys)
    return {"guard": guard, "token_check": TokenCheck(keys.token)}


def _build_reader_environment(settings: Settings, account: str) -> dict[str, str]:
    """Build the environment of a process that reads an account's S3; requests fail at once if the emulator stops."""
    from emulator.api.run_readers import build_reader_environment
    from emulator.jobs.staging.opt_ml import build_aws_environment
    from emulator.security.trust import build_trust_variables

    credentials = replace(settings, account_id=account).container_credentials
    aws = build_aws_environment(settings.region, credentials, settings.endpoint_url)
    if settings.ca_bundle is not None:
        aws |= build_trust_variables(str(settings.ca_bundle))
    return build_reader_environment({**aws, "AWS_MAX_ATTEMPTS": "2", "SMDEBUG_S3_OUTAGE_WAIT": "0"})


def _locate_measures(settings: Settings, job: TrainingJob) -> Path:
    """Return the folder of a job's measurements before their upload; it may not exist."""
    from emulator.jobs.staging.opt_ml import find_measures, find_work_folder

    return find_measures(find_work_folder(settings, job.name, job.id))
