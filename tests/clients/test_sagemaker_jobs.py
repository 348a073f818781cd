"""Tests of the SageMaker SDK (version 2): processing jobs and a tuning job.

Each of the SDK's processors runs to the end.
"""

import json
import os
import subprocess
import sys
import uuid
from typing import Any

import pytest

from sdk_compat.environment import prepare_environment
from tests.running_emulator import RunningEmulator

# By day: test_processing.py and test_tuning.py of integration/emulator/jobs/runs have such jobs.
pytestmark = [pytest.mark.any_back_end, pytest.mark.nightly]

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
# What a processor's script finds where SageMaker puts it; a process without /opt/ml finds it in SAGEMAKER_BASE_DIR.
COUNT = """
import json, os, pathlib, sys
ml = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
rows = (ml / "processing/input/data/rows.csv").read_text().split()
(ml / "processing/output").mkdir(parents=True, exist_ok=True)
(ml / "processing/output/count.json").write_text(json.dumps({"rows": len(rows), "arguments": sys.argv[1:]}))
print("counted", len(rows))
"""
# The same in so few characters as an entry point may have: a path in it is found wherever it is.
IN_PLACE = (
    "import json, sys; rows = open('/opt/ml/processing/input/data/rows.csv').read().split(); "
    "file = open('/opt/ml/processing/output/count.json', 'w'); "
    "json.dump({'rows': len(rows), 'arguments': sys.argv[1:]}, file)"
)
SCRIPT = """
import json, sys
from pathlib import Path
from sagemaker.processing import FrameworkProcessor, ProcessingInput, ProcessingOutput, Processor, ScriptProcessor
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session
from sagemaker.tuner import CategoricalParameter, ContinuousParameter, HyperparameterTuner

image, prefix, count, in_place, train, kinds = sys.argv[1:]
session = Session()
bucket = session.default_bucket()
Path("count.py").write_text(count)
Path("rows.csv").write_text("a b c")
data = session.upload_data("rows.csv", bucket=bucket, key_prefix=f"{prefix}/data")
common = {
    "role": "arn:aws:iam::123456789012:role/Processing",
    "instance_count": 1,
    "instance_type": "ml.m5.large",
    "sagemaker_session": session,
}
for kind in kinds.split(","):
    where = {
        "inputs": [ProcessingInput(source=data, destination="/opt/ml/processing/input/data", input_name="data")],
        "outputs": [ProcessingOutput(source="/opt/ml/processing/output", output_name="report")],
        "arguments": ["--kind", kind],
        "job_name": f"{prefix}-{kind}",
        "logs": False,
    }
    if kind == "Processor":
        Processor(image_uri=image, entrypoint=["python3", "-c", in_place], **common).run(**where)
    elif kind == "ScriptProcessor":
        ScriptProcessor(image_uri=image, command=["python3"], **common).run(code="count.py", **where)
    else:
        processor = FrameworkProcessor(
            estimator_cls=PyTorch, framework_version="2.8.0", py_version="py312", image_uri=image, **common
        )
        Path("source").mkdir()
        Path("source/count.py").write_text(count)
        processor.run(code="count.py", source_dir="source", **where)
    description = session.describe_processing_job(f"{prefix}-{kind}")
    uri = description["ProcessingOutputConfig"]["Outputs"][0]["S3Output"]["S3Uri"]
    key = uri.removeprefix(f"s3://{bucket}/") + "/count.json"
    report = json.loads(session.read_s3_file(bucket, key))
    print("\\nFOUND", json.dumps({"kind": kind, "status": description["ProcessingJobStatus"], **report}))

Path("tuned").mkdir()
Path("tuned/train.py").write_text(train)
estimator = PyTorch(
    entry_point="train.py",
    source_dir="tuned",
    framework_version="2.8.0",
    py_version="py312",
    image_uri=image,
    hyperparameters={"epochs": 3},
    output_path=f"s3://{bucket}/output",
    **common,
)
tuner = HyperparameterTuner(
    estimator,
    objective_metric_name="loss",
    hyperparameter_ranges={"rate": ContinuousParameter(1, 2), "kind": CategoricalParameter(["a", "b"])},
    metric_definitions=[{"Name": "loss", "Regex": "loss=(.*?);"}],
    strategy="Bayesian",
    objective_type="Minimize",
    max_jobs=2,
    max_parallel_jobs=2,
)
tuner.fit({"data": f"s3://{bucket}/{prefix}/data"}, job_name=f"tune-{prefix[-8:]}", wait=False)
try:
    session.wait_for_tuning_job(tuner.latest_tuning_job.name, poll=1)
finally:
    for each in tuner.analytics().training_job_summaries():
        print(each["TrainingJobName"], each.get("FailureReason"))
frame = tuner.analytics().dataframe()
found = {
    "kind": "HyperparameterTuner",
    "status": tuner.describe()["HyperParameterTuningJobStatus"],
    "best": tuner.best_training_job(),
    "losses": {name: value for name, value in zip(frame["TrainingJobName"], frame["FinalObjectiveValue"])},
}
print("\\nFOUND", json.dumps(found))
"""
# Its hyperparameters come as arguments, text in quotes of JSON's.
TRAIN = """
import argparse, json
parser = argparse.ArgumentParser()
for name in ("--rate", "--kind", "--epochs"):
    parser.add_argument(name, required=True)
given = parser.parse_args()
print(f"loss={float(given.rate) ** 2};", given.kind, given.epochs)
"""


@pytest.fixture(scope="module")
def processed(emulator: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each processor's job left; one run of them all, because the SDK is slow to import."""
    folder = tmp_path_factory.mktemp("sdk")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= prepare_environment(emulator.endpoint_url, environment, folder=folder)
    prefix = f"processing-{uuid.uuid4().hex[:8]}"
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, IMAGE, prefix, COUNT, IN_PLACE, TRAIN, ",".join(KINDS)]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=560, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + emulator.log_text()
    lines = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return {each["kind"]: each for each in map(json.loads, lines)}


KINDS = ("Processor", "ScriptProcessor", "FrameworkProcessor")


@pytest.mark.parametrize("kind", KINDS)
def test_a_processors_job_runs_to_its_end(processed: dict[str, dict[str, Any]], kind: str) -> None:
    assert processed[kind] == {"kind": kind, "status": "Completed", "rows": 3, "arguments": ["--kind", kind]}


def test_a_tuners_job_finds_its_best_training(processed: dict[str, dict[str, Any]]) -> None:
    found = processed["HyperparameterTuner"]
    assert found["status"] == "Completed"
    assert len(found["losses"]) == 2
    assert found["best"] == min(found["losses"], key=found["losses"].__getitem__)
