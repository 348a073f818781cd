"""Seconds of a first verdict on a machine with an engine and `emulator:pytorch`.

From `docker run`, with a new volume and no package index, to Completed and the verdict of the rule of a small training.
"""

import statistics
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.service.seconds import ROUNDS, WORKS, store_script, time_job
from benchmarks.shared.rule_job import BUCKET, build_client, wait_until
from container_runtime.docker.images.image_build import build_images

IMAGE = "smdebug-emulator/emulator:pytorch"
_OPTIONS = (
    "--publish=127.0.0.1::4580",
    "--env=SMDEBUG_EMULATOR_BEHIND=loopback",
    "--env=PIP_NO_INDEX=1",
    "--security-opt=seccomp=unconfined",
)


@dataclass(frozen=True, slots=True)
class Container:
    """An emulator in a container."""

    endpoint_url: str


@contextmanager
def run_container() -> Iterator[Container]:
    """Run the image, and yield the container once it answers."""
    name = f"first-verdict-{uuid.uuid4().hex[:8]}"
    try:
        _run("docker", "run", "--detach", "--name", name, *_OPTIONS, IMAGE)
        container = Container(f"http://{_run('docker', 'port', name, '4580/tcp')}")
        wait_until(lambda: _answers(container), lambda: _run("docker", "logs", name))
        yield container
    finally:
        _run("docker", "rm", "--force", "--volumes", name)


def _run(*command: str) -> str:
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout.strip()


def _answers(container: Container) -> bool:
    try:
        with urllib.request.urlopen(f"{container.endpoint_url}/_emulator/health", timeout=5):
            return True
    except OSError:
        return False


def measure() -> Iterator[str]:
    build_images(["emulator:pytorch"])
    answers, completed, verdicts = [], [], []
    for _ in range(ROUNDS):
        began = time.monotonic()
        with run_container() as container:
            answers.append(time.monotonic() - began)
            build_client(container, "s3").create_bucket(Bucket=BUCKET)
            source = store_script(container, WORKS[0])
            sent = time.monotonic() - began
            times = time_job(container, WORKS[0], source)
            completed.append(sent + times.completed)
            verdicts.append(sent + times.verdict)
    answer, end, verdict = map(statistics.median, (answers, completed, verdicts))
    yield (
        f"docker run to first answer {answer:5.2f} s   Completed {end:5.2f}   verdict {verdict:5.2f}   "
        f"(slowest {max(verdicts):.2f})"
    )
