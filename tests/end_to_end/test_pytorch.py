"""Tests of PyTorch jobs in both back ends, compared with torch's own values.

One script is unmodified, the other has a hook.
"""

import io
import re
import tarfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from examples.frameworks.job import BUCKET, build_request, stage_scripts
from smdebug.pytorch import modes
from smdebug.trials import Trial, create_trial
from tests.end_to_end.finished_jobs import JobsByKind, download_model, download_run, read_log
from tests.interop.test_upstream_reads_ours import read_ours
from tests.interop.upstream import Upstream, upstream
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

__all__ = ["upstream"]

SCRIPTS = {"untouched": "train.py", "hook": "train_with_hook.py"}
STEPS_OF_AN_EPOCH = 15


class Job:
    """What a job left: its log, the tensors of its run, and the parameters of its model artifact."""

    def __init__(self, emulator: RunningEmulator, description: dict[str, Any], folder: Path) -> None:
        self.description = description
        self._emulator = emulator
        self.name = description["TrainingJobName"]
        self.run = download_run(emulator, BUCKET, self.name, folder / self.name)

    @property
    def trial(self) -> Trial:
        return create_trial(str(self.run))

    @property
    def state_dict(self) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = torch.load(
            io.BytesIO(download_model(self._emulator, self.description)["model.pt"])
        )
        return found

    @property
    def log(self) -> str:
        return read_log(self._emulator, self.name)


@pytest.fixture(scope="module")
def names(emulator: RunningEmulator) -> dict[str, str]:
    """Names of the jobs by kind."""
    stage_scripts(emulator.client("s3"), "pytorch")

    def start(kind: str) -> str:
        name = f"pytorch-{kind}-{uuid.uuid4().hex[:8]}"
        if kind == "off":
            request = build_request("pytorch", name, "train.py", epochs=1)
            request["Environment"] = {"USE_SMDEBUG": "0"}
        else:
            request = build_request("pytorch", name, SCRIPTS[kind])
        emulator.client("sagemaker").create_training_job(**request)
        return name

    return JobsByKind(start)


@pytest.fixture
def get_job(
    names: dict[str, str], emulator: RunningEmulator, wait_for_job: Any, tmp_path: Path
) -> Callable[[str], Job]:
    def get(kind: str) -> Job:
        description = wait_for_job(names[kind])
        assert description["TrainingJobStatus"] == "Completed", (description, read_log(emulator, names[kind]))
        return Job(emulator, description, tmp_path)

    return get


@pytest.mark.parametrize(
    "kind", ["untouched", pytest.param("hook", marks=[pytest.mark.any_back_end, pytest.mark.nightly])]
)
def test_the_run_holds_what_torch_said(get_job: Any, kind: str) -> None:
    job = get_job(kind)
    trial = job.trial
    wait_until(lambda: job.log.count("test_loss=") == 12, "the last lines of the log")
    assert float(re.findall(r"test_accuracy=([\d.]+);", job.log)[-1]) > 0.95

    logged = {int(step): float(loss) for step, loss in re.findall(r"step=(\d+) train_loss=([\d.e-]+);", job.log)}
    assert trial.steps(modes.TRAIN) == list(range(0, 12 * STEPS_OF_AN_EPOCH, 30))
    assert trial.loaded_all_steps
    loss = trial.tensor("CrossEntropyLoss_output_0")
    for step in trial.steps(modes.TRAIN):
        assert loss.value(step, mode=modes.TRAIN) == np.float32(logged[step])
    tested = [float(value) for value in re.findall(r"test_loss=([\d.e-]+) ", job.log)]
    assert [loss.value(step, mode=modes.EVAL) for step in trial.steps(modes.EVAL)] == [np.float32(x) for x in tested]

    # After the last step the model was tested, with the parameters that it was saved with.
    last = trial.steps(modes.EVAL)[-1]
    parameters = {name: value for name, value in job.state_dict.items() if re.search("weight|bias", name)}
    assert set(trial.tensor_names(collection="weights")) | set(trial.tensor_names(collection="biases")) == {
        f"Sequential_{name}" for name in parameters
    }
    for name, value in parameters.items():
        np.testing.assert_array_equal(trial.tensor(f"Sequential_{name}").value(last, mode=modes.EVAL), value.numpy())
    assert len(trial.tensor_names(collection="gradients")) == len(parameters)


