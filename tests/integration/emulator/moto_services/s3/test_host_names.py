"""Tests of the bucket that a host name or a path names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.emulator.moto_services.s3.stored_s3 import running


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("s3")
    with running(folder) as client:
        for bucket in ("mine", "victim"):
            client.create_bucket(Bucket=bucket)
            for key in ("k", "mine/k"):
                client.put_object(Bucket=bucket, Key=key, Body=f"{bucket} {key}".encode())
        yield client


def get(s3: Any, host: str, bucket: str, key: str) -> bytes:
    """Get an object whose path has the bucket, as all clients with an endpoint ask for it."""

    def name_host(request: Any, **_: Any) -> None:
        request.headers["Host"] = host

    s3.meta.events.register("before-sign.s3", name_host)
    try:
        content: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    finally:
        s3.meta.events.unregister("before-sign.s3", name_host)
    return content


@pytest.mark.parametrize(
    "host", ["localhost:4580", "lab.example.com:4580", "S3.localhost", "127.0.0.1", "a-b.svc.cluster.local"]
)
def test_the_path_names_the_bucket(s3: Any, host: str) -> None:
    assert get(s3, host, "mine", "k") == b"mine k"


@pytest.mark.parametrize(
    "host", ["victim.localhost:4580", "victim.LOCALHOST", "victim.localhost.", "victim.s3.localhost"]
)
def test_a_name_below_localhost_is_a_bucket(s3: Any, host: str) -> None:
    assert get(s3, host, "mine", "k") == b"victim mine/k"


def test_the_first_part_of_a_bucket_s_name_counts(s3: Any) -> None:
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchBucket"):
        get(s3, "www.victim.localhost", "mine", "k")
