"""Fixtures of job tests: an S3 of this process, and a bucket in it."""

import uuid

import pytest

from emulator.moto_services.s3.objects import ObjectStore


@pytest.fixture
def s3() -> ObjectStore:
    return ObjectStore("123456789012", "us-east-1")


@pytest.fixture
def bucket(s3: ObjectStore) -> str:
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(name)
    return name
