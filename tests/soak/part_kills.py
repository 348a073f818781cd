"""Soak: one part of a job killed, while all other parts stay correct.

The part is the training, a rule, a supervisor, the stop handler's worker, or what waits with its imports done: the
warm interpreters of local processes, the spare containers of Docker.
"""

import os
import signal
import time
from pathlib import Path

from tests.soak.course import Course, is_true_within
from tests.soak.small_job import build_job
from tests.soak.stage import Stage

LONG, SHORT = 100, 5
RUNTIMES = ("process", "docker")
STARTS = ("warm", "cold")
_PARTS = ("training", "rule", "supervisor", "worker", "warm")
# What the command line, or the environment, of each holds.
_MARKS = {"rule": "smdebug.rules.evaluator", "worker": "AWS_LAMBDA_FUNCTION_NAME="}


def run(course: Course) -> None:
    """Kill one part in each round, each kind in turn, at a random moment."""
    with Stage(course) as stage:
        killed: dict[str, int] = {}
        for seed, random in course.draw_rounds():
            part = _PARTS[seed % len(_PARTS)]
            with course.noting(seed):
                if _run_round(course, stage, seed, part, random.uniform(0.0, 2.0)):
                    killed[part] = killed.get(part, 0) + 1
            course.figures["killed"] = ", ".join(f"{each} {count}" for each, count in sorted(killed.items()))


def _run_round(course: Course, stage: Stage, seed: int, part: str, after: float) -> bool:
    """Kill a part of a job that trains until it is stopped; whether it was there to be killed."""
    name = f"part-{seed}"
    sagemaker = stage.client("sagemaker")
    sagemaker.create_training_job(**build_job(name, sick=True, environment={"SOAK": f"{stage.mark}-{name}"}))
    found: list[int] = []

    def is_there() -> bool:
        found[:] = _find(stage, name, part)
        job = stage.describe(name)
        return bool(found) or (job is not None and job["TrainingJobStatus"] != "InProgress")

    is_true_within(60, is_there)
    time.sleep(after)
    found = _find(stage, name, part)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    if found and part == "rule":
        # Nobody is left to have the job stopped.
        is_true_within(60, lambda: _has_verdict(stage, name))
        if (stage.describe(name) or {})["TrainingJobStatus"] == "InProgress":
            sagemaker.stop_training_job(TrainingJobName=name)
    job = stage.wait_for_end(name)
    ended = job["TrainingJobStatus"], job["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"]
    right = {("Stopped", "IssuesFound")}  # also where the part had done its work
    if found and part in ("training", "supervisor"):
        right |= {("Failed", status) for status in ("IssuesFound", "Stopped", "Error")}
        if ended[0] == "Failed" and "SIGKILL" not in job["FailureReason"]:
            course.fail(seed, f"{name}: the reason says nothing of the kill: {job['FailureReason']}")
    if found and part == "rule":
        right |= {("Stopped", "Error")}
    if ended not in right:
        course.fail(seed, f"{name} ended {ended} after its {part} was killed: {job.get('FailureReason')}")
    stage.judge_events(seed, job)
    stage.judge_remains(seed, name)
    return bool(found)


def _has_verdict(stage: Stage, name: str) -> bool:
    job = stage.describe(name)
    assert job is not None
    return job["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] != "InProgress"


def _find(stage: Stage, name: str, part: str) -> list[int]:
    """Find the processes of a part of a job, newest last."""
    found = []
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            command = (folder / "cmdline").read_bytes()
            text = (command + b"\0" + (folder / "environ").read_bytes()).decode(errors="replace")
        except OSError:
            continue
        endpoint = f":{stage.emulator.port}" in text
        is_supervisor = b"supervisor.py" in command
        if part == "supervisor":
            is_it = is_supervisor and f"{stage.state_dir}/containers/smdebug-{name}-" in text
        elif part == "warm":
            is_it = _is_warm(stage, folder, command)
        elif part == "training":
            is_it = f"{stage.mark}-{name}" in text and not is_supervisor
        else:
            # A rule that is a fork has the command line of the warm interpreter.
            is_fork = b"warm_interpreter.py" in command and _MARKS["worker"] not in text and stage.mark not in text
            is_it = endpoint and not is_supervisor and (_MARKS[part] in text or (part == "rule" and is_fork))
        if is_it:
            found.append(int(folder.name))
    return found


def _is_warm(stage: Stage, folder: Path, command: bytes) -> bool:
    """Return whether a process waits for a program, and has none yet."""
    try:
        if b"warm_interpreter.py" in command:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            return parent == stage.emulator.process.pid
        # Not the container's init process, which has the same arguments and never the program's variables.
        if command.partition(b"\0")[2].partition(b"\0")[0].endswith(b"spare_program.py"):
            # The folder is mounted until a program has begun.
            given = f":{stage.emulator.port}".encode() in (folder / "environ").read_bytes()
            return not given and f"{stage.state_dir}/" in (folder / "mountinfo").read_text()
    except OSError:
        pass
    return False
