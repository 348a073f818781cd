"""Tests of warm pools made by the SageMaker SDK (version 2)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.any_back_end, pytest.mark.nightly]

SCRIPT = """
import json
from pathlib import Path
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session

Path("train.py").write_text("import sys; sys.exit('--fail' in sys.argv)")
session, seen = Session(), []

def note(name):
    seen.append(session.describe_training_job(name)["WarmPoolStatus"])

def train(name, seconds, hyperparameters=None):
    estimator = PyTorch(
        entry_point="train.py", framework_version="2.8.0", py_version="py312", instance_count=1,
        instance_type="ml.m5.xlarge", role="arn:aws:iam::123456789012:role/WarmPools", sagemaker_session=session,
        keep_alive_period_in_seconds=seconds, hyperparameters=hyperparameters, debugger_hook_config=False,
        disable_profiler=True,
    )
    try:
        estimator.fit(job_name=name, logs=False)
    except Exception:
        if not hyperparameters:
            raise
    note(name)

train("pool-1", 60)
session.update_training_job("pool-1", resource_config={"KeepAlivePeriodInSeconds": 3600})
train("pool-2", 3600, {"fail": True})
note("pool-1")
train("pool-3", 3600)
note("pool-2")
session.update_training_job("pool-3", resource_config={"KeepAlivePeriodInSeconds": 0})
note("pool-3")
Path("seen.json").write_text(json.dumps(seen))
"""


def test_the_next_job_of_an_estimator_reuses_its_instances(tmp_path: Path, client_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env=client_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pools = json.loads((tmp_path / "seen.json").read_text())
    first, second, first_then, third, second_then, third_then = pools
    assert [each["Status"] for each in (first, second, third)] == ["Available"] * 3
    assert (first_then["Status"], first_then["ReusedByJob"]) == ("Reused", "pool-2")
    # A job that failed by its own fault leaves its instances, too.
    assert (second_then["Status"], second_then["ReusedByJob"]) == ("Reused", "pool-3")
    assert third_then["Status"] == "Terminated"
    retained = [each["ResourceRetainedBillableTimeInSeconds"] for each in pools]
    assert all(0 <= seconds < 600 for seconds in retained)
    assert retained[5] >= retained[3]
