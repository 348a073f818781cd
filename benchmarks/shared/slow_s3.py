"""moto's S3 in a process of its own, with a delay added to each request.

The delay imitates the latency of a network.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3

SERVER = """
import sys, time
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
import logging
logging.getLogger("werkzeug").disabled = True
application = DomainDispatcherApplication(create_backend_app)
latency = float(sys.argv[2])
def slow(environment, start_response):
    time.sleep(latency)
    return application(environment, start_response)
make_server("127.0.0.1", int(sys.argv[1]), slow, threaded=True).serve_forever()
"""
DEADLINE_S = 30


@contextlib.contextmanager
def serve(latency_s: float) -> Iterator[str]:
    """Serve an empty S3, and yield its endpoint."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(port), str(latency_s)])
    try:
        wait_until_it_answers(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def wait_until_it_answers(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("moto's S3 did not start") from error
            time.sleep(0.05)
        else:
            return


def use(endpoint: str) -> None:
    """Make this process and its child processes use this S3."""
    os.environ.update(
        AWS_ENDPOINT_URL=endpoint, AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_REGION="us-east-1"
    )


def upload(endpoint: str, folder: str) -> None:
    """Upload a run to s3://runs/job."""
    client: Any = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="runs")
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    keys = [f"job/{path.relative_to(folder)}" for path in files]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path, key: client.upload_file(str(path), "runs", key), files, keys))
