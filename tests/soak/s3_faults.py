"""Soak: failing S3 requests, beside jobs with hook and rule.

Each job ends right, and the log reports the retries.
"""

import json
from urllib.request import Request, urlopen

from tests.soak.course import Course
from tests.soak.small_job import build_job
from tests.soak.stage import Stage

LONG, SHORT = 100, 1
# smdebug's client gives up after five failures of one request in a row: one in 100,000, and none of four.
MANY = {"error": 0.1}
FEW = {"error": 1.0, "times": 4}
RUNTIMES = ("process", "docker")


def run(course: Course) -> None:
    """Run a job in each round."""
    with Stage(course, attempts=10) as stage:
        faults = json.dumps({"s3": MANY if course.count >= LONG else FEW}).encode()
        url = f"{stage.emulator.endpoint_url}/_emulator/faults"
        with urlopen(Request(url, faults, method="PUT")) as answer:
            assert answer.status == 200
        for seed, random in course.draw_rounds():
            name, sick = f"faults-{seed}", random.random() < 0.5
            with course.noting(seed):
                request = build_job(name, sick=sick, environment={"SOAK": f"{stage.mark}-{name}"})
                stage.client("sagemaker").create_training_job(**request)
                stage.judge(seed, name, sick=sick)
            retries = stage.read_log().count("Retrying")
            with urlopen(url) as answer:
                struck = json.load(answer)["s3"]["struck"].get("error", 0)
            course.figures |= {"faults": f"{struck:,}", "retries in the log": f"{retries:,}"}
        if not retries:
            course.fail(course.seed, f"the log tells of no retry, after {struck} faults")
