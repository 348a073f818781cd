"""S3 whose objects and settings are stored in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emulator.moto_services.s3.backend import open_s3
from tests.boto3_client import make_client
from tests.integration.emulator.shared_listener import build_moto_application, serving


@contextmanager
def running(folder: Path) -> Iterator[Any]:
    """S3 on ``folder``; a client of it."""
    durable = open_s3(folder)
    try:
        with serving(build_moto_application()) as endpoint_url:
            yield make_client(endpoint_url, "s3")
    finally:
        durable.close()


def contents(folder: Path) -> list[Path]:
    return [path for path in (folder / "contents").rglob("*") if path.is_file()]
