"""Reading of runs: many small tensors, 100,000 steps, 4 GB, and a scan on S3.

The small tensors are read in both orders, and the 4 GB are read in little memory.

    python -m benchmarks reading

The environment variables `SIZE_GB` and `STEPS` change the size of the runs.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared import slow_s3
from benchmarks.shared.environments import build_upstream
from benchmarks.shared.scratch import scratch
from smdebug.config.collection_manager import CollectionManager
from smdebug.writing.file_writer import FileWriter

STEPS = int(os.environ.get("STEPS", "100000"))
SIZE_GB = float(os.environ.get("SIZE_GB", "4"))
ROUNDS = 3
TENSOR_BYTES = 4 * 1024 * 1024
TENSORS = 8
SMALL_STEPS, SMALL_TENSORS, SMALL_BYTES = 100, 84, 8192
# Upstream takes some minutes for these steps.
SMALL_STEPS_ON_S3 = 10
S3_STEPS = 300
LATENCY_S = 0.02
# Upstream without a framework, because it only reads here.

# Each script runs in a separate interpreter, so that nothing of this process is measured.
OPEN = """
import json, sys, time
import numpy
from smdebug.trials import create_trial
began = time.perf_counter()
trial = create_trial(sys.argv[1])
steps = trial.steps()
opened = time.perf_counter()
value = trial.tensor("loss").value(steps[-1])
read = time.perf_counter()
names = trial.tensor_names()
done = time.perf_counter()
print(json.dumps([len(steps), opened - began, read - opened, done - read]))
"""
WALK = """
import json, sys, time
import numpy
from smdebug.trials import create_trial
def resident(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024
before = resident("VmRSS:")
trial = create_trial(sys.argv[1])
began = time.perf_counter()
size = 0
for name in trial.tensor_names():
    tensor = trial.tensor(name)
    for step in tensor.steps():
        size += tensor.value(step).nbytes
print(json.dumps([size, time.perf_counter() - began, before, resident("VmHWM:")]))
"""
ORDERS = """
import json, os, sys, time
import numpy
from smdebug.trials import create_trial
def count_read():
    with open("/proc/self/io") as file:
        return int(file.read().split()[1])
create_trial(sys.argv[1]).tensor_names()
began, before, cpu = time.perf_counter(), count_read(), time.process_time()
trial = create_trial(sys.argv[1])
size = 0
if sys.argv[2] == "name by name":
    for name in trial.tensor_names():
        for step in trial.tensor(name).steps():
            size += trial.tensor(name).value(step).nbytes
else:
    for step in trial.steps():
        for name in trial.tensor_names(step=step):
            size += trial.tensor(name).value(step).nbytes
print(json.dumps([size, time.perf_counter() - began, time.process_time() - cpu, count_read() - before]))
"""
SCAN = """
import json, sys, time
import botocore.client
requests = 0
send = botocore.client.BaseClient._make_api_call
def counted(self, *arguments):
    global requests
    requests += 1
    return send(self, *arguments)
botocore.client.BaseClient._make_api_call = counted
from smdebug.trials import create_trial
trial = create_trial(sys.argv[1])
tensor = trial.tensor("weight")
tensor.steps()
requests = 0
began = time.perf_counter()
if sys.argv[2] == "values":
    count = len(tensor.values())
else:
    count = sum(1 for step in tensor.steps() if tensor.value(step) is not None)
print(json.dumps([count, time.perf_counter() - began, requests]))
"""


def run_script(script: str, *arguments: str, python: str = sys.executable, ours: bool = True) -> Any:
    environment = {**os.environ, "SMDEBUG_LOG_LEVEL": "error", "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0"}
    environment.pop("PYTHONPATH", None)
    if ours:
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [python, "-c", script, *arguments]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{python} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def write_collections(out_dir: str) -> None:
    manager = CollectionManager()
    manager.add("default")
    manager.export(out_dir, "worker_0_collections.json")


def write_steps(out_dir: str, steps: range, tensors: dict[str, Any]) -> None:
    for step in steps:
        with FileWriter(out_dir, "worker_0", step) as writer:
            for name, value in tensors.items():
                writer.write_tensor(value, name)


def measure_long_run(folder: str) -> Iterator[str]:
    run = f"{folder}/long"
    write_collections(run)
    write_steps(run, range(STEPS), {"loss": 1.0})
    rounds = [run_script(OPEN, run) for _ in range(ROUNDS)]
    count, opened, first, names = (statistics.median(each) for each in zip(*rounds, strict=True))
    yield f"a run of {int(count)} steps:"
    yield f"{'  opening, and listing the steps':<44}{opened:>8.2f} s   goal: under 1 s"
    yield f"{'  then one value of the last step':<44}{1e3 * first:>8.2f} ms"
    yield f"{'  then all tensor names (reads every index)':<44}{names:>8.2f} s"
    from smdebug.trials import create_trial

    trial = create_trial(run)
    write_steps(run, range(STEPS, STEPS + ROUNDS), {"loss": 1.0})
    times = []
    for _ in range(20):
        began = time.perf_counter()
        trial.steps()
        times.append(time.perf_counter() - began)
    yield f"{'  a refresh, new steps or none (median)':<44}{1e3 * statistics.median(times):>8.2f} ms"
    began = time.perf_counter()
    (Path(run) / "training_job_end.ts").touch()
    assert len(trial.steps()) == STEPS + ROUNDS
    shutil.rmtree(run)


def measure_large_run(folder: str) -> Iterator[str]:
    run = f"{folder}/large"
    write_collections(run)
    value = np.arange(TENSOR_BYTES // 4, dtype=np.float32)
    steps = range(max(1, int(SIZE_GB * 1e9 / TENSOR_BYTES / TENSORS)))
    write_steps(run, steps, {f"layer{number}.weight": value for number in range(TENSORS)})
    (Path(run) / "training_job_end.ts").touch()
    size, seconds, before, peak = run_script(WALK, run)
    yield f"walking through {size / 1e9:.1f} GB, tensor by tensor:"
    yield f"{'  memory above the start':<44}{peak - before:>8.0f} MB   goal: under 200 MB"
    yield f"{'  speed':<44}{size / seconds / 1e9:>8.1f} GB/s"
    # The array is larger than any cache, and both buffers are already allocated.
    source = np.ones(256 * 1024 * 1024, np.uint8)
    target = np.zeros_like(source)
    began = time.perf_counter()
    np.copyto(target, source)
    speed = source.nbytes / (time.perf_counter() - began) / 1e9
    yield f"{'  copying memory here, for comparison':<44}{speed:>8.1f} GB/s"
    shutil.rmtree(run)


def write_small_tensors(run: str, steps: int) -> None:
    """Write steps of 0.7 MB, each with 84 tensors."""
    write_collections(run)
    value = np.arange(SMALL_BYTES // 4, dtype=np.float32)
    write_steps(run, range(steps), {f"layer{number}.weight": value for number in range(SMALL_TENSORS)})
    (Path(run) / "training_job_end.ts").touch()


def time_orders(run: str, original: str) -> Iterator[str]:
    """Read a run of many small tensors in both orders, with this project and with upstream."""
    for order in ("name by name", "step by step"):
        speeds = []
        for python, ours in ((sys.executable, True), (original, False)):
            size, seconds, cpu, read = run_script(ORDERS, run, order, python=python, ours=ours)
            speeds.append(size / seconds / 1e6)
            name = "ours" if ours else "smdebug 1.0.34"
            figures = f"{speeds[-1]:>8.1f} MB/s{size / cpu / 1e6:>8.1f} MB a second of processor"
            # The system's count of read bytes does not include those from a socket.
            amount = "" if run.startswith("s3:") else f"   {read / size:.1f} bytes read for each"
            yield f"  {f'{order}, {name}':<42}{figures}{amount}"
        yield f"  {f'{order}, times upstream':<42}{speeds[0] / speeds[1]:>8.1f}   goal: 10"


def measure_orders(folder: str, original: str) -> Iterator[str]:
    run = f"{folder}/small"
    write_small_tensors(run, SMALL_STEPS)
    yield f"{SMALL_STEPS} steps of {SMALL_TENSORS} tensors of {SMALL_BYTES / 1e3:.0f} kB:"
    yield from time_orders(run, original)
    shutil.rmtree(run)
    write_small_tensors(run, SMALL_STEPS_ON_S3)
    with slow_s3.serve(LATENCY_S) as endpoint:
        slow_s3.use(endpoint)
        slow_s3.upload(endpoint, run)
        yield f"{SMALL_STEPS_ON_S3} such steps on S3 that takes {1e3 * LATENCY_S:.0f} ms a request:"
        yield from time_orders("s3://runs/job", original)
    shutil.rmtree(run)


def measure_scan_on_s3(original: str) -> Iterator[str]:
    for latency in (0.0, LATENCY_S):
        with slow_s3.serve(latency) as endpoint:
            slow_s3.use(endpoint)
            with tempfile.TemporaryDirectory() as folder:
                write_collections(folder)
                value = np.arange(4096, dtype=np.float32)
                write_steps(folder, range(S3_STEPS), {"weight": value, "gradient": value})
                (Path(folder) / "training_job_end.ts").touch()
                slow_s3.upload(endpoint, folder)
            run = "s3://runs/job"
            yield f"S3 that takes {1e3 * latency:.0f} ms a request, {S3_STEPS} steps:"
            peers = {
                "values() of one tensor": (sys.executable, True, "values"),
                "the same, a loop over value(step)": (sys.executable, True, "loop"),
                "smdebug 1.0.34, a loop over value(step)": (original, False, "loop"),
            }
            for name, (python, ours, way) in peers.items():
                _, seconds, requests = run_script(SCAN, run, way, python=python, ours=ours)
                yield f"  {name:<42}{seconds:>8.2f} s   {requests} requests"


def measure() -> Iterator[str]:
    original = str(build_upstream())
    with scratch() as folder:
        yield from measure_orders(str(folder), original)
        yield from measure_long_run(str(folder))
        yield from measure_large_run(str(folder))
    yield from measure_scan_on_s3(original)
