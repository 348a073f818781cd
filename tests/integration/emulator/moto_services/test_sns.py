"""Tests of SNS HTTP subscriptions: local endpoints only, and logged errors."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest
from moto import mock_aws

from emulator.moto_services.sns import bound_http_endpoints

MESSAGES: list[dict[str, Any]] = []


class Endpoint(BaseHTTPRequestHandler):
    """Keeps what is posted; /elsewhere redirects."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        MESSAGES.append(body | {"path": self.path})
        self.send_response(307 if self.path == "/elsewhere" else 200)
        self.send_header("Location", "/followed")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Endpoint) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        yield f"127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def publish_to(*endpoints: str) -> list[dict[str, Any]]:
    """Publish one message to subscriptions; what the endpoint was posted."""
    MESSAGES.clear()
    with mock_aws(), bound_http_endpoints(allow_internet=False):
        sns: Any = boto3.client("sns", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        topic = sns.create_topic(Name="topic")["TopicArn"]
        for endpoint in endpoints:
            sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=endpoint)
        assert sns.publish(TopicArn=topic, Message="fired")["MessageId"]
    return list(MESSAGES)


@pytest.mark.slow
def test_an_endpoint_of_this_machine_is_posted_to(server: str) -> None:
    (message,) = publish_to(f"http://{server}/a")
    assert (message["Type"], message["Message"], message["path"]) == ("Notification", "fired", "/a")


def test_a_redirect_is_not_followed(server: str) -> None:
    assert [each["path"] for each in publish_to(f"http://{server}/elsewhere")] == ["/elsewhere"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://10.1.2.3/", marks=pytest.mark.nightly),
        "http://collector.example/",
        pytest.param("http://[::ffff:8.8.8.8]/", marks=pytest.mark.nightly),
        "http://[/",
    ],
)
def test_no_other_is_and_the_log_says_so(url: str, server: str, caplog: pytest.LogCaptureFixture) -> None:
    assert len(publish_to(url, f"http://{server}/")) == 1
    (said,) = [each.getMessage() for each in caplog.records if each.name == "emulator.moto_services.sns"]
    assert said.startswith(f"A message of SNS was not posted to {url}: ")
    assert "--allow-internet" in said


def test_an_endpoint_that_does_not_answer_is_reported(server: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody listens on this port."""
    assert len(publish_to("http://127.0.0.1:1/", f"http://{server}/")) == 1
    assert "could not be posted to http://127.0.0.1:1/" in caplog.text
