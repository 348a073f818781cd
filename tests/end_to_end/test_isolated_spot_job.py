"""Tests of one isolated Spot job with Pipe and FastFile channels.

It runs in both back ends.
"""

import json
import os
import urllib.request
import uuid

import pytest

from container_runtime.process.namespace_grant import probe_namespaces
from tests.end_to_end.finished_jobs import read_log, wait_until_ended
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

BUCKET = "isolated-spot"
RUN = "import json; exec(json.loads(json.load(open('/opt/ml/input/config/hyperparameters.json'))['script']))"
SCRIPT = """
import os, pathlib, signal, socket, sys, time
checkpoint = pathlib.Path("/opt/ml/checkpoints/epoch")
begun = int(checkpoint.read_text()) if checkpoint.exists() else 0
print("begins at", begun, "reaches", [name for _, name in socket.if_nameindex() if name[0] in "le"])
with open("/opt/ml/input/data/train_0", "rb") as pipe:
    print("read", pipe.read().decode(), flush=True)
fast = pathlib.Path("/opt/ml/input/data/fast/x")
try:
    fast.write_text("another row")
except OSError as error:
    print("fast", fast.read_text(), fast.stat().st_nlink, error.strerror, flush=True)
def save(*_):
    checkpoint.write_text("3")
    sys.exit()
if not begun:
    signal.signal(signal.SIGTERM, save)
    print("waits", flush=True)
    time.sleep(600)
pathlib.Path("/opt/ml/model/weights").write_text("w")
pathlib.Path("/tmp/only-here").touch()
"""


def test_isolated_spot_job(emulator: RunningEmulator) -> None:
    sagemaker, s3, name = emulator.client("sagemaker"), emulator.client("s3"), f"spot-{uuid.uuid4().hex[:8]}"
    with urllib.request.urlopen(f"{emulator.endpoint_url}/_emulator/health") as health:
        runtime = json.load(health)["runtime"]
    if runtime == "process" and not probe_namespaces().network:
        pytest.skip("the kernel grants no namespaces")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="data/x", Body=b"a row")
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data/"}
    sagemaker.create_training_job(
        TrainingJobName=name,
        RoleArn="arn:aws:iam::123456789012:role/x",
        AlgorithmSpecification={
            "TrainingImage": "sagemaker-debugger-rules:latest",
            "TrainingInputMode": "Pipe",
            "ContainerEntrypoint": ["python", "-c", RUN],
        },
        HyperParameters={"script": json.dumps(SCRIPT)},
        InputDataConfig=[
            {"ChannelName": "train", "DataSource": {"S3DataSource": source}},
            {"ChannelName": "fast", "InputMode": "FastFile", "DataSource": {"S3DataSource": source}},
        ],
        OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/out"},
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/checkpoints/{name}"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 600},
        EnableManagedSpotTraining=True,
        EnableNetworkIsolation=True,
    )

    def find_failure() -> str | None:
        return sagemaker.describe_training_job(TrainingJobName=name).get("FailureReason")

    wait_until(lambda: "waits" in read_log(emulator, name) or find_failure(), lambda: emulator.log_text())
    assert find_failure() is None
    url = f"{emulator.endpoint_url}/_emulator/training-jobs/{name}/interrupt"
    with urllib.request.urlopen(urllib.request.Request(url, method="POST")) as answer:
        assert answer.status == 202
    done = wait_until_ended(emulator, name)
    assert done["TrainingJobStatus"] == "Completed", done
    assert "Interrupted" in [each["Status"] for each in done["SecondaryStatusTransitions"]]
    log = read_log(emulator, name)
    # On a Swarm it has a network of its own, with nobody else on it; what is carried there has no second name.
    reaches = ["lo", "eth0"] if runtime == "swarm" else ["lo"]
    names = 1 if runtime == "swarm" and "SMDEBUG_EMULATOR_SHARED_FOLDER" not in os.environ else 2
    fast = f"fast a row {names} Read-only file system"
    assert f"begins at 0 reaches {reaches}\nread a row\n{fast}\nwaits" in log
    assert f"begins at 3 reaches {reaches}\nread a row\n{fast}" in log
    assert s3.get_object(Bucket=BUCKET, Key=f"checkpoints/{name}/epoch")["Body"].read() == b"3"
