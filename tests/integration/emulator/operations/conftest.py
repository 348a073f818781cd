"""Fixture of SageMaker over real HTTP: moto, and jobs that run as local processes."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from moto.moto_api._internal.models import moto_api_backend

from emulator.api.application import build_pages
from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.authentication import LOOPBACK_HOSTS
from emulator.gateway.gateway import Gateway, GatewayServices
from emulator.gateway.listener import Listener
from emulator.gateway.sagemaker import SageMaker
from emulator.moto_services.cloudwatch.sagemaker_metrics import count_missing_steps
from emulator.moto_services.sagemaker.descriptions import describing_like_sagemaker
from emulator.moto_services.sagemaker.experiments import keeping_experiments
from emulator.moto_services.sagemaker.lineage import tracking_lineage
from emulator.moto_services.sagemaker.model_registry import keeping_model_packages
from emulator.moto_services.sagemaker.pipeline_versions import keeping_versions
from emulator.moto_services.sagemaker.pipelines import keeping_definitions
from emulator.moto_services.sagemaker.stored_kinds import storing_more_kinds
from emulator.moto_services.sagemaker.tags import keeping_tags
from emulator.moto_services.wsgi import MotoApplication, has_sagemaker_operation, has_sagemaker_resource
from tests.boto3_client import make_client
from tests.integration.emulator.jobs.job_harness import ACCOUNT, REGION, JobHarness, open_job_harness
from tests.integration.emulator.operations.scored_image import write_scored_image

EXTENSIONS = (
    describing_like_sagemaker,
    keeping_experiments,
    keeping_definitions,
    keeping_versions,
    keeping_model_packages,
    storing_more_kinds,
    tracking_lineage,
    keeping_tags,
    count_missing_steps,
)


@dataclass(frozen=True, slots=True)
class Service:
    """The service's address, and the harness of the jobs behind it."""

    endpoint_url: str
    harness: JobHarness

    def client(self, service_name: str = "sagemaker") -> Any:
        return make_client(self.endpoint_url, service_name, REGION)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    moto_api_backend.reset()
    listener = Listener(LOOPBACK, 0)
    with ExitStack() as closers:
        for extension in EXTENSIONS:
            closers.enter_context(extension())
        folder = tmp_path_factory.mktemp("service")
        write_scored_image(folder / "images")
        harness = closers.enter_context(open_job_harness(folder, port=listener.port))
        services = GatewayServices(LOOPBACK_HOSTS, build_pages(dict), has_sagemaker_operation, lambda _: ACCOUNT)
        services.sagemaker.set_result(SageMaker(lambda _: harness.jobs, has_sagemaker_resource))
        services.moto.set_result(MotoApplication())
        listener.serve(Gateway(services))
        closers.callback(listener.close)
        yield Service(f"http://{LOOPBACK}:{listener.port}", harness)
