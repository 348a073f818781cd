"""Components that hold state: moto with S3, and the stores of jobs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.components.component import Component

if TYPE_CHECKING:
    from emulator.components.containers import Containers
    from emulator.components.gateway import GatewayComponent
    from emulator.components.ports import Ports, ReplicaComponent
    from emulator.jobs.accounts import AccountStores
    from emulator.moto_services.store import MotoStore


class Moto(Component):
    """Every service that moto answers, with the state of the last process.

    Attributes:
        store: the state of these services.
    """

    store: MotoStore

    def __init__(self, ports: Ports, replica: ReplicaComponent, gateway: GatewayComponent) -> None:
        super().__init__(ports, replica, gateway)
        self._ports = ports
        self._replica = replica
        self._gateway = gateway

    def start(self) -> None:
        """Restore the state, and let the gateway pass requests to moto."""
        from emulator.components.deferred_modules import defer_modules

        defer_modules()
        from emulator.moto_services.store import MotoStore
        from emulator.moto_services.wsgi import MotoApplication

        settings = self._ports.settings
        self.store = MotoStore(
            settings.state_dir, self._ports.disk, self._replica.replica, tracks_instances=settings.moto_api
        )
        self.closers.callback(self.store.close)
        application = MotoApplication()
        application.preload()
        self._gateway.services.moto.set_result(application)
        self._gateway.services.moto.answer_early()


class Stores(Component):
    """The stores of jobs and of sent messages.

    Attributes:
        stores: the stores of every account.
    """

    stores: AccountStores

    def __init__(self, ports: Ports, replica: ReplicaComponent, moto: Moto, containers: Containers) -> None:
        # Needs the containers, too: jobs stop, and their last changes are stored, while containers are still reachable.
        super().__init__(ports, replica, moto, containers)
        self._ports = ports
        self._replica = replica
        self._moto = moto

    def start(self) -> None:
        """Open the store of the emulator's own account; other stores are opened on first use."""
        from emulator.events.sent_messages import record_message
        from emulator.jobs.accounts import AccountStores
        from emulator.moto_services.sns import bound_http_endpoints, capture_published

        settings, replica = self._ports.settings, self._replica.replica
        if replica is None:
            self.stores = AccountStores(settings.state_dir)
        else:
            self.stores = AccountStores(settings.state_dir, followed=True, await_write=replica.fence.wait)
        self.closers.callback(self.stores.close)
        store = self.stores.open(settings.account_id)
        if replica is not None:
            replica.start()
        capture = partial(capture_published, partial(record_message, store.messages.add_sent))
        bound = partial(bound_http_endpoints, allow_internet=settings.allow_internet)
        for replace in (capture, bound):
            self.closers.enter_context(self._moto.store.replacing_in("sns", replace))
