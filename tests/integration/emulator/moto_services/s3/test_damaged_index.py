"""Tests of S3's index: kill -9, damage, and other versions."""

import json
import logging
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError

from emulator.exceptions import StartupError
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.index_rows import find_bucket
from emulator.moto_services.s3.objects import ObjectStore
from tests.integration.emulator.moto_services.s3.stored_s3 import contents, running

ALLOW = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::kept/*"}


def send(s3: Any, method: str, path: str, body: bytes = b"") -> requests.Response:
    """A request that boto3 would not build."""
    credential = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
    url = f"{s3.meta.endpoint_url}/{path}"
    return requests.request(method, url, data=body, headers={"Authorization": credential}, timeout=400)


def change_index(folder: Path, statement: str, *values: object) -> None:
    index = sqlite3.connect(folder / "index.sqlite", isolation_level=None)
    assert index.execute(statement, values).rowcount == 1
    index.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from emulator.moto_services.s3.objects import ObjectStore
from emulator.moto_services.s3.backend import open_s3
kept = open_s3(Path(sys.argv[1]))
store = ObjectStore("123456789012", "us-east-1")
store.create_bucket("kept")
for number in range(100):
    store.put("kept", str(number), b"x" * number)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_everything_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=400)
    assert killed.returncode == -signal.SIGKILL
    with running(tmp_path):
        store = ObjectStore("123456789012", "us-east-1")
        assert sorted(each.size for each in store.list("kept", "")) == list(range(100))
        assert store.get("kept", "99") == b"x" * 99


def test_files_that_a_crash_left_are_removed(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.put_object(Bucket="kept", Key="k", Body=b"v")
    (tmp_path / "contents" / "ab").mkdir(exist_ok=True)
    (tmp_path / "contents" / "ab" / "half-an-object").write_bytes(b"x")
    with running(tmp_path) as s3:
        assert s3.get_object(Bucket="kept", Key="k")["Body"].read() == b"v"
    assert len(contents(tmp_path)) == 1


def test_an_index_of_another_version_is_refused(tmp_path: Path) -> None:
    with running(tmp_path):
        pass
    index = sqlite3.connect(tmp_path / "index.sqlite")
    index.execute("PRAGMA user_version = 99")
    index.close()
    with pytest.raises(StartupError, match=r"another version .* move its folder away"):
        open_s3(tmp_path)


def test_an_index_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_bytes(b"not a database, but long enough to be read as one" * 20)
    with pytest.raises(StartupError, match="move the folder away"):
        open_s3(tmp_path)


def test_what_cannot_be_kept_of_one_bucket_harms_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path) as s3:
        for bucket in ("kept", "other"):
            s3.create_bucket(Bucket=bucket)
        find_bucket("kept").replication = lambda: None
        s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
        s3.put_object(Bucket="other", Key="k", Body=b"other")
        s3.put_object(Bucket="kept", Key="k", Body=b"kept")
    said = [record.message for record in caplog.records if "cannot be kept" in record.message]
    assert len(said) == 1
    assert "the setting replication of the bucket kept" in said[0]
    with running(tmp_path) as s3:
        assert not hasattr(find_bucket("kept"), "replication")
        assert s3.get_bucket_versioning(Bucket="kept")["Status"] == "Enabled"
        for bucket in ("other", "kept"):
            assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == bucket.encode()


@pytest.mark.slow
def test_a_document_that_is_none_is_refused(tmp_path: Path) -> None:
    refusals = {"policy": "MalformedPolicy"} | dict.fromkeys(
        ("website", "versioning", "tagging", "logging"), "MalformedXML"
    )
    with running(tmp_path) as s3:
        for bucket in ("other", *refusals):
            s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key="k", Body=b"v")
        for what, code in refusals.items():
            for body in (b"\xff", b"no document"):
                answer = send(s3, "PUT", f"{what}?{what}", body)
                assert (answer.status_code, f"<Code>{code}</Code>" in answer.text) == (400, True), what
        s3.put_object(Bucket="other", Key="k", Body=b"later")
    with running(tmp_path) as s3:
        for bucket in refusals:
            assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"
        assert s3.get_object(Bucket="other", Key="k")["Body"].read() == b"later"


def test_damaged_settings_harm_their_bucket_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    damages = ("no JSON", '{"policy": "no JSON"}', '{"policy": 5}', b"\xff", "[]")
    damaged = {f"damaged-{number}": damage for number, damage in enumerate(damages)}
    with running(tmp_path) as s3:
        for bucket in ("other", *damaged):
            s3.create_bucket(Bucket=bucket)
            s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Statement": [ALLOW]}))
            s3.put_object(Bucket=bucket, Key="k", Body=bucket.encode())
    for bucket, damage in damaged.items():
        change_index(tmp_path, "UPDATE buckets SET settings = CAST(? AS TEXT) WHERE name = ?", damage, bucket)
    with running(tmp_path) as s3:
        for bucket in ("other", *damaged):
            assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == bucket.encode()
        assert json.loads(s3.get_bucket_policy(Bucket="other")["Policy"]) == {"Statement": [ALLOW]}
        for bucket in damaged:
            with pytest.raises(ClientError, match="NoSuchBucketPolicy"):
                s3.get_bucket_policy(Bucket=bucket)
    for bucket, damage in damaged.items():
        said = [record for record in caplog.records if f"the bucket '{bucket}' cannot be restored" in record.message]
        assert said or damage == "[]", bucket


def test_damaged_records_are_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path) as s3:
        for bucket in ("kept", "nowhere", "tagged"):
            s3.create_bucket(Bucket=bucket)
            for key in ("a", "b"):
                s3.put_object(Bucket=bucket, Key=key, Body=b"v")
    change_index(tmp_path, "UPDATE objects SET attributes = '' WHERE bucket = 'kept' AND key = 'a'")
    change_index(tmp_path, "UPDATE buckets SET name = 'x' WHERE name = 'nowhere'")
    change_index(tmp_path, "UPDATE buckets SET tags = '{', created = 'long ago' WHERE name = 'tagged'")
    with running(tmp_path) as s3:
        assert [each["Key"] for each in s3.list_objects_v2(Bucket="kept")["Contents"]] == ["b"]
        assert [each["Key"] for each in s3.list_objects_v2(Bucket="tagged")["Contents"]] == ["a", "b"]
    said = "\n".join(record.message for record in caplog.records if record.levelno >= logging.WARNING)
    assert "The object 'a' of the bucket 'kept' cannot be restored" in said
    assert "The bucket 'x' cannot be restored" in said
    assert "2 objects are left out, because their bucket 'nowhere' is not there" in said
    assert "The creation date of the bucket 'tagged' cannot be restored" in said


def test_an_index_that_cannot_be_read_is_refused_and_moto_left_alone(tmp_path: Path) -> None:
    from moto.s3.models import S3Backend, s3_backends

    with running(tmp_path):
        pass
    index = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    index.execute("DROP TABLE buckets")
    index.execute("CREATE VIEW buckets AS SELECT * FROM gone")
    index.close()
    with pytest.raises(StartupError, match="move the folder away"):
        open_s3(tmp_path)
    assert s3_backends.backend is S3Backend
