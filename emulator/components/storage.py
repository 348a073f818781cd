"""Components that hold state: moto with S3, and the stores of jobs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.components.component import Component

if TYPE_CHECKING:
    from emulator.components.containers import Containers
    from emulator.components.gateway import Gateway
    from emulator.components.ports import Ports, Replica
    from emulator.jobs.accounts import AccountStores
    from emulator.moto_services.durable import DurableMoto
    from emulator.moto_services.s3.backend import DurableS3


class Moto(Component):
    """Every service that moto answers, with the state of the last process.

    Attributes:
        s3: the objects of S3.
        moto: the other services.
    """

    s3: DurableS3
    moto: DurableMoto

    def __init__(self, ports: Ports, replica: Replica, gateway: Gateway) -> None:
        super().__init__(ports, replica, gateway)
        self._ports = ports
        self._replica = replica
        self._gateway = gateway

    def start(self) -> None:
        """Restore the state, and let the gateway pass requests on."""
        from emulator.moto_services.cloudwatch.metric_filters import count_log_events
        from emulator.moto_services.cloudwatch.metrics import list_metrics_once
        from emulator.moto_services.cloudwatch.sagemaker_metrics import count_missing_steps
        from emulator.moto_services.durable import open_moto
        from emulator.moto_services.instances import untracked
        from emulator.moto_services.s3.backend import open_s3
        from emulator.moto_services.wsgi import MotoApplication

        settings, replica = self._ports.settings, self._replica.replica
        if not settings.moto_api:
            self.closers.enter_context(untracked())
        self.s3 = open_s3(settings.state_dir / "s3", self._ports.disk, replica)
        self.closers.callback(self.s3.close)
        self.moto = open_moto(settings.state_dir / "moto", followed=replica is not None)
        self.closers.callback(self.moto.close)
        self.closers.enter_context(count_missing_steps())
        self.closers.enter_context(list_metrics_once())
        self.closers.enter_context(count_log_events())
        application = MotoApplication()
        application.preload()
        self._gateway.services.moto.set_result(application)


class Stores(Component):
    """The stores of jobs and of sent messages.

    Attributes:
        stores: of every account.
    """

    stores: AccountStores

    def __init__(self, ports: Ports, replica: Replica, moto: Moto, containers: Containers) -> None:
        # The containers, too: jobs are stopped, and their last changes stored, while these can still be reached.
        super().__init__(ports, replica, moto, containers)
        self._ports = ports
        self._replica = replica

    def start(self) -> None:
        """Open the store of the emulator's own account; the others follow when they are asked for."""
        from emulator.jobs.accounts import AccountStores
        from emulator.jobs.records.database.sent_messages import record_message
        from emulator.moto_services.sns import bound_http_endpoints, capture_published

        settings, replica = self._ports.settings, self._replica.replica
        self.stores = AccountStores(settings.state_dir, followed=replica is not None)
        self.closers.callback(self.stores.close)
        store = self.stores.open(settings.account_id)
        if replica is not None:
            replica.start()
        self.closers.enter_context(capture_published(partial(record_message, store.messages.add_sent)))
        self.closers.enter_context(bound_http_endpoints(allow_internet=settings.allow_internet))
