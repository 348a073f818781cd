"""Fixture of a small emulator: moto and Lambda's Invoke behind a listener.

Lambda workers are local processes.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.moto_api._internal.models import moto_api_backend

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.warm_interpreters import WarmOptions
from emulator.events.publisher import Publisher
from emulator.gateway.authentication import read_region
from emulator.lambda_functions.invoke_api import INVOKE_PATH, InvokeApplication
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.lambda_functions.worker import WorkerSettings
from tests.integration.emulator.shared_listener import build_moto_application, serving
from tests.integration.emulator.small_emulator import ACCOUNT, CREDENTIALS, Emulator, StopCalls


@pytest.fixture(scope="session")
def moto_application() -> Any:
    return build_moto_application()


@pytest.fixture
def warm_options() -> WarmOptions | None:
    """How the emulator's local processes are kept warm; a test module may have its own."""
    return None


@pytest.fixture
def emulator(tmp_path: Path, moto_application: Any, warm_options: WarmOptions | None) -> Iterator[Emulator]:
    moto_api_backend.reset()
    stops = StopCalls()
    routes: dict[str, Any] = {}

    def application(environ: Any, start_response: Any) -> Any:
        if INVOKE_PATH.fullmatch(environ["PATH_INFO"]):
            return routes["invoke"](environ, start_response)
        if environ.get("HTTP_X_AMZ_TARGET") == "SageMaker.StopTrainingJob":
            body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            stops.add(body["TrainingJobName"])
            if stops.error is not None:
                code, message = stops.error
                start_response("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1")])
                return [json.dumps({"__type": code, "message": message}).encode()]
            start_response("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
            return [b"{}"]
        return moto_application(environ, start_response)

    with serving(application) as endpoint_url:
        emulator = Emulator(endpoint_url, stops)
        emulator.containers = LocalProcesses(tmp_path / "containers", warm=warm_options)
        workers = WorkerSettings(emulator.containers, emulator.endpoint_url, tmp_path / "lambda", CREDENTIALS)
        emulator.invoker = FunctionInvoker(workers, idle_seconds=60.0)
        emulator.publisher = Publisher(
            emulator.invoker,
            record=lambda outcome: emulator.note(outcome),
            start_pipeline=lambda target, event: emulator.start_pipeline(target, event),
            replacing_in=lambda _service, replace: replace(),
            retry_seconds=0.02,
        )
        routes["invoke"] = InvokeApplication(emulator.invoker, lambda _: ACCOUNT, read_region)
        yield emulator
        emulator.publisher.close()
        emulator.invoker.close()
        assert emulator.containers.find({}) == []
        assert not (tmp_path / "lambda").exists()
        emulator.containers.close()
