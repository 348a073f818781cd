"""Start-up cost of a rule container. Goal: under 120 MB and 1 s of CPU time.

The job does not train, and its rule waits for steps. This process writes the run's collections file to S3, so that the
rule opens the run. One second later, the rule has imported and read everything that it needs before the first step. The
kernel reports the peak resident memory and the processor time of the container's process. After that, the benchmark
measures the processor time of the rule while it polls for steps.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.shared.engine import back_ends
from benchmarks.shared.rule_job import BUCKET, build_rule, open_emulator, run_in_a_process, waiting_job
from smdebug.config.collection_manager import CollectionManager

SETTLING_SECONDS, WATCHED_SECONDS = 1.0, 5.0
TICKS = os.sysconf("SC_CLK_TCK")


def find_process(training_job: str) -> Path:
    """Return the /proc folder of the rule container's process: the largest process with the job's name."""
    marked = f"PROCESSING_JOB_NAME={training_job}-".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marked in (folder / "environ").read_bytes():
                found.append(folder)
        except OSError:
            continue
    return max(found, key=read_memory_mb)


def read_memory_mb(process: Path) -> float:
    lines = (process / "status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def read_cpu_seconds(process: Path) -> float:
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure_back_end(runtime: str) -> str:
    with open_emulator(runtime) as emulator, waiting_job(emulator, [build_rule("VanishingGradient", "R")]) as name:
        process = find_process(name)
        manager = CollectionManager()
        manager.set_num_workers(1)
        manager.export(f"s3://{BUCKET}/tensors/{name}/debug-output", "worker_0_collections.json")
        time.sleep(SETTLING_SECONDS)
        memory, seconds = read_memory_mb(process), read_cpu_seconds(process)
        time.sleep(WATCHED_SECONDS)
        idle = (read_cpu_seconds(process) - seconds) / WATCHED_SECONDS
    return (
        f"{runtime:<8} {memory:5.0f} MB, {seconds:.2f} s of processor time before the first step; then "
        f"{100 * idle:.1f} % of a processor while it waits (goal: 120 MB, 1 s)"
    )


def measure() -> Iterator[str]:
    for runtime in back_ends():
        yield run_in_a_process(measure_back_end, runtime)
