"""Seconds of a job from request to verdict, beside its script run by hand.

For each framework and back end, a job trains a small model for twenty steps with a hook and one rule. "By hand" is the
same script in the same environment without an emulator, from the start of its interpreter to its end. Before each job
in Docker, the spare containers of its training and its rule are ready again.
"""

import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.shared.engine import back_ends
from benchmarks.shared.logs import find_line
from benchmarks.shared.rule_job import (
    BUCKET,
    REGION,
    Endpoint,
    build_client,
    build_request,
    build_rule,
    open_emulator,
    wait_until,
)
from benchmarks.shared.spares import wait_for_spares

ROUNDS = int(os.environ.get("ROUNDS", "10"))
_RULES = "sagemaker-debugger-rules"
# Seconds to the first line and to the verdict, by back end.
_GOALS: dict[str, dict[str, tuple[float | None, float]]] = {
    "PyTorch": {"process": (0.3, 1.0), "docker": (0.6, 1.5)},
    "Keras fit": {"process": (None, 1.5), "docker": (None, 2.0)},
    "XGBoost": {"process": (None, 0.8), "docker": (None, 1.2)},
}
_ACCOUNT = f"763104351884.dkr.ecr.{REGION}.amazonaws.com"
_FIRST = "import time\nprint('first', time.time(), flush=True)"
_LAST = "print('last', time.time(), flush=True)\n"
_TORCH = """
import torch
FIRST
network, loss = torch.nn.Linear(8, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for _ in range(20):
    optimizer.zero_grad()
    loss(network(torch.ones(4, 8)), torch.ones(4, 1)).backward()
    optimizer.step()
"""
_KERAS = """
import keras, numpy
FIRST
network = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
network.compile(optimizer="sgd", loss="mse")
network.fit(numpy.ones((80, 8)), numpy.ones((80, 1)), batch_size=4, verbose=0)
"""
_XGBOOST = """
import numpy, xgboost
FIRST
values = numpy.arange(400.0).reshape(50, 8)
data = xgboost.DMatrix(values, values[:, 0])
xgboost.train({"max_depth": 2}, data, num_boost_round=20, evals=[(data, "train")], verbose_eval=False)
"""


@dataclass(frozen=True, slots=True)
class Work:
    """A training script, its image and the collection that its hook saves."""

    name: str
    image: str
    local: str
    collection: str
    script: str

    def build_script(self) -> str:
        """Return the script. It prints its first line when its imports are done."""
        return self.script.replace("FIRST", _FIRST) + _LAST


WORKS = (
    Work("PyTorch", f"{_ACCOUNT}/pytorch-training:2.13.0-cpu-py311", "pytorch-training", "losses", _TORCH),
    Work("Keras fit", f"{_ACCOUNT}/tensorflow-training:2.21.0-cpu-py311", "tensorflow-training", "losses", _KERAS),
    Work("XGBoost", f"{_ACCOUNT}/sagemaker-xgboost:3.2-1", "sagemaker-xgboost", "metrics", _XGBOOST),
)


@dataclass(frozen=True, slots=True)
class Times:
    """Times of a job, in seconds after CreateTrainingJob was sent."""

    first: float
    last: float
    completed: float
    verdict: float


def store_script(emulator: Endpoint, work: Work) -> str:
    bundle, content = io.BytesIO(), work.build_script().encode()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        entry = tarfile.TarInfo("train.py")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    key = f"source/{work.local}.tar.gz"
    build_client(emulator, "s3").put_object(Bucket=BUCKET, Key=key, Body=bundle.getvalue())
    return f"s3://{BUCKET}/{key}"


def time_job(emulator: Endpoint, work: Work, source: str) -> Times:
    name = f"seconds-{uuid.uuid4().hex[:8]}"
    rule = build_rule("LossNotDecreasing", "Rule", collection_names=work.collection, num_steps="1000")
    hyperparameters = {"sagemaker_program": "train.py", "sagemaker_submit_directory": source}
    request = build_request(name, [rule]) | {
        "AlgorithmSpecification": {"TrainingImage": work.image, "TrainingInputMode": "File"},
        "HyperParameters": {key: json.dumps(value) for key, value in hyperparameters.items()},
    }
    request["DebugHookConfig"]["CollectionConfigurations"] = [
        {"CollectionName": work.collection, "CollectionParameters": {"save_interval": "1"}}
    ]
    sagemaker = build_client(emulator, "sagemaker")
    began = time.time()
    sagemaker.create_training_job(**request)
    described: dict[str, Any] = {}

    def has_ended() -> bool:
        described.update(sagemaker.describe_training_job(TrainingJobName=name))
        running = {"InProgress", "Stopping"}
        statuses = [each["RuleEvaluationStatus"] for each in described["DebugRuleEvaluationStatuses"]]
        return described["TrainingJobStatus"] not in running and running.isdisjoint(statuses)

    wait_until(has_ended, lambda: described)
    (evaluation,) = described["DebugRuleEvaluationStatuses"]
    if described["TrainingJobStatus"] != "Completed" or evaluation["RuleEvaluationStatus"] != "NoIssuesFound":
        raise RuntimeError(f"{name}: {described}")
    logs = build_client(emulator, "logs")
    printed = (float(find_line(logs, name, word).split()[1]) for word in ("first", "last"))
    stored = (described["TrainingEndTime"].timestamp(), evaluation["LastModifiedTime"].timestamp())
    return Times(*(at - began for at in (*printed, *stored)))


def time_by_hand(work: Work, runtime: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(work.build_script())
        command = [sys.executable, str(script)]
        if runtime == "docker":
            image = f"smdebug-emulator/{work.local}:latest"
            mount = ["--volume", f"{folder}:/script:ro", "--entrypoint", "python"]
            command = ["docker", "run", "--rm", *mount, image, "/script/train.py"]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
        began = time.monotonic()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return time.monotonic() - began


def measure() -> Iterator[str]:
    for runtime in back_ends():
        with open_emulator(runtime) as emulator:
            for work in WORKS:
                source = store_script(emulator, work)
                time_job(emulator, work, source)  # not counted, because the first job also loads code and files
                jobs, by_hand = [], []
                for _ in range(ROUNDS):
                    if runtime == "docker":
                        wait_for_spares({work.local, _RULES})
                    jobs.append(time_job(emulator, work, source))
                    by_hand.append(time_by_hand(work, runtime))
                first, last, completed, verdict = (
                    statistics.median(getattr(each, name) for each in jobs) for name in Times.__slots__
                )
                goals = zip(("first line", "verdict"), _GOALS[work.name].get(runtime, ()), strict=False)
                goal = ", ".join(f"{name} {seconds} s" for name, seconds in goals if seconds is not None)
                yield (
                    f"{runtime:<8} {work.name:<10} first line {first:5.2f} s   last {last:5.2f}   "
                    f"Completed {completed:5.2f}   verdict {verdict:5.2f}   "
                    f"last line to verdict {verdict - last:5.2f}   by hand {statistics.median(by_hand):5.2f} s   "
                    f"goal: {goal}"
                )
