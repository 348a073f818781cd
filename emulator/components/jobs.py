"""Components of jobs: event delivery, the jobs themselves, and retention."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from emulator.components.administration import Started
from emulator.components.component import Component
from emulator.exceptions import StartupError

if TYPE_CHECKING:
    from emulator.components.administration import Administration
    from emulator.components.containers import Containers, Functions
    from emulator.components.gateway import GatewayComponent
    from emulator.components.ports import Ports
    from emulator.components.storage import Moto, Stores
    from emulator.events.publisher import Publisher
    from emulator.gateway.sagemaker import SageMaker
    from emulator.jobs import Jobs
    from emulator.jobs.accounts import Accounts
    from emulator.jobs.runs.admission import Admission
    from emulator.jobs.store.store import JobStore

# How long the shutdown waits for the delivery of events of jobs that just ended.
_DRAIN_SECONDS = 5.0


class Events(Component):
    """Delivery of events to the targets of EventBridge's rules.

    Attributes:
        publisher: delivers the events.
    """

    publisher: Publisher

    def __init__(self, ports: Ports, moto: Moto, functions: Functions, stores: Stores) -> None:
        super().__init__(ports, moto, functions, stores)
        self._ports = ports
        self._moto = moto
        self._functions = functions
        self._stores = stores

    def start(self) -> None:
        """Start to deliver events."""
        from emulator.events.pipeline_target import start_pipeline
        from emulator.events.publisher import Publisher
        from emulator.jobs.delivery_outcomes import record_outcome

        record = partial(record_outcome, self._stores.stores)
        self.publisher = Publisher(
            self._functions.invoker,
            record=record,
            start_pipeline=partial(start_pipeline, self._ports.settings),
            replacing_in=self._moto.store.replacing_in,
        )
        self.closers.callback(self.publisher.close)
        self.closers.callback(self.publisher.drain, _DRAIN_SECONDS)


class Timers(Component):
    """The evaluation of alarms, and rules with a schedule: sources of events that no first answer waits for."""

    def __init__(self, events: Events, jobs: JobsComponent) -> None:
        super().__init__(events, jobs)
        self._events = events

    def start(self) -> None:
        """Start to evaluate alarms, and to fire rules with a schedule."""
        from emulator.events.alarms import Alarms
        from emulator.events.schedules import Schedules

        self.closers.callback(Alarms(self._events.publisher).close)
        self.closers.callback(Schedules(self._events.publisher).close)


class JobsComponent(Component):
    """The jobs of every account, and SageMaker's operations on them.

    Attributes:
        sagemaker: answers the operations.
    """

    sagemaker: SageMaker

    def __init__(
        self,
        ports: Ports,
        gateway: GatewayComponent,
        containers: Containers,
        moto: Moto,
        stores: Stores,
        events: Events,
        administration: Administration,
    ) -> None:
        super().__init__(ports, gateway, containers, moto, stores, events)
        self._ports = ports
        self._gateway = gateway
        self._containers = containers
        self._moto = moto
        self._stores = stores
        self._events = events
        self._administration = administration

    def start(self) -> None:
        """Recover the jobs of the last process, and start to answer SageMaker's operations."""
        from emulator.gateway.sagemaker import SageMaker
        from emulator.jobs.accounts import Accounts
        from emulator.jobs.runs.admission import Admission, find_most_jobs
        from emulator.moto_services.wsgi import has_sagemaker_resource

        settings = self._ports.settings
        admission = Admission(settings.max_jobs or find_most_jobs(), self._ports.disk)
        accounts = Accounts(self._stores.stores, partial(self._build_jobs, admission))
        self.closers.callback(accounts.close)
        with admission.paused():
            self._recover(accounts)
        self.sagemaker = SageMaker(accounts.find_jobs, has_sagemaker_resource)
        started = Started(accounts, self._stores.stores, self._containers.chosen, self._moto.store)
        self._administration.started.set_result(started)
        self._gateway.services.sagemaker.set_result(self.sagemaker)
        self._gateway.services.sagemaker.answer_early()

    def _build_jobs(self, admission: Admission, account_id: str, store: JobStore) -> Jobs:
        from emulator.jobs import Jobs, build_services

        services = build_services(
            replace(self._ports.settings, account_id=account_id),
            store,
            self._containers.chosen.runtime,
            self._events.publisher,
            self._containers.endpoint_url,
            admission=admission,
        )
        return Jobs(services)

    def _recover(self, accounts: Accounts) -> None:
        from container_runtime.runtime import ContainerRuntimeError

        try:
            accounts.open_all()
        except ContainerRuntimeError as error:
            state_dir = self._ports.settings.state_dir
            raise StartupError(f"The jobs of {state_dir} cannot be recovered: {error}") from error


class Retention(Component):
    """Removal of what ended jobs left behind, if the settings limit its age or size."""

    def __init__(self, ports: Ports, jobs: JobsComponent, administration: Administration) -> None:
        super().__init__(ports, jobs)
        self._ports = ports
        self._administration = administration

    def start(self) -> None:
        """Start to remove it periodically."""
        settings = self._ports.settings
        if settings.retention is None and settings.retention_size is None:
            return
        from emulator.jobs.runs.remains import Pruner

        prune = self._administration.prune
        pruner = Pruner(lambda: prune(settings.retention, settings.retention_size, dry_run=False))
        self.closers.callback(pruner.close)
