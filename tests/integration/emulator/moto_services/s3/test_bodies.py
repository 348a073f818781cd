"""Tests of S3 request bodies over HTTP: streamed, checked, removed if refused."""

import base64
import hashlib
import http.client
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError, ResponseStreamingError

from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.content import BLOCK_BYTES
from emulator.moto_services.wsgi import MotoApplication
from emulator.state.disk import DiskBudget
from tests.boto3_client import make_client

MIB = 1024**2
LARGE = os.urandom(3 * MIB + 17)
SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"


@contextmanager
def running(folder: Path, reserve: int = 0) -> Iterator[Any]:
    """S3 on ``folder``, on a disk of which ``reserve`` bytes stay free; a client of it."""
    disk = DiskBudget(folder, reserve)
    durable = open_s3(folder / "s3", disk)
    listener = Listener(LOOPBACK, 0, disk)
    listener.serve(MotoApplication())
    try:
        yield make_client(f"http://127.0.0.1:{listener.port}", "s3")
    finally:
        listener.close()
        durable.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s3")


@pytest.fixture(scope="module")
def s3(folder: Path) -> Iterator[Any]:
    with running(folder) as client:
        client.create_bucket(Bucket="bodies")
        yield client


def list_files(folder: Path) -> set[Path]:
    return {path for path in (folder / "s3" / "contents").rglob("*") if path.is_file()}


def find_file(folder: Path, data: bytes) -> Path:
    (found,) = [path for path in list_files(folder) if path.read_bytes() == data]
    return found


def put(s3: Any, key: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    """A request with headers that boto3 would not send."""
    host, port = s3.meta.endpoint_url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=400)
    try:
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request("PUT", f"/bodies/{key}", body, {"Authorization": SIGNED, **names})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def chunk(data: bytes, *, signature: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(data), signature, data)


@pytest.mark.parametrize("size", [0, 1, MIB, len(LARGE)])
def test_an_object_goes_in_and_out(s3: Any, size: int) -> None:
    s3.put_object(Bucket="bodies", Key="o", Body=LARGE[:size])
    answer = s3.get_object(Bucket="bodies", Key="o")
    assert answer["ContentLength"] == size
    assert answer["Body"].read() == LARGE[:size]
    assert answer["ETag"] == f'"{hashlib.md5(LARGE[:size], usedforsecurity=False).hexdigest()}"'


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        (f"bytes={BLOCK_BYTES - 1}-{BLOCK_BYTES}", BLOCK_BYTES - 1, BLOCK_BYTES + 1),
        (f"bytes=100-{2 * MIB}", 100, 2 * MIB + 1),
        ("bytes=-5", len(LARGE) - 5, len(LARGE)),
        (f"bytes=5-{10 * MIB}", 5, len(LARGE)),
    ],
)
def test_ranges_are_ranges(s3: Any, asked: str, start: int, stop: int) -> None:
    s3.put_object(Bucket="bodies", Key="ranged", Body=LARGE)
    answer = s3.get_object(Bucket="bodies", Key="ranged", Range=asked)
    assert answer["ContentRange"] == f"bytes {start}-{stop - 1}/{len(LARGE)}"
    assert answer["Body"].read() == LARGE[start:stop]


@pytest.mark.slow
def test_a_client_that_reads_on_gets_what_was_there_when_it_began(s3: Any) -> None:
    data = LARGE * 20
    s3.put_object(Bucket="bodies", Key="replaced", Body=data)
    body = s3.get_object(Bucket="bodies", Key="replaced")["Body"]
    beginning = body.read(10)
    s3.delete_object(Bucket="bodies", Key="replaced")
    assert beginning + body.read() == data


