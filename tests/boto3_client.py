"""Clients of an emulator under test."""

from typing import Any

import boto3
from botocore.config import Config


def make_client(endpoint_url: str, service: str, region: str = "us-east-1", **config: Any) -> Any:
    """A boto3 client of whatever listens there; it tries again once."""
    make: Any = boto3.client  # its types want a service's name to be a literal
    return make(
        service,
        endpoint_url=endpoint_url,
        region_name=region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"max_attempts": 1}, **config),
    )
