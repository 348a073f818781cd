"""Tests of AWS clients' connection errors: the docs list each, with a remedy."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from docs_site.messages import REMEDIES
from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener

CLIENTS = """
import json, os, sys
import boto3
from botocore.config import Config

other, gone, *named = sys.argv[1:]
settings = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}


def ask(endpoint_url, **options):
    config = Config(retries={"max_attempts": 0})
    boto3.Session(**options).client("sts", endpoint_url=endpoint_url, config=config).get_caller_identity()


def make_client():
    boto3.client("sagemaker")


def open_sdk():
    from sagemaker.session import Session
    Session()


def ask_without(*names, ask=ask, **options):
    os.environ.update(settings)
    for name in names:
        os.environ.pop(name, None)
    try:
        ask(**options)
    except Exception as error:
        return str(error)


said = [
    ask_without("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", endpoint_url=gone),
    ask_without("AWS_DEFAULT_REGION", ask=make_client),
    ask_without(endpoint_url=gone),
    ask_without(endpoint_url=other),
    ask_without(endpoint_url=gone, profile_name="nobody"),
] if not named else [ask_without("AWS_DEFAULT_REGION", ask=open_sdk)]
print(json.dumps(said))
"""
# Met where version 3 of the SDK is installed, which cannot be beside version 2.
OF_VERSION_3 = "No module named 'sagemaker.{module}'"
MESSAGES = [text.partition(" ({")[0] for text in REMEDIES["clients"] if text != OF_VERSION_3]


def serve_another(_environ: object, start: object) -> Iterable[bytes]:
    start("200 OK", [])  # type: ignore[operator]
    return [b"<html>another service"]


# The SDK takes seconds to import. What it says is all of its own.
OF_BOTO3, OF_SDK = range(5), 5


def hear(home: Path, refusing_port: int, *named: str) -> list[str]:
    """Return what clients say: those of boto3, or the one that is named."""
    other = Listener(LOOPBACK, 0)
    other.serve(serve_another)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true"}
    addresses = [f"http://{LOOPBACK}:{port}" for port in (other.port, refusing_port)]
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CLIENTS, *addresses, *named],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
        )
    finally:
        other.close()
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, refusing_port: int) -> list[str]:
    return hear(tmp_path_factory.mktemp("home"), refusing_port)


def test_no_message_is_left_out() -> None:
    assert len(MESSAGES) == len(OF_BOTO3) + 1


@pytest.mark.parametrize("number", OF_BOTO3)
def test_a_client_says_so(said: list[str], number: int) -> None:
    assert said[number].startswith(MESSAGES[number]), said


@pytest.mark.nightly
def test_the_sdk_says_so(tmp_path: Path, refusing_port: int) -> None:
    (said,) = hear(tmp_path, refusing_port, "sdk")
    assert said.startswith(MESSAGES[OF_SDK])