def test_copies_and_parts_go_from_file_to_file(s3: Any, folder: Path) -> None:
    s3.put_object(Bucket="bodies", Key="from", Body=LARGE)
    s3.copy_object(Bucket="bodies", Key="to", CopySource="bodies/from")
    s3.delete_object(Bucket="bodies", Key="from")
    assert s3.get_object(Bucket="bodies", Key="to")["Body"].read() == LARGE
    config = TransferConfig(multipart_threshold=MIB, multipart_chunksize=5 * MIB)
    data = LARGE * 4
    (folder / "f").write_bytes(data)
    s3.upload_file(str(folder / "f"), "bodies", "parts", Config=config)
    assert s3.head_object(Bucket="bodies", Key="parts")["ETag"].endswith('-3"')
    s3.copy({"Bucket": "bodies", "Key": "parts"}, "bodies", "copied", Config=config)
    s3.copy_object(Bucket="bodies", Key="whole", CopySource="bodies/parts")
    for key in ("parts", "copied", "whole"):
        assert s3.get_object(Bucket="bodies", Key=key)["Body"].read() == data
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    assert s3.head_object(Bucket="bodies", Key="whole")["ETag"] == f'"{md5}"'


@pytest.mark.parametrize("signature", [b"", b";chunk-signature=00"])
def test_bodies_in_chunks_are_put_together(s3: Any, signature: bytes) -> None:
    crc = base64.b64encode(zlib.crc32(LARGE).to_bytes(4, "big"))
    pieces = [LARGE[:1000], LARGE[1000:MIB], LARGE[MIB:]]
    body = b"".join(chunk(piece, signature=signature) for piece in pieces)
    body += b"0%s\r\nx-amz-checksum-crc32:%s\r\n\r\n" % (signature, crc)
    kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" if signature else "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    headers = {"x_amz_content_sha256": kind, "x_amz_trailer": "x-amz-checksum-crc32", "Content_Encoding": "aws-chunked"}
    status, text = put(s3, "chunked", body, **headers, x_amz_decoded_content_length=str(len(LARGE)))
    assert (status, text) == (200, b"")
    answer = s3.get_object(Bucket="bodies", Key="chunked", ChecksumMode="ENABLED")
    assert answer["Body"].read() == LARGE
    assert answer["ChecksumCRC32"] == crc.decode()


