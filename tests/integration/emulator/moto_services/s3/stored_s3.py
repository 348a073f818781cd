"""S3 whose objects and settings are stored in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.wsgi import MotoApplication
from tests.boto3_client import make_client


@contextmanager
def running(folder: Path) -> Iterator[Any]:
    """S3 on ``folder``; a client of it."""
    durable = open_s3(folder)
    listener = Listener(LOOPBACK, 0)
    listener.serve(MotoApplication())
    try:
        yield make_client(f"http://127.0.0.1:{listener.port}", "s3")
    finally:
        listener.close()
        durable.close()


def contents(folder: Path) -> list[Path]:
    return [path for path in (folder / "contents").rglob("*") if path.is_file()]
