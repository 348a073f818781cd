"""Container start on another Swarm node, beside `docker service create`.

The benchmark also measures the time until a verdict on another node stops the job.

It uses the Swarm of DOCKER_HOST (`make swarm`). Its manager must have all images, and every node that of the agents,
`smdebug-emulator/sagemaker-debugger-rules` (`docker save … | docker load`). The Swarm must have at least two nodes
without other work. While starts are timed, the manager's node accepts no tasks, so
that each container starts on another node. The plain service runs the same image by its id, both on the node's own
network and on a new overlay network, because each container of a job has its own overlay. Folders of jobs are copied
between nodes, unless SMDEBUG_EMULATOR_SHARED_FOLDER names a folder that all nodes share.

Goals: a start takes at most 0.5 s more than the plain service with an overlay, and a verdict takes less than 1 s.
"""

import json
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import docker
import docker.errors

from benchmarks.rules.verdict import deploy_stop_handler, time_verdict
from benchmarks.service.job_start import PRINT_CLOCK, find_local_image, time_job
from benchmarks.shared.clients import build_client
from sdk_compat.demo.training_job import BUCKET
from sdk_compat.emulator_process import EmulatorProcess

ROUNDS = 7
_POLL_SECONDS = 0.02


def measure() -> Iterator[str]:
    """Yield the lines of the report."""
    with closing(docker.from_env().api) as api:
        swarm = api.info()["Swarm"]
        nodes = api.nodes() if swarm.get("ControlAvailable") else []
        if len(nodes) < 2:
            yield "not measured: DOCKER_HOST names no manager of a Swarm of two nodes (`make swarm` makes one)"
            return
        with (
            tempfile.TemporaryDirectory() as folder,
            EmulatorProcess(Path(folder) / "state", runtime="swarm") as emulator,
        ):
            clients = {each: build_client(each, emulator.endpoint_url) for each in ("sagemaker", "s3", "logs")}
            clients["s3"].create_bucket(Bucket=BUCKET)
            yield from measure_starts(swarm["NodeID"], clients)
            deploy_stop_handler(emulator.endpoint_url)
            yield from measure_verdicts(emulator.endpoint_url, clients)


def measure_starts(manager: str, clients: dict[str, Any]) -> Iterator[str]:
    """Time jobs and plain services in turn, all on nodes that are not the manager's."""
    image = run("docker", "image", "inspect", "--format", "{{.Id}}", find_local_image()).strip()
    jobs, plain, with_overlay = [], [], []
    with taking_no_tasks(manager):
        time_job(clients["sagemaker"], clients["logs"])  # not counted, because the node first gets the image
        for _ in range(ROUNDS):
            jobs.append(time_job(clients["sagemaker"], clients["logs"]))
            plain.append(time_service(image, overlay=False))
            with_overlay.append(time_service(image, overlay=True))
    job, bare, networked = map(statistics.median, (jobs, plain, with_overlay))
    yield (
        f"request → program on another node {job:.2f} s   docker service create {bare:.2f} s, with an overlay "
        f"{networked:.2f} s   {job - networked:+.2f} s (medians of {ROUNDS}; goal: +0.5 s)"
    )


@contextmanager
def taking_no_tasks(node_id: str) -> Iterator[None]:
    """Pause a node inside the context, so that it accepts no new tasks."""

    def update(availability: str) -> None:
        run("docker", "node", "update", "--availability", availability, node_id)

    update("pause")
    try:
        yield
    finally:
        update("active")


def time_service(image: str, *, overlay: bool) -> float:
    """Return the seconds from the creation of a plain service to the first statement of its program."""
    name = f"plain-{uuid.uuid4().hex[:8]}"
    create = ["docker", "service", "create", "--detach", "--quiet", "--no-resolve-image", "--mode", "replicated-job"]
    create += ["--name", name, "--restart-condition", "none", *(["--network", name] if overlay else [])]
    began = time.time()
    if overlay:
        run("docker", "network", "create", "--driver", "overlay", "--attachable", name)
    run(*create, image, "python3", "-c", PRINT_CLOCK)
    try:
        while not (words := run("docker", "service", "logs", "--raw", name).split()):
            time.sleep(_POLL_SECONDS)
        return float(words[1]) - began
    finally:
        run("docker", "service", "rm", name)
        if overlay:
            remove_network(name)


def remove_network(name: str) -> None:
    """Remove an overlay as soon as its last container has left it."""
    with closing(docker.from_env().api) as api:
        while True:
            with suppress(docker.errors.APIError):
                api.remove_network(name)
                return
            time.sleep(_POLL_SECONDS)


def run(*command: str) -> str:
    """Run a command and return what it printed."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def measure_verdicts(endpoint_url: str, clients: dict[str, Any]) -> Iterator[str]:
    """Measure verdicts of rules that run on another node than the training."""
    times, apart = [], True
    with ThreadPoolExecutor(1) as pool:
        for _ in range(ROUNDS):
            timing, places = pool.submit(time_verdict, clients), list[str]()
            while not timing.done():
                places = max(places, find_places(endpoint_url), key=len)
                time.sleep(_POLL_SECONDS)
            times.append(timing.result())
            apart &= len(places) == len(set(places)) == len(("training", "rule"))
    found, stop = (statistics.median(each[n] for each in times) for n in (0, 1))
    yield (
        f"step on disk → IssuesFound {found:.2f} s → StopTrainingJob received {stop:.2f} s (medians of {ROUNDS}; "
        f"slowest {max(each[1] for each in times):.2f} s; {'on two nodes' if apart else 'NOT ON TWO NODES'}; "
        "goal: under 1 s)"
    )


def find_places(endpoint_url: str) -> list[str]:
    """Return the node of each container of the job and its rule."""
    with urlopen(f"{endpoint_url}/_emulator/health") as health:
        nodes = json.load(health)["swarm"]["nodes"]
    return [node["id"] for node in nodes for name in node["containers"] if name.startswith("smdebug-nan-")]
