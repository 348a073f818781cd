"""Tests of Keras on several hosts with MultiWorkerMirroredStrategy.

The trial shows each of them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sdk_compat.demo.training_job import BUCKET
from smdebug.trials import create_trial
from tests.end_to_end.finished_jobs import WaitForJob, download_model, download_run, read_streams
from tests.end_to_end.test_many_workers import build_hosts_request
from tests.running_emulator import RunningEmulator

pytestmark = pytest.mark.nightly

EXAMPLE = Path(__file__).parents[2] / "examples" / "frameworks" / "tensorflow_distributed" / "train.py"


def test_two_hosts_train_one_keras_model(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob, tmp_path: Path
) -> None:
    request: dict[str, Any] = build_hosts_request(staged, job_name, EXAMPLE.read_text(encoding="utf-8"))
    request["AlgorithmSpecification"]["TrainingImage"] = "tensorflow-training:2.21.0-cpu-py311"
    staged.client("sagemaker").create_training_job(**request)
    description = wait_for_job(job_name)
    texts = read_streams(staged, job_name)
    assert description["TrainingJobStatus"] == "Completed", (description, texts)
    assert "rank 0 of 2" in texts["algo-1"]
    assert "rank 1 of 2" in texts["algo-2"]

    model = download_model(staged, description)
    assert sorted(model) == ["metrics-0.json", "metrics-1.json", "model.npz"]
    assert json.loads(model["metrics-1.json"])["test_accuracy"] > 0.9

    trial = create_trial(str(download_run(staged, BUCKET, job_name, tmp_path)))
    workers = ["worker_0", "worker_1"]
    assert trial.workers() == workers
    assert trial.steps() == [0, 50]
    names = trial.tensor_names(collection="weights")
    assert len(names) >= 2
    for name in names:
        assert trial.tensor(name).workers(50) == workers
        first, second = (trial.tensor(name).value(50, worker=worker) for worker in workers)
        np.testing.assert_array_equal(first, second, err_msg=f"{name}: all workers step alike")
        assert np.abs(first - trial.tensor(name).value(0)).max() > 0, f"{name} has learned"
    assert {trial.tensor(name).workers(50)[1] for name in trial.tensor_names(collection="gradients")} == {"worker_1"}
