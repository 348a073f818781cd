"""Clients of an emulator under test."""

import os
from functools import lru_cache
from typing import Any

import boto3
from botocore.config import Config


def make_client(endpoint_url: str, service: str, region: str = "us-east-1", **config: Any) -> Any:
    """A boto3 client of whatever listens there; it tries again once.

    To make one takes longer than most requests: who asks for the same client again, as conditions that tests wait
    for do, gets the same one.
    """
    if config:
        return _make_client(endpoint_url, service, region, **config)
    # boto3 reads proxies, certificates and more of the environment when it makes a client.
    read = sorted(each for each in os.environ.items() if each[0].startswith("AWS_") or "PROXY" in each[0].upper())
    return _keep_client(endpoint_url, service, region, tuple(read))


@lru_cache(maxsize=32)
def _keep_client(endpoint_url: str, service: str, region: str, _read: tuple[tuple[str, str], ...]) -> Any:
    return _make_client(endpoint_url, service, region)


def _make_client(endpoint_url: str, service: str, region: str, **config: Any) -> Any:
    make: Any = boto3.client  # its types want a service's name to be a literal
    return make(
        service,
        endpoint_url=endpoint_url,
        region_name=region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"max_attempts": 1}, **config),
    )
