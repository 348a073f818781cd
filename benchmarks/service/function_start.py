"""Start time of a Lambda function. Goal: 0.1 s from Invoke to the answer.

Each function is new, so its worker starts for the first invocation. The second one, by the worker that runs, shows what
is no start. Seven functions; one more before them is not counted. Two seconds pass between them, in which the Docker
back end makes its next spare container: functions that start sooner after each other wait for it, or start cold.
"""

import io
import json
import statistics
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.shared.clients import build_client
from benchmarks.shared.engine import back_ends
from sdk_compat.emulator_process import EmulatorProcess

ROUNDS = 7
PAUSE_SECONDS = 2.0
_TRUST = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
_HANDLER = "def handle(event, context): return event"


def zip_handler() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("handler.py", _HANDLER)
    return content.getvalue()


def time_invocation(client: Any, name: str) -> float:
    """Return the seconds of one invocation.

    Raises:
        RuntimeError: the function failed.
    """
    began = time.perf_counter()
    answer = client.invoke(FunctionName=name, Payload=b'"said"')
    seconds = time.perf_counter() - began
    if (said := answer["Payload"].read()) != b'"said"':
        raise RuntimeError(said)
    return seconds


def measure() -> Iterator[str]:
    for runtime in back_ends():
        with (
            tempfile.TemporaryDirectory() as folder,
            EmulatorProcess(Path(folder) / "state", runtime=runtime) as emulator,
        ):
            iam, client = (build_client(service, emulator.endpoint_url) for service in ("iam", "lambda"))
            trust = json.dumps({"Version": "2012-10-17", "Statement": [_TRUST]})
            role = iam.create_role(RoleName="functions", AssumeRolePolicyDocument=trust)
            times = []
            for number in range(ROUNDS + 1):
                client.create_function(
                    FunctionName=f"function-{number}",
                    Runtime="python3.11",
                    Role=role["Role"]["Arn"],
                    Handler="handler.handle",
                    Code={"ZipFile": zip_handler()},
                )
                time.sleep(PAUSE_SECONDS)
                times.append([time_invocation(client, f"function-{number}") for _ in range(2)])
        first, second = (statistics.median(each) for each in zip(*times[1:], strict=True))
        yield f"{runtime:<8} first {first:6.3f} s   second {second:6.3f} s   (goal of the first: 0.1 s)"
