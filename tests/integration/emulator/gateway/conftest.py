"""Fixture of a gateway over real HTTP: waitress on a free port, and moto."""

from collections.abc import Iterable, Iterator
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from emulator.api.application import build_pages
from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.authentication import LOOPBACK_HOSTS
from emulator.gateway.gateway import Gateway as GatewayApplication
from emulator.gateway.gateway import GatewayServices
from emulator.gateway.listener import Listener
from emulator.gateway.sagemaker import SageMaker
from emulator.moto_services.sagemaker.tags import keeping_tags
from emulator.moto_services.wsgi import MotoApplication, has_sagemaker_operation, has_sagemaker_resource
from tests.integration.emulator.gateway.job_gateway import JobGateway, open_job_gateway
from tests.integration.emulator.gateway.listening_gateway import ACCOUNT, Gateway, MemoryJobs


@pytest.fixture(scope="module")
def gateway(fresh_moto: None) -> Iterator[Gateway]:
    listener = Listener(LOOPBACK, 0)
    jobs: Any = MemoryJobs()
    running = Gateway(listener.port, jobs)

    def invoke(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        running.invoked.append(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Length", "2")])
        return [b"{}"]

    services = GatewayServices(
        LOOPBACK_HOSTS, build_pages(lambda: {"status": "running"}), has_sagemaker_operation, lambda _: ACCOUNT
    )
    services.sagemaker.set_result(SageMaker(lambda _: jobs, has_sagemaker_resource))
    services.invoke.set_result(invoke)
    services.moto.set_result(MotoApplication())
    listener.serve(GatewayApplication(services))
    with keeping_tags():
        yield running
    listener.close()


@pytest.fixture(scope="module")
def job_gateway(fresh_moto: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobGateway]:
    with open_job_gateway(tmp_path_factory.mktemp("job_gateway")) as opened:
        yield opened


@pytest.fixture
def sagemaker(gateway: Gateway) -> Any:
    gateway.jobs.__init__()  # type: ignore[misc]  # empty again
    return gateway.client("sagemaker")
