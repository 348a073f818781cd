"""Composition of the emulator: settings in, one running emulator out."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from emulator.components.administration import Administration
from emulator.components.component import ComponentList
from emulator.components.containers import Containers, Functions
from emulator.components.deferred_modules import preload_modules
from emulator.components.gateway import GatewayComponent, Pages, RequestsEnd
from emulator.components.jobs import Events, JobsComponent, Retention, Timers
from emulator.components.ports import Announcement, Faults, Folder, Ports, ReplicaComponent
from emulator.components.storage import Moto, Stores
from emulator.gateway.addresses import find_addresses

if TYPE_CHECKING:
    from collections.abc import Callable

    from container_runtime.back_ends import ChosenRuntime
    from emulator.settings import Settings
    from emulator.state.replica.bucket import Bucket


class Emulator:
    """A running emulator.

    Attributes:
        settings: the settings in use; the port is the real one if 0 was given.
        chosen: the container back end.
        advertised_url: its URL for other machines; None if it serves this machine only.
    """

    def __init__(self, settings: Settings, ask_restart: Callable[[], None], bucket: Bucket | None = None) -> None:
        """Start every component in order; return when every service answers.

        The ports are open before the first heavy import, so that an early client waits instead of being refused.
        Requests are answered as soon as their own service has started.

        Args:
            settings: the settings.
            ask_restart: called when the state is to be replaced; the owner then closes this object and makes another.
            bucket: a bucket in another S3 for a replica of the state; None for no replica.

        Raises:
            StartupError: the text is one line that says what to do. Everything is stopped again.
        """
        addresses = find_addresses(settings)
        self._components = ComponentList()
        add = self._components.add
        folder = add(Folder(settings))
        replica = self._replica = add(ReplicaComponent(settings, bucket, folder))
        ports = add(Ports(settings, addresses, replica))
        administration = Administration(ports, replica, ask_restart)
        faults = add(Faults(settings))
        pages = add(Pages(ports, faults, administration))
        gateway = add(GatewayComponent(ports, replica, pages, administration))
        moto = add(Moto(ports, replica, gateway))
        containers = add(Containers(ports, replica, gateway))
        stores = add(Stores(ports, replica, moto, containers))
        requests_end = add(RequestsEnd(gateway, moto, stores))
        functions = add(Functions(ports, gateway, containers, requests_end))
        events = add(Events(ports, moto, functions, stores))
        jobs = add(JobsComponent(ports, gateway, containers, moto, stores, events, administration))
        add(Timers(events, jobs))
        add(Retention(ports, jobs, administration))
        add(Announcement(folder, ports, jobs))
        self._components.start()
        pages.open()
        self.settings: Settings = ports.settings
        self.chosen: ChosenRuntime = containers.chosen
        self.advertised_url = administration.advertised_url
        # What no first answer waited for.
        preloads = (preload_modules, jobs.sagemaker.preload, pages.preload)
        threading.Thread(target=lambda: [each() for each in preloads], name="preload", daemon=True).start()

    def close(self) -> None:
        """Stop every job, wait for its end, and release all resources. No container is left."""
        self._replica.end_if_cut_off()
        self._components.stop()
