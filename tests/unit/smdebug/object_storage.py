"""In-process S3 that counts requests by kind: moto's server on a free port."""

import urllib.request
from collections import Counter
from collections.abc import Iterator
from threading import Lock
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from smdebug.storage import output, s3

BUCKET = "runs"


class Storage:
    """A bucket, and the requests made by clients from `smdebug.storage.s3`."""

    def __init__(self, endpoint_url: str) -> None:
        self.endpoint_url = endpoint_url
        self.client: Any = boto3.client("s3")
        self.requests: Counter[str] = Counter()
        self._counting = Lock()
        self.client.create_bucket(Bucket=BUCKET)

    def put(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=BUCKET, Key=key)

    def count(self, model: Any, **_: Any) -> None:
        with self._counting:
            self.requests[model.name] += 1


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def storage(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    # The writing side keeps its client: one of another test would write to another endpoint.
    output._get_s3_client.cache_clear()
    output._get_outage.cache_clear()
    made = Storage(moto_endpoint)
    build = s3.build_s3_client

    def build_counted(**options: Any) -> Any:
        client = build(**options)
        client.meta.events.register("before-call.s3", made.count)
        return client

    monkeypatch.setattr(s3, "build_s3_client", build_counted)
    yield made
    output._get_s3_client.cache_clear()
    output._get_outage.cache_clear()
    reset = urllib.request.Request(f"{moto_endpoint}/moto-api/reset", method="POST")
    urllib.request.urlopen(reset).close()
