"""Soak: fuzzed requests to a whole emulator, none answered with a 5xx.

They go to S3, SageMaker, Lambda and EventBridge.
"""

from random import Random

from emulator.operations import find_operations
from tests.integration.emulator.gateway.test_conformance import find_moto_operations
from tests.integration.emulator.gateway.test_fuzz import Fuzz, is_answer
from tests.integration.emulator.moto_services.test_fuzz import build_json, build_lambda, build_s3, send, speaks
from tests.soak.course import Course
from tests.soak.stage import Stage

LONG, SHORT = 5000, 100
RUNTIMES = ("process",)
SERVICES = ("s3", "sagemaker", "lambda", "events")


def run(course: Course) -> None:
    """Send one request in each round, to each service in turn."""
    with Stage(course) as stage:
        stage.client("s3").create_bucket(Bucket="bbb")
        stage.client("s3").put_object(Bucket="bbb", Key="k", Body=b"v")
        operations, fuzz = [*find_operations(), *find_moto_operations()], Fuzz()
        statuses: dict[str, int] = {}
        for seed, random in course.draw_rounds():
            service = SERVICES[seed % len(SERVICES)]
            with course.noting(seed):
                status = _send_one(course, stage, seed, service, random, operations, fuzz)
                key = f"{service} {status // 100}xx"
                statuses[key] = statuses.get(key, 0) + 1
        course.figures["answers"] = ", ".join(f"{each} {count:,}" for each, count in sorted(statuses.items()))


def _send_one(
    course: Course, stage: Stage, seed: int, service: str, random: Random, operations: list[str], fuzz: Fuzz
) -> int:
    if service == "s3":
        method, path, body, headers = build_s3(random)
    elif service == "lambda":
        method, path, body, headers = build_lambda(random)
    elif service == "events":
        method, path, body, headers = build_json(random, service)
    else:
        name = random.choice(operations)
        headers = {"X-Amz-Target": f"SageMaker.{name}", "Content-Type": "application/x-amz-json-1.1"}
        method, path, body = "POST", "/", fuzz.build(name, random)
    status, kind, answer = send(stage.emulator.port, service, method, path, body, headers)
    right = is_answer(status, answer) if service == "sagemaker" else speaks(service, status, answer)
    if (status >= 500 and not (status == 501 and service == "s3")) or not right:
        request = f"{method} {path[:200]} {headers} {body[:300]!r}"
        course.fail(seed, f"{service}: {request}\nanswered {status} {kind} {answer[:300]!r}")
    return status
