"""MXNet jobs in the emulator: an untouched Gluon script, and one with a hook."""

from __future__ import annotations

import io
import json
import re
import tarfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from smdebug import modes
from smdebug.trials import create_trial
from tests.end_to_end.conftest import read_log, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from smdebug.trials import Trial
    from tests.conftest import RunningEmulator

BUCKET = "mxnet"
EXAMPLE = Path(__file__).parents[2] / "examples" / "frameworks" / "mxnet"
EVERY_20 = {"save_interval": "20"}
COLLECTIONS = [
    {"CollectionName": "weights", "CollectionParameters": EVERY_20},
    {"CollectionName": "gradients", "CollectionParameters": EVERY_20},
    {"CollectionName": "losses", "CollectionParameters": {"save_interval": "1"}},
    {"CollectionName": "activations", "CollectionParameters": {**EVERY_20, "include_regex": ".*relu_output"}},
]
NETWORK = {f"dense{layer}_{kind}" for layer in range(3) for kind in ("weight", "bias")}


@pytest.fixture(scope="session")
def with_script(emulator: RunningEmulator) -> RunningEmulator:
    s3 = emulator.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        for script in EXAMPLE.glob("train*.py"):
            tar.add(script, arcname=script.name)
    s3.put_object(Bucket=BUCKET, Key="source/sourcedir.tar.gz", Body=bundle.getvalue())
    return emulator


def build_request(name: str, script: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    script_mode = {
        "sagemaker_program": script,
        "sagemaker_submit_directory": f"s3://{BUCKET}/source/sourcedir.tar.gz",
        "sagemaker_region": "us-east-1",
    }
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/DigitsTraining",
        "AlgorithmSpecification": {
            "TrainingImage": "123456789012.dkr.ecr.us-east-1.amazonaws.com/mxnet-training:1.9.0-cpu-py38",
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "test:accuracy", "Regex": r"test_accuracy=([0-9.]+);"}],
        },
        "HyperParameters": {key: json.dumps(value) for key, value in {**script_mode, **hyperparameters}.items()},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "DebugHookConfig": {"S3OutputPath": f"s3://{BUCKET}/tensors", "CollectionConfigurations": COLLECTIONS},
    }


@pytest.fixture
def train(
    with_script: RunningEmulator, wait_for_job: Callable[..., dict[str, Any]], tmp_path: Path
) -> Callable[..., tuple[Trial, dict[str, Any], Path]]:
    """Run a job to its end; return its tensors, its description and the folder of its model."""

    def run(script: str, **hyperparameters: Any) -> tuple[Trial, dict[str, Any], Path]:
        name = f"mxnet-{uuid.uuid4().hex[:8]}"
        with_script.client("sagemaker").create_training_job(**build_request(name, script, hyperparameters))
        description = wait_for_job(name)
        assert description["TrainingJobStatus"] == "Completed", description
        s3 = with_script.client("s3")
        prefix = f"tensors/{name}/debug-output/"
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix):
            for entry in page["Contents"]:
                path = tmp_path / "run" / entry["Key"].removeprefix(prefix)
                path.parent.mkdir(parents=True, exist_ok=True)
                s3.download_file(BUCKET, entry["Key"], str(path))
        model = s3.get_object(Bucket=BUCKET, Key=f"output/{name}/output/model.tar.gz")["Body"].read()
        with tarfile.open(fileobj=io.BytesIO(model)) as tar:
            tar.extractall(tmp_path / "model", filter="data")
        return create_trial(str(tmp_path / "run")), description, tmp_path / "model"

    return run


def read_accuracy(description: dict[str, Any]) -> float:
    (metric,) = description["FinalMetricDataList"]
    return float(metric["Value"])


def test_untouched_script(train: Any, with_script: RunningEmulator) -> None:
    trial, description, model = train("train.py", epochs=4)
    assert 0.9 < read_accuracy(description) < 1
    assert json.loads((model / "metrics.json").read_text())["test_accuracy"] == pytest.approx(
        read_accuracy(description), abs=1e-4
    )
    steps = trial.steps(mode=modes.TRAIN)
    assert len(steps) == 88, "22 batches in each of 4 epochs"
    assert trial.tensor("dense0_weight").steps(mode=modes.TRAIN) == [0, 20, 40, 60, 80]
    assert trial.steps(mode=modes.EVAL) == [0]
    assert set(trial.tensor_names(collection="weights")) == {name for name in NETWORK if "weight" in name}
    assert set(trial.tensor_names(collection="gradients")) == {f"gradient/{name}" for name in NETWORK}
    assert set(trial.tensor_names(collection="activations")) == {"dense0_relu_output_0", "dense1_relu_output_0"}
    losses = [float(np.mean(trial.tensor("softmaxcrossentropyloss0_output_0").value(step))) for step in steps]
    name = description["TrainingJobName"]
    wait_until(lambda: read_log(with_script, name).count("train_loss=") == 4, "the last lines of the log")
    log = read_log(with_script, name)
    printed = [float(loss) for loss in re.findall(r"train_loss=([0-9.]+);", log)]
    assert np.mean(np.reshape(losses, (4, 22)), axis=1) == pytest.approx(printed, abs=1e-4)
    assert "The request asks for mxnet-training:1.9.0-cpu-py38" in log


def test_script_with_a_hook(train: Any) -> None:
    trial, description, model = train("train_with_hook.py", epochs=1)
    assert 0.8 < read_accuracy(description) < 1
    assert len(trial.steps(mode=modes.TRAIN)) == 22
    assert trial.steps(mode=modes.EVAL) == [0]
    accuracy = trial.tensor("scalar/accuracy").value(0, mode=modes.EVAL)
    assert accuracy == pytest.approx(read_accuracy(description), abs=1e-4)
    assert "dense0_relu_output_0" in trial.tensor_names(collection="activations")
    assert not trial.tensor_names(step=0, mode=modes.EVAL, regex="^gradient")
    weights = np.load(model / "weights.npz")
    assert set(weights) == NETWORK
    for name in trial.tensor_names(collection="weights"):
        np.testing.assert_array_equal(trial.tensor(name).value(0, mode=modes.EVAL), weights[name], err_msg=name)
