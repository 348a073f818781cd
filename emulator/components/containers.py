"""Components that run code: the container back end, and Lambda functions on it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from emulator.components.component import Component
from emulator.components.fenced_runtime import FencedRuntime
from emulator.exceptions import StartupError
from emulator.gateway.authentication import ACCOUNT_HEADER, read_region
from emulator.settings import format_url
from emulator.state.folder import WORK_FOLDERS

if TYPE_CHECKING:
    from container_runtime.back_ends import ChosenRuntime
    from container_runtime.runtime import ContainerRuntime
    from emulator.components.gateway import GatewayComponent, RequestsEnd
    from emulator.components.ports import Ports, ReplicaComponent
    from emulator.lambda_functions.invoker import FunctionInvoker
    from emulator.settings import Settings


class Containers(Component):
    """The container back end, with network access to the emulator.

    Attributes:
        chosen: the back end, and why it was chosen.
        endpoint_url: the emulator's URL for containers.
    """

    chosen: ChosenRuntime
    endpoint_url: str

    def __init__(self, ports: Ports, replica: ReplicaComponent, gateway: GatewayComponent) -> None:
        super().__init__(ports, replica, gateway)
        self._ports = ports
        self._replica = replica
        self._gateway = gateway

    def start(self) -> None:
        """Open the back end that the settings select, and let it import the frameworks of the images that they name."""
        from container_runtime.runtime import ContainerRuntimeError

        try:
            self._open(self._ports.settings)
        except ContainerRuntimeError as error:
            raise StartupError(str(error)) from error

    def _open(self, settings: Settings) -> None:
        with ThreadPoolExecutor(1, "back-end") as opener:
            opened = opener.submit(choose_runtime, settings, restored=self._replica.restored)
            _import_jobs()
            self.chosen = opened.result()
        if self._replica.replica is not None:
            fenced = FencedRuntime(self.chosen.runtime, self._replica.replica.fence.wait)
            self.chosen = replace(self.chosen, runtime=cast("ContainerRuntime", fenced))
        runtime = self.chosen.runtime
        self.closers.callback(runtime.close)
        # Containers on a Docker bridge reach this machine at the bridge's address.
        self._gateway.add_address(runtime.host_address)
        runtime.offer(settings.port, self._ports.listeners[0].take)
        from emulator.jobs.runs.attempt import build_typical_spec  # imported above, while the back end was opened

        for image in () if settings.no_warm else settings.warm:
            runtime.keep_ready(build_typical_spec(image, settings))
        self.endpoint_url = format_url(settings.scheme, runtime.host_address, settings.port)


class Functions(Component):
    """Lambda functions.

    Attributes:
        invoker: runs them.
    """

    invoker: FunctionInvoker

    def __init__(
        self, ports: Ports, gateway: GatewayComponent, containers: Containers, requests_end: RequestsEnd
    ) -> None:
        super().__init__(ports, gateway, containers, requests_end)
        self._ports = ports
        self._gateway = gateway
        self._containers = containers

    def start(self) -> None:
        """Start to accept Lambda invocations from the gateway."""
        from emulator.lambda_functions.invoke_api import InvokeApplication
        from emulator.lambda_functions.invoker import FunctionInvoker
        from emulator.lambda_functions.worker import WorkerSettings

        settings = self._ports.settings
        workers = WorkerSettings(
            self._containers.chosen.runtime,
            self._containers.endpoint_url,
            settings.state_dir / "lambda",
            settings.container_credentials,
            settings.pythons,
            settings.issue_credentials,
            settings.ca_bundle,
        )
        self.invoker = FunctionInvoker(workers)
        self.closers.callback(self.invoker.close)
        find_region = partial(read_region, default=settings.region)
        application = InvokeApplication(self.invoker, itemgetter(ACCOUNT_HEADER), find_region)
        self._gateway.services.invoke.set_result(application)


def choose_runtime(settings: Settings, *, restored: bool = False) -> ChosenRuntime:
    """Open the container back end that the settings select.

    Args:
        settings: the settings.
        restored: whether the state comes from a replica, which does not contain the folders of jobs.

    Raises:
        ContainerRuntimeError: Docker was selected and does not answer or lacks an image, or the back end cannot be
            opened.
    """
    from container_runtime.back_ends import RuntimeOptions
    from container_runtime.images.own_images import read_own_images
    from container_runtime.selection import select_runtime

    options = RuntimeOptions(
        state_dir=settings.state_dir,
        user=settings.container_user,
        strict_versions=settings.strict_versions,
        allow_internet=settings.allow_internet,
        address=settings.advertise,
        registry=settings.registry,
        shared_folder=settings.shared_folder,
        lost=settings.state_dir / WORK_FOLDERS if restored else None,
        warm=None if settings.no_warm else settings.warm,
        warm_memory_bytes=settings.warm_memory,
        own_images=read_own_images(settings.own_images),
        adds_smdebug=not settings.no_smdebug,
    )
    return select_runtime(settings.runtime, options)


def _import_jobs() -> None:
    """Import what the next components import, while the engine, or the kernel, answers the back end."""
    import emulator.events.publisher
    import emulator.jobs.accounts
    import emulator.lambda_functions.invoker  # noqa: F401
