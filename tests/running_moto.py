"""moto behind its own listener, as in the emulator."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.moto_services.wsgi import MotoApplication
from tests.boto3_client import make_client


@dataclass(frozen=True)
class RunningMoto:
    port: int

    def client(self, service: str) -> Any:
        return make_client(f"http://{LOOPBACK}:{self.port}", service)


@contextmanager
def run_moto() -> Iterator[RunningMoto]:
    listener = Listener(LOOPBACK, 0)
    listener.serve(MotoApplication())
    try:
        yield RunningMoto(listener.port)
    finally:
        listener.close()
