"""moto behind a listener on a free port: enough of AWS to see where clients send their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator.gateway.listener import LOOPBACK, Listener
from emulator.moto_services.wsgi import MotoApplication

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    listener = Listener(LOOPBACK, 0)
    listener.serve(MotoApplication())
    yield f"http://{LOOPBACK}:{listener.port}"
    listener.close()
