"""The sagemaker SDK (version 2) runs processing jobs by each of its processors, to the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from sdk_compat.environment import prepare_environment

if TYPE_CHECKING:
    from tests.running_emulator import RunningEmulator

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.3.0-cpu-py311"
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

image, prefix, count, in_place, kinds = sys.argv[1:]
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
            estimator_cls=PyTorch, framework_version="2.3.0", py_version="py311", image_uri=image, **common
        )
        Path("source").mkdir()
        Path("source/count.py").write_text(count)
        processor.run(code="count.py", source_dir="source", **where)
    description = session.describe_processing_job(f"{prefix}-{kind}")
    uri = description["ProcessingOutputConfig"]["Outputs"][0]["S3Output"]["S3Uri"]
    key = uri.removeprefix(f"s3://{bucket}/") + "/count.json"
    report = json.loads(session.read_s3_file(bucket, key))
    print("\\nFOUND", json.dumps({"kind": kind, "status": description["ProcessingJobStatus"], **report}))
"""


@pytest.fixture(scope="module")
def processed(emulator: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each processor's job left; one run of them all, because the SDK is slow to import."""
    folder = tmp_path_factory.mktemp("sdk")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= prepare_environment(emulator.endpoint_url, environment, folder=folder)
    prefix = f"processing-{uuid.uuid4().hex[:8]}"
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, IMAGE, prefix, COUNT, IN_PLACE, ",".join(KINDS)]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=270, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + emulator.log_text()
    lines = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return {each["kind"]: each for each in map(json.loads, lines)}


KINDS = ("Processor", "ScriptProcessor", "FrameworkProcessor")


@pytest.mark.parametrize("kind", KINDS)
def test_a_processors_job_runs_to_its_end(processed: dict[str, dict[str, Any]], kind: str) -> None:
    assert processed[kind] == {"kind": kind, "status": "Completed", "rows": 3, "arguments": ["--kind", kind]}