# interop/test_pytorch_scenarios.py compares what both libraries leave of many scripts, with and without a hook.
@pytest.mark.nightly
@pytest.mark.any_back_end
@pytest.mark.parametrize("kind", SCRIPTS)
def test_upstream_reads_what_we_read(get_job: Any, kind: str, upstream: Upstream) -> None:
    job = get_job(kind)
    original, ours = upstream.read_run(job.run), read_ours(job.trial)
    assert ours["steps"]["TRAIN"] == list(range(0, 12 * STEPS_OF_AN_EPOCH, 30))
    assert ours["steps"]["EVAL"] == list(range(12))
    assert "gradient/Sequential_1.weight" in ours["collections"]["gradients"]
    for tensor, found in ours["tensors"].items():
        assert found == original["tensors"][tensor], tensor
    assert ours == original


@pytest.mark.nightly
@pytest.mark.any_back_end
def test_both_ways_save_the_same(get_job: Any) -> None:
    """One network trained from one seed: only who asked for its tensors differs."""
    untouched, hook = get_job("untouched").trial, get_job("hook").trial
    assert untouched.steps() == hook.steps()
    assert set(hook.tensor_names()) - set(untouched.tensor_names()) == {"scalar/accuracy"}
    for name in untouched.tensor_names():
        assert untouched.tensor(name).steps() == hook.tensor(name).steps()
        for step in untouched.tensor(name).steps():
            np.testing.assert_array_equal(untouched.tensor(name).value(step), hook.tensor(name).value(step))


# integration/smdebug/pytorch/test_on_import_torch.py has the variable.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_nothing_is_saved_where_it_is_turned_off(get_job: Any) -> None:
    job = get_job("off")
    assert not list(job.run.rglob("*.tfevents"))
    assert "smdebug" not in job.log.replace("smdebug-emulator", "")


LOOK = """
import subprocess, sys
text = "import sys{}; print(*sorted({{name.partition('.')[0] for name in sys.modules}} & set({!r})))"
for added in ("", ", smdebug"):
    frameworks = ["torch", "tensorflow", "xgboost", "mxnet", "sklearn", "keras"]
    done = subprocess.run([sys.executable, "-c", text.format(added, frameworks)], capture_output=True, text=True)
    print("found", repr(added), done.returncode, repr(done.stdout.strip()), done.stderr)
"""


@pytest.mark.any_back_end
def test_python_starts_without_a_framework(emulator: RunningEmulator, wait_for_job: Any) -> None:
    """In the image, within a job that asks for capture: where the loader of zero script change is at work."""
    s3 = emulator.client("s3")
    stage_scripts(s3, "pytorch")
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        info = tarfile.TarInfo("train.py")
        info.size = len(LOOK)
        tar.addfile(info, io.BytesIO(LOOK.encode()))
    s3.put_object(Bucket=BUCKET, Key="source/look.tar.gz", Body=bundle.getvalue())
    name = f"pytorch-look-{uuid.uuid4().hex[:8]}"
    request = build_request("pytorch", name, "train.py")
    request["HyperParameters"]["sagemaker_submit_directory"] = f'"s3://{BUCKET}/source/look.tar.gz"'
    assert request["AlgorithmSpecification"]["TrainingImage"] == "pytorch-training:2.13.0-cpu-py311"
    emulator.client("sagemaker").create_training_job(**request)
    assert wait_for_job(name)["TrainingJobStatus"] == "Completed", read_log(emulator, name)
    wait_until(lambda: read_log(emulator, name).count("found") == 2, "the log")
    found = [line.strip() for line in read_log(emulator, name).splitlines() if "found" in line]
    assert [line.split(" ", 1)[1] for line in found] == ["'' 0 ''", "', smdebug' 0 ''"]