CHUNKED = {"x_amz_content_sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x_amz_trailer": "x-amz-checksum-crc32"}


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (b"data", {"Content_MD5": base64.b64encode(bytes(16)).decode()}, b"BadDigest"),
        (b"data", {"Content_MD5": "no md5"}, b"InvalidDigest"),
        (b"data", {"x_amz_checksum_crc32": "AAAAAA=="}, b"BadDigest"),
        (b"data", {"x_amz_checksum_sha256": "AAAAAA=="}, b"BadDigest"),
        (b"4\r\ndata\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", CHUNKED, b"BadDigest"),
        (b"4\r\ndata\r\n0\r\n\r\n", {**CHUNKED, "x_amz_decoded_content_length": "5"}, b"IncompleteBody"),
        (b"9\r\ndata\r\n0\r\n\r\n", CHUNKED, b"IncompleteBody"),
        (b"no chunk", CHUNKED, b"IncompleteBody"),
        (b"", CHUNKED, b"IncompleteBody"),
        (b"data", {"If_None_Match": "*"}, b"PreconditionFailed"),
        (b"data", {"x_amz_storage_class": "CELLAR"}, b"InvalidStorageClass"),
    ],
)
def test_what_is_refused_leaves_nothing(
    s3: Any, folder: Path, body: bytes, headers: dict[str, str], code: bytes
) -> None:
    s3.put_object(Bucket="bodies", Key="refused", Body=b"before")
    files = list_files(folder)
    status, text = put(s3, "refused", body, **headers)
    assert (status // 100, b"<Code>%s</Code>" % code in text) == (4, True), text
    assert s3.get_object(Bucket="bodies", Key="refused")["Body"].read() == b"before"
    assert list_files(folder) == files
    status, _ = put(s3, "refused/../../x", body, **headers)
    assert list_files(folder) >= files


def test_an_object_for_no_bucket_leaves_nothing(s3: Any, folder: Path) -> None:
    files = list_files(folder)
    with pytest.raises(ClientError, match="NoSuchBucket"):
        s3.put_object(Bucket="not-there", Key="k", Body=LARGE)
    assert list_files(folder) == files


def test_damage_is_reported_and_the_rest_continues(s3: Any, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    small, large = os.urandom(1000), os.urandom(3 * MIB)
    for key, data in (("small", small), ("large", large), ("fine", b"fine")):
        s3.put_object(Bucket="bodies", Key=key, Body=data)
    find_file(folder, small).write_bytes(small[:-1] + b"x" if small[-1:] != b"x" else small[:-1] + b"y")
    path = find_file(folder, large)
    path.write_bytes(large[: 2 * MIB] + bytes(MIB))
    with pytest.raises(ClientError, match=r"s3://bodies/small is damaged: .* Run smdebug-emulator check"):
        s3.get_object(Bucket="bodies", Key="small")
    # Its first blocks are what was written; the answer ends where the others begin.
    with pytest.raises(ResponseStreamingError):
        s3.get_object(Bucket="bodies", Key="large")["Body"].read()
    assert s3.get_object(Bucket="bodies", Key="large", Range=f"bytes=0-{MIB}")["Body"].read() == large[: MIB + 1]
    path.unlink()
    with pytest.raises(ClientError, match=r"s3://bodies/large is damaged: .* is missing"):
        s3.get_object(Bucket="bodies", Key="large")
    assert s3.get_object(Bucket="bodies", Key="fine")["Body"].read() == b"fine"
    said = {record.message for record in caplog.records if record.name.endswith("s3.content")}
    assert {text.partition(" is damaged")[0] for text in said} == {"s3://bodies/small", "s3://bodies/large"}
    # Whoever puts it again has mended it.
    s3.put_object(Bucket="bodies", Key="large", Body=large)
    assert s3.get_object(Bucket="bodies", Key="large")["Body"].read() == large


def test_checksums_survive_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.put_object(Bucket="kept", Key="k", Body=b"data")
        upload = s3.create_multipart_upload(Bucket="kept", Key="parts")["UploadId"]
        part = s3.upload_part(Bucket="kept", Key="parts", UploadId=upload, PartNumber=1, Body=b"part")["ETag"]
    assert part.count('"') == 2
    for data in (b"data", b"part"):
        find_file(tmp_path, data).write_bytes(b"x" + data[1:])
    with running(tmp_path) as s3:
        with pytest.raises(ClientError, match="s3://kept/k is damaged"):
            s3.get_object(Bucket="kept", Key="k")
        with pytest.raises(ClientError, match="/part 1 is damaged"):
            s3.complete_multipart_upload(
                Bucket="kept",
                Key="parts",
                UploadId=upload,
                MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part}]},
            )


def test_a_full_disk_refuses_puts_and_lets_everything_else_be(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="bodies")
        s3.put_object(Bucket="bodies", Key="before", Body=b"before")
    files = list_files(tmp_path)
    with running(tmp_path, reserve=1024**5) as s3:
        for body in (b"small", LARGE):
            with pytest.raises(ClientError) as caught:
                s3.put_object(Bucket="bodies", Key="k", Body=body)
            assert caught.value.response["Error"]["Code"] == "InsufficientStorage"
            assert "are to stay free (--disk-reserve)" in caught.value.response["Error"]["Message"]
            assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 507
            assert caught.value.response["ResponseMetadata"]["RetryAttempts"] == 0
        assert list_files(tmp_path) == files
        assert s3.get_object(Bucket="bodies", Key="before")["Body"].read() == b"before"
        s3.delete_object(Bucket="bodies", Key="before")
        assert "Contents" not in s3.list_objects_v2(Bucket="bodies")
