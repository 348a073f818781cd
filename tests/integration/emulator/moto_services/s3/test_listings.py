"""Tests of S3 listings, compared with moto's own."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.core.responses import BaseResponse
from moto.s3.responses import S3Response

from emulator.moto_services.replacements import replaced
from emulator.moto_services.s3.index_rows import find_bucket
from emulator.moto_services.s3.listings import OrderedKeys
from tests.integration.emulator.moto_services.s3.stored_s3 import running

NAMES = ["a", "a/", "a/b", "a/b/c", "a/b/d", "a.b", "a/c", "aa", "b&<>\"'", "b/ü/\U0001f600", "z", "a/b/c d+e"]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("s3")) as client:
        yield client


def list_pages(s3: Any, **request: Any) -> list[dict[str, Any]]:
    pages = []
    while True:
        page = s3.list_objects_v2(**request)
        del page["ResponseMetadata"]
        pages.append(page)
        if not page["IsTruncated"]:
            return pages
        request["ContinuationToken"] = page["NextContinuationToken"]


@pytest.mark.slow
@pytest.mark.parametrize("requests", [3, pytest.param(40, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("versioning", [False, True])
def test_pages_are_those_that_moto_makes_of_all_keys(s3: Any, versioning: bool, requests: int) -> None:
    bucket = f"listed-{versioning}-{requests}".lower()
    s3.create_bucket(Bucket=bucket)
    if versioning:
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    generator = random.Random(7)
    for turn in range(4):
        # Each turn changes what the turn before listed.
        for name in generator.sample(NAMES, 8):
            s3.put_object(Bucket=bucket, Key=name, Body=name.encode() * turn, ChecksumAlgorithm="SHA256")
        for name in generator.sample(NAMES, 3):
            s3.delete_object(Bucket=bucket, Key=name)
        for _ in range(requests):
            request = {
                "Bucket": bucket,
                "Prefix": generator.choice(["", "a", "a/", "a/b", "b", "none"]),
                "Delimiter": generator.choice(["", "/", "b", "/b"]),
                "StartAfter": generator.choice(["", "a", "a/b/", "a/b/c", "y"]),
                "MaxKeys": generator.choice([0, 1, 2, 3, 1000]),
                "FetchOwner": generator.choice([True, False]),
            }
            found = list_pages(s3, **request)
            with (
                replaced(S3Response, serialized=BaseResponse.serialized),
                pytest.MonkeyPatch.context() as patch,
            ):
                patch.setattr("emulator.moto_services.s3.journalled_backend.choose_keys", lambda bucket, *_: bucket)
                expected = list_pages(s3, **request)
            assert found == expected, request
            assert request["MaxKeys"] == 0 or all(page["KeyCount"] <= request["MaxKeys"] for page in found)


def test_each_name_is_on_one_page_of_version_1(s3: Any) -> None:
    s3.create_bucket(Bucket="version-1")
    for name in NAMES:
        s3.put_object(Bucket="version-1", Key=name)
    for delimiter in ("", "/"):
        pages = list(
            s3.get_paginator("list_objects").paginate(
                Bucket="version-1", Delimiter=delimiter, PaginationConfig={"PageSize": 2}
            )
        )
        parts = [
            [each["Key"] for each in page.get("Contents", ())] + [p["Prefix"] for p in page.get("CommonPrefixes", ())]
            for page in pages
        ]
        assert all(len(part) == 2 for part in parts[:-1])
        cut = {name[: name.index("/") + 1] if delimiter and "/" in name else name for name in NAMES}
        assert [name for part in parts for name in sorted(part)] == sorted(cut)


def test_names_stay_in_order_whatever_becomes_of_the_keys() -> None:
    keys = OrderedKeys()
    keys["b"] = 1
    assert keys.names == ["b"]
    keys["a"] = 2
    keys["a"] = 3
    keys.setlist("c", [4])
    assert keys.names == ["a", "b", "c"]
    del keys["b"]
    keys.setlist("a", [5])
    assert keys.names == ["a", "c"]
    dict.__setitem__(keys, "d", [6])
    assert keys.names == ["a", "c", "d"]
    keys.clear()
    assert keys.names == []


def test_a_bucket_that_comes_back_is_listed(tmp_path: Path) -> None:
    for _ in range(2):
        with running(tmp_path) as s3:
            if not s3.list_buckets()["Buckets"]:
                s3.create_bucket(Bucket="kept")
                s3.put_object(Bucket="kept", Key="a/b", Body=b"1")
            (page,) = list_pages(s3, Bucket="kept")
            assert [each["Key"] for each in page["Contents"]] == ["a/b"]
            s3.put_object(Bucket="kept", Key="a/b", Body=b"2")
            assert isinstance(getattr(find_bucket("kept"), "keys", None), OrderedKeys)
