from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator.moto_services.s3 import ObjectStore
from emulator.moto_services.s3_backend import open_s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ACCOUNT = "123456789012"


@pytest.fixture(params=["memory", "durable"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    """S3 with one empty bucket, ``bucket``, in memory and in a folder."""
    durable = open_s3(tmp_path / "s3")
    if request.param == "memory":
        durable.close()
    store = ObjectStore(ACCOUNT, "us-east-1")
    store.create_bucket("bucket")
    yield store
    durable.close()
