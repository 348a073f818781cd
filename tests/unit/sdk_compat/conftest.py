"""moto behind waitress on a free port: enough of AWS to see where clients send their requests."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from waitress.server import create_server

from emulator.moto_services.wsgi import build_moto_application

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    server = create_server(build_moto_application(), host="127.0.0.1", port=0, threads=8)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}"
    server.close()
    thread.join(1)
