"""Soak: an emulator killed at random moments of a job, and restarted.

The job has a hook, a rule and a stop handler.
"""

import threading
import time

from botocore.exceptions import BotoCoreError, ClientError

from tests.soak.course import Course
from tests.soak.small_job import build_job
from tests.soak.stage import Stage

LONG, SHORT = 200, 1
RUNTIMES = ("process", "docker")
STARTS = ("warm", "cold")


def run(course: Course) -> None:
    """Kill it once in each round."""
    with Stage(course) as stage:
        # How long each kind of job takes here: the kill comes at any moment of that.
        seconds = {}
        # The second time, that is: the first one waits for what is started and compiled once.
        for number, sick in enumerate((True, False, True) if course.count > 1 else (True, False)):
            began, name = time.monotonic(), f"unkilled-{number}"
            environment = {"SOAK": f"{stage.mark}-{name}"}
            stage.client("sagemaker").create_training_job(**build_job(name, sick=sick, environment=environment))
            stage.wait_for_end(name)
            seconds[sick] = time.monotonic() - began
            stage.judge(course.seed, name, sick=sick)
        stages: dict[str, int] = {}
        for seed, random in course.draw_rounds():
            sick = random.random() < 0.5
            after = random.uniform(0.0, seconds[sick])
            with course.noting(seed):
                stage_name = _run_round(stage, seed, sick=sick, after=after)
                stages[stage_name] = stages.get(stage_name, 0) + 1
            course.figures["killed in"] = ", ".join(f"{each} {count}" for each, count in sorted(stages.items()))


def _run_round(stage: Stage, seed: int, *, sick: bool, after: float) -> str:
    """Create a job and kill the emulator; return the stage that the job was in."""
    name = f"killed-{seed}"
    killer = threading.Timer(after, stage.emulator.process.kill)
    killer.start()
    try:
        request = build_job(name, sick=sick, environment={"SOAK": f"{stage.mark}-{name}"})
        stage.client("sagemaker").create_training_job(**request)
    except (BotoCoreError, ClientError, ConnectionError):
        if stage.emulator.process.poll() is None:
            killer.join()
            stage.emulator.process.wait(60)
    finally:
        killer.join()
    stage.emulator.kill()
    stage.restart()
    job = stage.describe(name)
    if job is None:  # it was killed before it had the request
        stage.judge_events(seed, None)
        stage.judge_remains(seed, name)
        return "Create"
    found = str(job["SecondaryStatus"])
    stage.judge(seed, name, sick=sick)
    return found
