"""Soak: many jobs in a row, at constant memory, threads and open files.

The database grows by the jobs' own records only.
"""

import re
from pathlib import Path

from tests.soak.course import Course, is_true_within
from tests.soak.small_job import BUCKET, build_job
from tests.soak.stage import Stage
from tests.waiting import ENDED

LONG, SHORT = 2000, 8
RUNTIMES = ("process", "docker")
_AT_ONCE = 4
_MOST_GROWTH_BYTES, _MOST_RECORD_BYTES = 40_000_000, 40_000


def run(course: Course) -> None:
    """Run one job in each round, some at a time; the first tenth of them is what the rest is compared with."""
    with Stage(course) as stage:
        sagemaker, running = stage.client("sagemaker"), []
        warm = max(1, course.count // 10)
        first: dict[str, int] = {}

        def wait_for(names: list[str]) -> None:
            for each in names:
                is_true_within(300, lambda: (stage.describe(each) or {}).get("TrainingJobStatus") in ENDED)  # noqa: B023
                job = stage.describe(each)
                if job is None or job["TrainingJobStatus"] != "Completed":
                    course.fail(int(each.rpartition("-")[2]), f"{each}: {job}")

        for number, (seed, _) in enumerate(course.draw_rounds()):
            name = f"many-{seed}"
            request = build_job(name, sick=False, environment={"SOAK": f"{stage.mark}-{name}"})
            for member in ("DebugRuleConfigurations", "DebugHookConfig", "HyperParameters", "InputDataConfig"):
                del request[member]
            request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/bin/true"]
            request["OutputDataConfig"] = {"S3OutputPath": f"s3://{BUCKET}/output"}
            sagemaker.create_training_job(**request)
            running.append(name)
            if len(running) == _AT_ONCE or number == course.count - 1:
                wait_for(running)
                running.clear()
                with course.noting(seed):
                    stage.judge_events(seed, None)
            if number >= warm - 1 and not first and not running:
                first = _measure(stage) | {"jobs": number + 1}
        stage.judge_remains(course.seed, "many-")
        last = _measure(stage)
        done = course.count - first["jobs"]
        for what in ("memory", "threads", "files", "database"):
            course.figures[what] = (
                f"{first[what]:,} after {first['jobs']:,} jobs, {last[what]:,} after {course.count:,}"
            )
        record = (last["database"] - first["database"]) / max(1, done)
        course.figures["database a job"] = f"{record:,.0f} bytes"
        wrong = {
            "memory": last["memory"] - first["memory"] > _MOST_GROWTH_BYTES,
            "threads": last["threads"] > first["threads"] + 8,
            "files": last["files"] > first["files"] + 16,
            "database": done > 100 and record > _MOST_RECORD_BYTES,
        }
        if grown := [what for what, grew in wrong.items() if grew]:
            course.fail(course.seed, f"not flat: {grown}: {first}, {last}")


def _measure(stage: Stage) -> dict[str, int]:
    folder = Path(f"/proc/{stage.emulator.process.pid}")
    status = (folder / "status").read_text()
    found = {name: re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE) for name in ("VmRSS", "Threads")}
    numbers = {name: int(match[1]) for name, match in found.items() if match}
    return {
        "memory": numbers["VmRSS"] * 1024,
        "threads": numbers["Threads"],
        "files": len(list((folder / "fd").iterdir())),
        "database": sum(path.stat().st_size for path in stage.state_dir.glob("jobs.sqlite*")),
    }
