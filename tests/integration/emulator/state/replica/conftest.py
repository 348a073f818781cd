"""Fixture of another S3, in which each test has its own prefix."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from emulator.state.replica.bucket import Bucket
from tests.other_s3 import BUCKET, VARIABLES, OtherS3, run_other_s3

_numbers = itertools.count()


@pytest.fixture(scope="module")
def other_s3() -> Iterator[OtherS3]:
    with run_other_s3() as other:
        yield other


@pytest.fixture
def prefix() -> str:
    return f"test-{next(_numbers)}"


@pytest.fixture
def open_bucket(other_s3: OtherS3, prefix: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Bucket]:
    """Open the test's bucket, as each process that uses it does."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return lambda: Bucket(other_s3.endpoint_url, f"{BUCKET}/{prefix}")


@pytest.fixture
def bucket(open_bucket: Callable[[], Bucket]) -> Bucket:
    return open_bucket()
