"""Cost of durable moto state at 10,000 resources: requests and start-up.

All resources belong to one service, and the time of another put is compared with that of moto in memory.

The resources of each service are created in-process. Then another request is sent sixty times over HTTP, to moto in
memory and to moto with state on disk. "First read" is the time of the first request that needs the resources, after
moto was closed and opened again.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import boto3

from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.moto_services.durable import DurableBackends
from emulator.moto_services.store import MotoStore
from emulator.moto_services.wsgi import MotoApplication

RESOURCES, REQUESTS = 10_000, 60
REGION = "us-east-1"
PUTS: dict[str, tuple[Callable[[Any, str], Any], Callable[[Any], Any]]] = {
    "iam": (
        lambda iam, name: iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}"),
        lambda iam: iam.get_role(RoleName="r0"),
    ),
    "sns": (lambda sns, name: sns.create_topic(Name=name), lambda sns: sns.list_topics()),
    "logs": (
        lambda logs, name: logs.create_log_group(logGroupName=name),
        lambda logs: logs.describe_log_groups(limit=1),
    ),
}


def measure() -> Iterator[str]:
    listener = Listener(LOOPBACK, 0)
    listener.serve(MotoApplication())
    yield (f"{'service':<10} {'resources':>9} {'in memory':>12} {'kept':>12} {'first read':>12}")
    for service in PUTS:
        make: Any = boto3.client
        client = make(
            service,
            endpoint_url=f"http://127.0.0.1:{listener.port}",
            region_name=REGION,
            aws_access_key_id="key",
            aws_secret_access_key="secret",
        )
        for resources in (100, RESOURCES):
            with tempfile.TemporaryDirectory() as scratch:
                yield _time_requests(client, service, resources, Path(scratch))
    listener.close()


def _time_requests(client: Any, service: str, resources: int, folder: Path) -> str:
    put, read = PUTS[service]
    kept = MotoStore(folder)
    # Without `keep`, state is only in memory, as in moto_server. This also makes the creation of resources fast enough.
    with mock.patch.object(DurableBackends, "keep"):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: put(client, f"r{number}"), range(resources)))
        in_memory = _measure(lambda number: put(client, f"m{number}"))
    put(client, "warm")
    durably = _measure(lambda number: put(client, f"k{number}"))
    kept.close()
    kept = MotoStore(folder)
    started = time.perf_counter()
    read(client)
    first = (time.perf_counter() - started) * 1000
    kept.close()
    return f"{service:<10} {resources:>9} {in_memory:>9.1f} ms {durably:>9.1f} ms {first:>9.1f} ms"


def _measure(send: Callable[[int], Any]) -> float:
    times = []
    for number in range(REQUESTS):
        started = time.perf_counter()
        send(number)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000
