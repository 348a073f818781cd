"""The two servers of this suite, and marks of known departures from AWS."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from container_runtime.process.loopback_network import draw_port
from tests.boto3_client import make_client
from tests.waiting import wait_until

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/service"

EMULATOR = "emulator"
MOTO_SERVER = "moto_server"
PAGE = "a page for people"


@dataclass(frozen=True)
class Departure:
    """What one server answers where AWS documents something else."""

    server: str
    instead: object
    source: str  # the title of the page of AWS's documentation that decides


@dataclass(frozen=True)
class Server:
    name: str
    endpoint_url: str
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """The client of a service, one for all tests: making one takes longer than most tests."""
        if service not in self._clients:
            self._clients[service] = make_client(self.endpoint_url, service)
        return self._clients[service]

    def expect(self, found: object, documented: object, *departures: Departure) -> None:
        """Hold what was found to what AWS documents, or to what this server is known to answer instead."""
        for departure in departures:
            if departure.server == self.name:
                assert departure.instead != documented
                assert found == departure.instead, f"{self.name} no longer departs so from {departure.source!r}"
                return
        assert found == documented


def read_error(call: Callable[..., object], **arguments: Any) -> str | None:
    """Read the code of the error that a call ends in; None if it is answered, PAGE if the error is not AWS's."""
    try:
        call(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    except ResponseParserError:
        return PAGE
    return None


@contextmanager
def run_moto_server() -> Iterator[str]:
    """Start moto_server as its users do, and hand out where it listens."""
    port = draw_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MOTO_"))}
    program = Path(sys.executable).with_name("moto_server")
    process = subprocess.Popen(
        [program, "--port", str(port)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def listens() -> bool:
        assert process.poll() is None, f"moto_server ended with {process.returncode}"
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(listens, "moto_server")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
