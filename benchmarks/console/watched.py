"""Training steps with ten open console pages, beside none, and memory.

The benchmark distinguishes idle steps and saved steps. The memory is that of the emulator.

The job measures its steps, as elapsed time and as processor time of its own process. Ten threads of the benchmark send
the requests of ten console pages: they read the stream of changes and, after each change, request the job, its log, its
tensors and the values of one tensor. The benchmark uses only local processes, because it measures the use of the
processor and not a container.
"""

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from benchmarks.shared.logs import find_line
from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.demo.training_job import BUCKET, build_script_mode, build_training_job, stage_source
from sdk_compat.emulator_process import EmulatorProcess

PAGES = 10
TRAINING_IMAGE = "pytorch-training:2.13.0-cpu-py311"
SCRIPT = """
import json, statistics, time
import torch
torch.set_num_threads(1)
layers = [torch.nn.Linear(256, 256) for _ in range(8)]
network, loss = torch.nn.Sequential(*layers), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
data, target = torch.ones(64, 256), torch.zeros(64, 256)
steps = {"idle": [], "saved": []}
for step in range(1500):
    wall, cpu = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    loss(network(data), target).backward()
    optimizer.step()
    spent = (time.perf_counter() - wall, time.process_time() - cpu)
    if step > 50:
        steps["idle" if step % 10 else "saved"].append(spent)
    if step % 50 == 0:
        print("step", step, flush=True)
medians = {kind: [statistics.median(column) for column in zip(*spent)] for kind, spent in steps.items()}
print("medians", json.dumps(medians), flush=True)
"""


class Page(threading.Thread):
    """Sends the requests of an open job page until the stream ends."""

    def __init__(self, endpoint: str, job: str) -> None:
        super().__init__(daemon=True)
        self._endpoint, self._job, self.asked = endpoint, job, 0
        self.closing = threading.Event()

    def run(self) -> None:
        path = f"jobs/us-east-1/{self._job}"
        with urlopen(f"{self._endpoint}/_emulator/stream?job=us-east-1/{self._job}", timeout=120) as stream:
            try:
                for line in stream:
                    if self.closing.is_set():
                        return
                    if line.startswith(b"event: "):
                        for each in (
                            "",
                            "/logs?limit=500",
                            "/tensors",
                            "/tensors/series?tensor=MSELoss_output_0&most=24",
                        ):
                            self._ask(path + each)
            except (OSError, ValueError):
                return  # the emulator has ended, and with it the stream

    def _ask(self, path: str) -> None:
        try:
            with urlopen(f"{self._endpoint}/_emulator/{path}", timeout=120) as answer:
                answer.read()
        except HTTPError as error:
            error.close()  # nothing was saved yet, or all readers are busy
        self.asked += 1


def measure() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch) / "train.py"
        script.write_text(SCRIPT)
        with EmulatorProcess(Path(scratch) / "state", runtime="process") as emulator:
            s3 = EmulatorSession(emulator.endpoint_url).client("s3")
            s3.create_bucket(Bucket=BUCKET)
            source = stage_source(s3, "watched", [script])
            for turn, pages in enumerate((0, PAGES, 0, PAGES)):
                medians, asked = train(emulator, f"watched-{turn}", source, pages)
                parts = [
                    f"{kind} step {wall * 1000:.2f} ms ({cpu * 1000:.2f} ms of processor time)"
                    for kind, (wall, cpu) in medians.items()
                ]
                memory = f"emulator {read_memory_mb(emulator)} MB"
                yield f"{pages} pages: {', '.join(parts)}; {asked} requests, {memory}"


def train(emulator: EmulatorProcess, name: str, source: str, pages: int) -> tuple[dict[str, list[float]], int]:
    client = EmulatorSession(emulator.endpoint_url).client
    request = build_training_job(
        name,
        image=TRAINING_IMAGE,
        hyperparameters=build_script_mode(source, "train.py", {}),
        channels=(),
        collections={"gradients": {"save_interval": "10"}, "losses": {"save_interval": "10"}},
    )
    client("sagemaker").create_training_job(**request)
    opened = [Page(emulator.endpoint_url, name) for _ in range(pages)]
    for page in opened:
        page.start()
    while (described := client("sagemaker").describe_training_job(TrainingJobName=name))["TrainingJobStatus"] not in (
        "Completed",
        "Failed",
    ):
        time.sleep(0.2)
    if described["TrainingJobStatus"] != "Completed":
        raise RuntimeError(f"{name}: {described.get('FailureReason')}")
    for page in opened:
        page.closing.set()
    for page in opened:
        page.join()
    line = find_line(client("logs"), name, "medians")
    medians: dict[str, Any] = json.loads(line.partition(" ")[2])
    return medians, sum(page.asked for page in opened)


def read_memory_mb(emulator: EmulatorProcess) -> int:
    status = Path(f"/proc/{emulator.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024
