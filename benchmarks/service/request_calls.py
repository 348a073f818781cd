"""Function calls that a request costs the emulator, beside another checkout.

    BESIDE=FOLDER python -m benchmarks request_calls

compares this checkout with FOLDER, such as a `git worktree` of an older commit; without BESIDE it is counted alone.
Calls of Python's functions and of those in C are the same on a busy machine, where times are not. What
CreateTrainingJob costs includes the whole run of its job, which fails because its output bucket does not exist.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.service.service import build_ending_request

HERE = Path(__file__).parents[2]
# It may use only what an older commit has, too.
PROGRAM = """
import http.client, json, sys, threading, time
from pathlib import Path

calls = counting = 0
def count(frame, event, argument):
    global calls
    calls += counting and event in ("call", "c_call")
threading.setprofile(count)
from emulator.app import Emulator
from emulator.settings import Settings

emulator = Emulator(Settings(state_dir=Path(sys.argv[1]), runtime="process", port=0), lambda: None)
connection = http.client.HTTPConnection("127.0.0.1", emulator.settings.port)

def ask(operation, **members):
    connection.request("POST", "/", json.dumps(members), {
        "Authorization": "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/sagemaker/aws4_request, "
        "SignedHeaders=host, Signature=0", "X-Amz-Target": "SageMaker." + operation,
        "Content-Type": "application/x-amz-json-1.1"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    return json.loads(content)

def create(name):
    ask("CreateTrainingJob", TrainingJobName=name, **json.loads(sys.argv[2]))
    time.sleep(0.5)  # it has failed, its events are delivered, and its run has left

def measure(times, send):
    global calls, counting
    send("once")  # what the first one of its kind makes is not counted
    calls = 0
    for number in range(times):
        counting = 1
        send(number)
        counting = 0
    return calls / times

for number in range(3):
    create(f"first-{number}")
print(json.dumps({
    "CreateTrainingJob": measure(10, lambda number: create(f"counted-{number}")),
    "DescribeTrainingJob": measure(20, lambda _: ask("DescribeTrainingJob", TrainingJobName="first-0")),
    "ListTrainingJobs": measure(20, lambda _: ask("ListTrainingJobs", MaxResults=10)),
}))
emulator.close()
"""


def count_calls(checkout: Path) -> dict[str, float]:
    """Return the calls of one request, by operation."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, f"{folder}/state", json.dumps(build_ending_request())],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure() -> Iterator[str]:
    ours = count_calls(HERE)
    beside = os.environ.get("BESIDE")
    theirs = {} if beside is None else count_calls(Path(beside))
    for operation, calls in ours.items():
        compared = f"   {beside} {theirs[operation]:7.0f}   {calls / theirs[operation]:4.2f} x" if theirs else ""
        yield f"{operation:<20} {calls:7.0f} calls{compared}"
