"""In-process gateway with real jobs and moto, for thousands of requests.

The requests need no connection.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from werkzeug.test import Client, TestResponse

from emulator.api.application import build_pages
from emulator.gateway.authentication import LOOPBACK_HOSTS
from emulator.gateway.gateway import Gateway, GatewayServices
from emulator.gateway.sagemaker import SageMaker
from emulator.moto_services.wsgi import MotoApplication, has_sagemaker_operation, has_sagemaker_resource
from tests.integration.emulator.jobs.job_harness import ACCOUNT, JobHarness, open_job_harness

_SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=key/20250101/us-east-1/sagemaker/aws4_request, SignedHeaders=host, Signature=0"
)


@dataclass(frozen=True, slots=True)
class JobGateway:
    """The gateway, and the harness of the jobs behind it."""

    client: Client
    harness: JobHarness

    def send(self, operation: str, body: bytes) -> TestResponse:
        headers = {"X-Amz-Target": f"SageMaker.{operation}", "Authorization": _SIGNATURE, "Host": "127.0.0.1"}
        return self.client.post("/", data=body, headers=headers, content_type="application/x-amz-json-1.1")

    def ask(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and content of the answer."""
        answer = self.send(operation, json.dumps(request).encode())
        return answer.status_code, json.loads(answer.data or b"{}")


@contextmanager
def open_job_gateway(folder: Path) -> Iterator[JobGateway]:
    """Open it; its one image is ``tiny:1``, so that jobs of any other fail at their start."""
    with open_job_harness(folder) as harness:
        services = GatewayServices(LOOPBACK_HOSTS, build_pages(dict), has_sagemaker_operation, lambda _: ACCOUNT)
        services.sagemaker.set_result(SageMaker(lambda _: harness.jobs, has_sagemaker_resource))
        services.moto.set_result(MotoApplication())
        yield JobGateway(Client(Gateway(services)), harness)
