"""Tests of requests to another S3, and of their error messages."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from emulator.exceptions import StartupError
from emulator.state.replica.bucket import Bucket, BucketError
from tests.integration.emulator.state.replica.test_replica import kept
from tests.other_s3 import BUCKET, VARIABLES, OtherS3, run_other_s3


@contextmanager
def serving(status: int, body: bytes) -> Iterator[str]:
    """A server that has one answer."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def no_s3() -> Iterator[str]:
    """Something else that speaks HTTP."""
    with serving(200, b"<html>no S3</html") as endpoint_url:
        yield endpoint_url


def test_objects_are_written_once_or_where_they_are_what_was_read(bucket: Bucket) -> None:
    first = bucket.create("a", b"1")
    assert first is not None
    assert bucket.create("a", b"2") is None
    assert bucket.create("a", b"1") == first, "a request that is sent again finds what it has written"
    second = bucket.replace("a", b"3", first)
    assert second is not None
    assert bucket.replace("a", b"4", first) is None
    assert bucket.replace("b", b"4", first) is None
    found = bucket.find("a")
    assert found is not None
    assert (found.content, found.etag) == (b"3", second)
    assert abs(found.age) < 3600, "by the clock of its S3, which is this machine's"
    assert bucket.find("b") is None


def test_files_go_and_come_and_names_are_listed_below_a_folder(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(range(256)) * 40_000)
    bucket.put_file("f/large", tmp_path / "large")
    bucket.put("f/small", b"")
    bucket.put("g", b"")
    assert list(bucket.list("f")) == ["large", "small"]
    bucket.get_file("f/large", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "large").read_bytes()
    bucket.delete(["f/large", "f/small", "f/none"])
    assert list(bucket.list("f")) == []
    with pytest.raises(FileNotFoundError):
        bucket.put_file("f/large", tmp_path / "none")
    with pytest.raises(BucketError, match="f/large is missing"):
        bucket.get("f/large")


def test_a_probe_leaves_nothing(bucket: Bucket, other_s3: OtherS3, prefix: str) -> None:
    bucket.probe()
    assert other_s3.list_keys(prefix) == []


def test_a_bucket_that_is_not_there_is_reported(other_s3: OtherS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with pytest.raises(BucketError, match=r"no bucket none-there\. Create it, or name another with --s3-bucket"):
        Bucket(other_s3.endpoint_url, "none-there/a").probe()


@pytest.mark.slow
def test_an_s3_that_cannot_be_reached_is_reported(bucket: Bucket) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(BucketError, match=r"at http://127.*cannot be reached .* another --s3-endpoint"):
            Bucket(url, BUCKET).probe()


def test_what_is_not_an_s3_is_reported(bucket: Bucket, no_s3: str) -> None:
    with pytest.raises(BucketError, match="the server there is not an S3"):
        Bucket(no_s3, BUCKET).probe()


def test_a_refusal_of_credentials_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    answer = b"<Error><Code>InvalidAccessKeyId</Code><Message>unknown</Message></Error>"
    refused = r"the credentials that boto3 finds are refused \(InvalidAccessKeyId: unknown\)"
    with serving(403, answer) as endpoint_url, pytest.raises(BucketError, match=refused):
        Bucket(endpoint_url, BUCKET).probe()


@pytest.mark.nightly
def test_credentials_that_are_refused_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INITIAL_NO_AUTH_ACTION_COUNT", "1")  # moto's own: all but the first request is judged
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with run_other_s3() as guarded, pytest.raises(BucketError, match=r"the credentials that boto3 finds are refused"):
        Bucket(guarded.endpoint_url, BUCKET).probe()


def test_a_lack_of_credentials_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(StartupError, match=r"there are no credentials for it. Set AWS_ACCESS_KEY_ID"):
        Bucket("http://127.0.0.1:1", BUCKET)


@pytest.mark.slow
def test_a_state_folder_is_kept_there_and_restored(open_bucket: Callable[[], Bucket], tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
        folder.put("ab/1", "first")
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert folder.read() == ["one"]
        folder.replica.missing.wait()
        assert (folder.path / "s3/contents/ab/1").read_text() == "first"
