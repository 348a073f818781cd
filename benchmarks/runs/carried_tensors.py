"""Tensor transfer from a node without a shared disk, beside HTTP puts to moto.

The tensors are transferred to this machine and stored in S3. They are compared with puts to moto_server.

The node is a separate process of the node agent on this machine. The benchmark therefore measures TLS, both ends of the
connection and the uploader, but no second machine's disk and no network. The files are 1,000 event and index files of
1.5 KB, and 25 files of 8 MB, which all appear at the same time. The results are medians of three alternating rounds.
moto_server keeps the files in memory.

The goal is 10 times the rate of moto_server, or the rate of the link. The rate of the link is measured with the bytes
of the large files over TLS between two processes. It is measured alone, and with the minimal work to store objects:
write the bytes here, read them again, hash them, and write them to the folder of S3.
"""

import asyncio
import multiprocessing
import os
import socket
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.runs.tensor_upload import BUCKET, ROUNDS, time_http_puts, write_run
from benchmarks.shared.moto_server import run_moto_server
from container_runtime.spec import Mount
from container_runtime.swarm import agent
from container_runtime.swarm.agent_key import keep_key
from container_runtime.swarm.carriers import Carriers
from container_runtime.swarm.file_transfer.carried_folders import list_carried, list_volumes
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.uploads.tensors import TensorUpload
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.content import ContentWriter
from emulator.moto_services.s3.objects import ObjectStore, parse_s3_uri

LARGE_FILES, LARGE_BYTES = 25, 8_000_000
_POLL_SECONDS = 0.01
_PIECE_BYTES = 1 << 18
# Number of threads, which is the same as in the uploader for large files.
STORING = 3


def write_large(folder: Path) -> list[Path]:
    """Write large event files."""
    files = []
    for step in range(LARGE_FILES):
        files.append(folder / "events" / f"{step:012}" / f"{step:012}_worker_0.tfevents")
        files[-1].parent.mkdir(parents=True)
        files[-1].write_bytes(os.urandom(LARGE_BYTES))
    return files


def serve(key: Path, volumes: Path, told: Connection) -> None:
    """Run the agent of a node."""

    async def listen() -> None:
        node = agent.Agent(Path("/proc"), Path("/sys/fs/cgroup"), os.open(volumes, os.O_RDONLY))
        context = agent.build_context(ssl.PROTOCOL_TLS_SERVER, key)
        server = await asyncio.start_server(node.answer, "127.0.0.1", 0, ssl=context)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


def time_carried(carriers: Carriers, folder: Path, name: str, write: Callable[[Path], list[Path]]) -> float:
    """Return the seconds from the appearance of the files on the node until the last of them is in S3."""
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
        time.sleep(_POLL_SECONDS)
    took = time.perf_counter() - began
    carriers.finish(name)
    carriers.close(name)
    return took


def send(key: Path, port: int, files: list[Path]) -> None:
    """Send files one after the other over TLS."""
    context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, key)
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as connection:
        for each in files:
            with each.open("rb") as file:
                while data := file.read(_PIECE_BYTES):
                    connection.sendall(data)


def time_link(key: Path, files: list[Path], folder: Path | None) -> float:
    """Return the seconds of the link alone or, if a folder is given, together with the storage of the files."""
    context = agent.build_context(ssl.PROTOCOL_TLS_SERVER, key)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(STORING) as pool:
        port = listening.getsockname()[1]
        sender = multiprocessing.get_context("spawn").Process(target=send, args=(key, port, files))
        sender.start()
        with context.wrap_socket(listening.accept()[0], server_side=True).makefile("rb", _PIECE_BYTES) as source:
            began, storing = time.perf_counter(), []
            for number in range(len(files)):
                path = Path(os.devnull) if folder is None else folder / str(number)
                with path.open("wb", buffering=0) as file:
                    for _ in range(LARGE_BYTES // _PIECE_BYTES):
                        file.write(source.read(_PIECE_BYTES))
                    file.write(source.read(LARGE_BYTES % _PIECE_BYTES))
                if folder is not None:
                    storing.append(pool.submit(store_again, path))
            for each in storing:
                each.result()
            took = time.perf_counter() - began
        sender.join()
    return took


def store_again(path: Path) -> None:
    """Write a copy of a file, and hash it."""
    with path.open("rb") as source, ContentWriter("object", path.with_suffix(".stored")) as writer:
        while data := source.read(_PIECE_BYTES):
            writer.write(data)
        writer.finish()


def measure() -> Iterator[str]:
    told, tell = multiprocessing.Pipe(duplex=False)
    kinds = {"small": write_run, "large": write_large}
    ours: dict[str, list[float]] = {kind: [] for kind in kinds}
    peer: dict[str, list[float]] = {kind: [] for kind in kinds}
    bounds: dict[str, list[float]] = {"link alone": [], "link, stored": []}
    with run_moto_server() as (url, _), tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "volumes").mkdir()
        key = keep_key(folder / "key")
        node = multiprocessing.get_context("spawn").Process(target=serve, args=(key, folder / "volumes", tell))
        node.start()
        address = ("127.0.0.1", told.recv())
        carriers = Carriers(lambda _node: address, key, (os.getuid(), os.getgid()), kill=print)
        s3 = open_s3(folder / "s3")
        try:
            ObjectStore("123456789012", "us-east-1").create_bucket(BUCKET)
            files = {kind: write(folder / f"puts-{kind}") for kind, write in kinds.items()}
            numbers = iter(range(100))
            for number in range(ROUNDS):
                for kind, write in kinds.items():
                    ours[kind].append(time_carried(carriers, folder, f"{kind}-{number}", write))
                    peer[kind].append(time_http_puts(url, folder / f"puts-{kind}", files[kind], next(numbers)))
                stored = folder / f"stored-{number}"
                stored.mkdir()
                bounds["link alone"].append(time_link(key, files["large"], None))
                bounds["link, stored"].append(time_link(key, files["large"], stored))
        finally:
            carriers.shut()
            s3.close()
            node.terminate()
            node.join()
    small, large = len(files["small"]), LARGE_FILES * LARGE_BYTES / 1e6
    for kind, amount, unit in (("small", small, "files/s"), ("large", large, "MB/s")):
        rate, peer_rate = (amount / statistics.median(taken[kind]) for taken in (ours, peer))
        yield f"of a node, in S3      {rate:8.0f} {unit}, durably stored"
        yield f"HTTP puts to moto     {peer_rate:8.0f} {unit}, in memory"
        yield f"ratio                 {rate / peer_rate:8.1f} (goal: 10)"
    for what, taken in bounds.items():
        bound = large / statistics.median(taken)
        yield f"{what:22}{bound:8.0f} MB/s, {bound / peer_rate:.1f} x moto; {100 * rate / bound:.0f} % of it reached"
