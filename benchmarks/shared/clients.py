"""Load generator: sixteen concurrent boto3 clients of SageMaker.

They run in four processes with four threads each.
"""

import multiprocessing
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any, NamedTuple

import boto3
from botocore.config import Config

PROCESSES, THREADS = 4, 4
CLIENTS = PROCESSES * THREADS
KEY = "bench"
"""Id and secret of the clients' access key."""
_READY_SECONDS = 120
_barrier: Barrier | None = None


class Load(NamedTuple):
    """Measurements of the clients.

    Attributes:
        rate: answered requests per second, from the first request sent to the last answer.
        seconds: duration of each request, by operation.
    """

    rate: float
    seconds: dict[str, list[float]]


def build_client(service: str, endpoint_url: str, *, secret: str = KEY) -> Any:
    """Build a client that does not retry requests, because a retried request would be measured as a slow one."""
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}),
    )


def send_all(endpoint_url: str, rounds: int, request: Mapping[str, Any]) -> Load:
    """Make each client create, describe and list jobs, and measure the requests.

    Args:
        endpoint_url: endpoint of the service.
        rounds: number of rounds of each client.
        request: request of CreateTrainingJob without the name.
    """
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(CLIENTS)
    with ProcessPoolExecutor(PROCESSES, spawn, initializer=_keep_barrier, initargs=(barrier,)) as pool:
        # No task returns before all have begun, so each process gets one task.
        working = [pool.submit(_send_of_process, endpoint_url, rounds, request) for _ in range(PROCESSES)]
        answers = [answer for each in working for answer in each.result()]
    began, ended = min(sent for _, sent, _ in answers), max(received for _, _, received in answers)
    seconds: dict[str, list[float]] = {}
    for operation, sent, received in answers:
        seconds.setdefault(operation, []).append(received - sent)
    return Load(len(answers) / (ended - began), seconds)


def _keep_barrier(barrier: Barrier) -> None:
    global _barrier  # a barrier can only be inherited by a process, not sent with a task
    _barrier = barrier


def _send_of_process(endpoint_url: str, rounds: int, request: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    with ThreadPoolExecutor(THREADS) as threads:
        working = [threads.submit(_send, endpoint_url, rounds, request) for _ in range(THREADS)]
        return [answer for each in working for answer in each.result()]


def _send(endpoint_url: str, rounds: int, request: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Send the requests of one client, and return the operation, start time and end time of each."""
    client = build_client("sagemaker", endpoint_url)
    client.list_training_jobs(MaxResults=1)
    assert _barrier is not None
    _barrier.wait(_READY_SECONDS)
    answers = []
    for _ in range(rounds):
        name = f"load-{uuid.uuid4().hex}"
        calls: dict[str, Callable[[], Any]] = {
            "Create": partial(client.create_training_job, TrainingJobName=name, **request),
            "Describe": partial(client.describe_training_job, TrainingJobName=name),
            "List": partial(client.list_training_jobs, MaxResults=10),
        }
        for operation, call in calls.items():
            sent = time.monotonic()  # the same clock in every process
            call()
            answers.append((operation, sent, time.monotonic()))
    return answers
