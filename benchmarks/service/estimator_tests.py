"""Whole run of pytest over twenty estimator tests.

Goal: 40 s with processes, 60 s with Docker.

Each test fits an estimator of the SageMaker SDK (version 2) through the fixtures of the pytest plugin: a PyTorch script
of twenty steps with a hook and a rule, whose verdict is looked at. The run has an emulator of its own; nothing is warm
when it begins, but the bytecode of all modules: PYTHONDONTWRITEBYTECODE, which a checkout may run under, is left out.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.shared.engine import back_ends

TESTS = int(os.environ.get("TESTS", "20"))
_GOALS = {"process": 40.0, "docker": 60.0}
_SCRIPT = """
import torch
network, loss = torch.nn.Linear(8, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for _ in range(20):
    optimizer.zero_grad()
    loss(network(torch.ones(4, 8)), torch.ones(4, 1)).backward()
    optimizer.step()
torch.save(network.state_dict(), "/opt/ml/model/model.pt")
"""
_PROJECT = f"""
import pytest
from sagemaker.debugger import DebuggerHookConfig, Rule, rule_configs
from sagemaker.pytorch import PyTorch

@pytest.mark.parametrize("number", range({TESTS}))
def test_trains(sagemaker_emulator, sagemaker_session, number):
    estimator = PyTorch(
        entry_point="train.py", framework_version="2.8.0", py_version="py312", instance_count=1,
        instance_type="ml.m5.large", role=sagemaker_emulator.role_arn, sagemaker_session=sagemaker_session,
        debugger_hook_config=DebuggerHookConfig(f"s3://{{sagemaker_session.default_bucket()}}/tensors"),
        rules=[Rule.sagemaker(rule_configs.loss_not_decreasing(), rule_parameters={{"num_steps": "1000"}})],
    )
    estimator.fit(logs=False)
    name = estimator.latest_training_job.name
    statuses = sagemaker_emulator.wait_for_rules(name)
    assert set(statuses.values()) == {{"NoIssuesFound"}}
"""


def time_run(runtime: str) -> tuple[float, str]:
    """Return the seconds of the whole run of pytest, and the durations that it lists.

    Raises:
        RuntimeError: a test failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(_SCRIPT)
        Path(folder, "test_estimators.py").write_text(_PROJECT)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=3"]
        left_out = ("AWS_", "PYTEST_", "PYTHONDONTWRITEBYTECODE")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        began = time.monotonic()
        done = subprocess.run(
            [*command, "--sagemaker-runtime", runtime],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    slowest = re.findall(r"^([\d.]+)s (setup|call) ", done.stdout, re.MULTILINE)
    return seconds, ", ".join(f"{phase} {duration} s" for duration, phase in slowest)


def measure() -> Iterator[str]:
    for runtime in back_ends():
        seconds, slowest = time_run(runtime)
        yield (
            f"{runtime:<8} {TESTS} tests {seconds:6.1f} s, {seconds / TESTS:4.2f} s each   slowest: {slowest}   "
            f"goal: {_GOALS[runtime]:.0f} s"
        )
