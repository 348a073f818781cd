"""Start-up time to the first answer. Goal: not slower than moto_server.

The servers are started in turn, seven times each after one start that is not counted. All have the bytecode of their
modules, as an installed wheel has: PYTHONDONTWRITEBYTECODE, which a checkout may run under, would have the emulator
alone compiled at each start. "S3" is the time from the start of the process to the first
ListBuckets that is answered with 200, and "SageMaker" is the time to the first ListTrainingJobs. In moto_server, this
request reads an empty table. In the emulator, it requires the whole service: the state folder is locked and read, the
back end is chosen, and jobs are recovered. "Collecting" is an emulator that cannot defer garbage collection until it
has started.

"moto_server, libraries" is moto_server without garbage collection, as the emulator starts, and after the import of the
libraries that the emulator's command line, store and HTTP server are built on. With "docker", the docker package is
imported, too, and asks the engine for its version and images, as a start must. Nothing of the emulator is in them: no
start with these libraries can be quicker.
"""

import http.client
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from benchmarks.shared.engine import back_ends

ROUNDS = 7
# Neither server checks the signature, but both read the service's name from it.
SIGNED = "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"


class Request(NamedTuple):
    """One HTTP request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None = None


LIST_BUCKETS = Request("GET", "/", {"Authorization": SIGNED.format("s3")})
LIST_TRAINING_JOBS = Request(
    "POST",
    "/",
    {
        "Authorization": SIGNED.format("sagemaker"),
        "X-Amz-Target": "SageMaker.ListTrainingJobs",
        "Content-Type": "application/x-amz-json-1.1",
    },
    b"{}",
)


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int, request: Request = LIST_BUCKETS) -> bool:
    """Return whether ``request`` is answered with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(request.method, request.path, body=request.body, headers=request.headers)
        answer = connection.getresponse()
        answer.read()
    except OSError:
        return False
    else:
        return answer.status == HTTPStatus.OK
    finally:
        connection.close()


def read_cpu_seconds(pid: int) -> float:
    """Return the seconds of the processor that a process has used."""
    # utime and stime, the fields 14 and 15; the second one ends with the last parenthesis.
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def time_start(command: list[str], port: int, environment: dict[str, str]) -> tuple[float, ...]:
    """Return the seconds to the first answer of S3, and of SageMaker, and those of the processor to either."""
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        times, cpu = [], []
        for request in (LIST_BUCKETS, LIST_TRAINING_JOBS):
            while not answers(port, request):
                if process.poll() is not None:
                    raise RuntimeError(f"{command} ended with {process.returncode}")
                time.sleep(0.005)
            times.append(time.perf_counter() - began)
            cpu.append(read_cpu_seconds(process.pid))
        return (*times, *cpu)
    finally:
        process.terminate()
        process.wait()


def list_commands() -> dict[str, list[str]]:
    """List the command of each server, without its port, by its name in the results."""
    moto = "import sys; from moto.server import main; main(sys.argv[1:])"
    libraries = "import gc; gc.disable(); import click, sqlalchemy, sqlalchemy.dialects.sqlite, waitress; "
    engine = "import docker; engine = docker.APIClient(); engine.version(); engine.images(); "
    start = ["start", "--runtime"]
    collecting = "import gc; gc.disable = gc.freeze = lambda: None; from emulator.__main__ import main; main()"
    commands = {
        "moto_server": [str(Path(sys.executable).with_name("moto_server"))],
        "moto_server, libraries": [sys.executable, "-c", libraries + moto],
    }
    for name in back_ends():
        if name == "docker":
            commands["moto_server, docker"] = [sys.executable, "-c", libraries + engine + moto]
        commands[f"emulator ({name})"] = [sys.executable, "-m", "emulator", *start, name]
    return {**commands, "emulator, collecting": [sys.executable, "-c", collecting, *start, "process"]}


def measure() -> Iterator[str]:
    commands = list_commands()
    peers: dict[str, list[tuple[float, ...]]] = {name: [] for name in commands}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as bytecode:
        environment["PYTHONPYCACHEPREFIX"] = bytecode
        for number in range(ROUNDS + 1):
            for name, times in peers.items():
                port = find_free_port()
                with tempfile.TemporaryDirectory() as folder:
                    more = [] if name.startswith("moto_server") else ["--state-dir", f"{folder}/state"]
                    seconds = time_start([*commands[name], "--port", str(port), *more], port, environment)
                if number:
                    times.append(seconds)
    for column, service in enumerate(("S3", "SageMaker", "S3, processor", "SageMaker, processor")):
        reference = statistics.median(times[column] for times in peers["moto_server"])
        for name, times in peers.items():
            median = statistics.median(each[column] for each in times)
            yield f"{service:<22} {name:<22} {median:6.2f} s   {median / reference:5.2f} x moto_server"
