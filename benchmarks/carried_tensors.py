"""Tensors of a job on a node that shares no disk: to this machine and into S3, beside HTTP puts to moto_server.

The node is its agent's program in a process of its own, on this machine: what is measured is TLS, both ends and the
uploader, and neither a disk nor a network of two machines. 1,000 event and index files of 1.5 KB, and 25 of 8 MB, which
appear at once; three rounds in turn, the median. moto_server keeps what it gets in memory. Goal: 10 times its rate.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.startup import answers, find_free_port
from benchmarks.tensor_upload import BUCKET, ROUNDS, time_http_puts, write_run
from container_runtime.spec import Mount
from container_runtime.swarm import agent
from container_runtime.swarm.carrier import Carriers, list_carried, list_volumes
from container_runtime.swarm.nodes import keep_key
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.uploads.tensors import TensorUpload
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.objects import ObjectStore, parse_s3_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

LARGE_FILES, LARGE_BYTES = 25, 8_000_000
_LOOK_SECONDS = 0.01


def write_large(folder: Path) -> list[Path]:
    """Write as large event files."""
    files = []
    for step in range(LARGE_FILES):
        files.append(folder / "events" / f"{step:012}" / f"{step:012}_worker_0.tfevents")
        files[-1].parent.mkdir(parents=True)
        files[-1].write_bytes(os.urandom(LARGE_BYTES))
    return files


def serve(key: Path, volumes: Path, told: Connection) -> None:
    """Be the agent of a node."""

    async def listen() -> None:
        node = agent.Agent(Path("/proc"), Path("/sys/fs/cgroup"), os.open(volumes, os.O_RDONLY))
        context = agent.build_context(ssl.PROTOCOL_TLS_SERVER, key)
        server = await asyncio.start_server(node.answer, "127.0.0.1", 0, ssl=context)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


def time_carried(carriers: Carriers, folder: Path, name: str, write: Callable[[Path], list[Path]]) -> float:
    """Time from the appearance of the files on the node to the last of them in S3."""
    here = folder / name
    here.mkdir()
    mounts = [Mount(here, "/opt/ml")]
    folders = list_carried(name, mounts, mounts)
    for volume in list_volumes(name, folders):
        (folder / "volumes" / volume / "_data").mkdir(parents=True)
    carriers.fill(name, "", folders)
    files = write(folder / "volumes" / "written")
    store = ObjectStore("123456789012", "us-east-1")
    upload = TensorUpload(JobFolder(here / "tensors"), store, parse_s3_uri(f"s3://{BUCKET}/{name}"), "bench", 0.05)
    began, uploaded = time.perf_counter(), 0
    (folder / "volumes" / "written").rename(folder / "volumes" / folders[0].volume / "_data" / "tensors")
    while uploaded < len(files):
        uploaded += upload.upload_new_files()
        time.sleep(_LOOK_SECONDS)
    took = time.perf_counter() - began
    carriers.finish(name)
    carriers.close(name)
    return took


def measure() -> Iterator[str]:
    port = find_free_port()
    moto = subprocess.Popen(
        [str(Path(sys.executable).with_name("moto_server")), "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    told, tell = multiprocessing.Pipe(duplex=False)
    kinds = {"small": write_run, "large": write_large}
    ours: dict[str, list[float]] = {kind: [] for kind in kinds}
    peer: dict[str, list[float]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "volumes").mkdir()
        key = keep_key(folder / "key")
        node = multiprocessing.get_context("spawn").Process(target=serve, args=(key, folder / "volumes", tell))
        node.start()
        address = ("127.0.0.1", told.recv())
        carriers = Carriers(lambda _node: address, key, (os.getuid(), os.getgid()))
        s3 = open_s3(folder / "s3")
        try:
            while not answers(port):
                time.sleep(0.05)
            ObjectStore("123456789012", "us-east-1").create_bucket(BUCKET)
            files = {kind: write(folder / f"puts-{kind}") for kind, write in kinds.items()}
            numbers = iter(range(100))
            for number in range(ROUNDS):
                for kind, write in kinds.items():
                    ours[kind].append(time_carried(carriers, folder, f"{kind}-{number}", write))
                    peer[kind].append(time_http_puts(port, folder / f"puts-{kind}", files[kind], next(numbers)))
        finally:
            carriers.shut()
            s3.close()
            node.terminate()
            node.join()
            moto.terminate()
            moto.wait()
    small, large = len(files["small"]), LARGE_FILES * LARGE_BYTES / 1e6
    for kind, amount, unit in (("small", small, "files/s"), ("large", large, "MB/s")):
        rate, peer_rate = (amount / statistics.median(taken[kind]) for taken in (ours, peer))
        yield f"of a node, in S3      {rate:8.0f} {unit}, durably stored"
        yield f"HTTP puts to moto     {peer_rate:8.0f} {unit}, in memory"
        yield f"ratio                 {rate / peer_rate:8.1f} (goal: 10)"
