"""Tests of all profiler rules on sick and healthy trainings of three frameworks.

A sick training has every fault at once; one evaluation of ProfilerReport runs all rules. GPUs and cores that wait for a
disk are played.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sdk_compat.demo.training_job import build_rule, build_script_mode, build_training_job, stage_source
from tests.end_to_end.finished_jobs import read_log, wait_until_ended
from tests.running_emulator import BACK_ENDS, RunningEmulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.mark import ParameterSet

pytestmark = [pytest.mark.timeout(900), pytest.mark.nightly]

SCRIPTS = Path(__file__).with_name("profiler_scenarios")
BUCKET = "profiler-scenarios"
CORES = os.cpu_count() or 1
WORKERS = 2

TORCH, TENSORFLOW = "pytorch-training:2.13.0-cpu-py311", "tensorflow-training:2.21.0-cpu-py311"
# Image, script and number of loading processes, of which a sick training has one too many.
TRAININGS = {
    "pytorch-0-workers": (TORCH, "train_pytorch.py", 0),
    "pytorch-2-workers": (TORCH, "train_pytorch.py", WORKERS),
    "keras-fit": (TENSORFLOW, "train_keras_fit.py", 0),
    "keras-loop": (TENSORFLOW, "train_keras_loop.py", 0),
    "xgboost": ("sagemaker-xgboost:3.0-5", "train_xgboost.py", 0),
}

SYSTEM = {"AllCoresBusy", "MemoryGrowth"}
GPU = {"BatchSize", "CPUBottleneck", "GPUMemoryIncrease", "IOBottleneck", "LoadBalancing", "LowGPUUtilization"}
STEPS = {"MaxInitializationTime", "SmallBatches", "StepOutlier"}
LOADING = {"SlowDataLoading"}
LOADER = {"Dataloader"}
# The rules that find something in a sick training. The others have nothing to judge there.
JUDGING = {
    "pytorch-0-workers": SYSTEM | GPU | STEPS | LOADING | LOADER,
    "pytorch-2-workers": SYSTEM | GPU | STEPS | LOADING | LOADER,
    "keras-fit": SYSTEM | GPU | STEPS | LOADING,
    "keras-loop": SYSTEM | GPU | STEPS,
    "xgboost": SYSTEM | GPU,
}

# Windows and patience for a job of seconds. What a busy machine could do to a healthy training is left to its
# default; what it could keep from a sick one has a low threshold.
BOTH = {
    **{f"{rule}_patience": "1" for rule in ("BatchSize", "LowGPUUtilization", "GPUMemoryIncrease")},
    **{f"{rule}_patience": "1" for rule in ("CPUBottleneck", "IOBottleneck", "LoadBalancing")},
    **{f"{rule}_window": "20" for rule in ("BatchSize", "LowGPUUtilization")},
    "GPUMemoryIncrease_window": "5",
    "GPUMemoryIncrease_increase": "2",
    "CPUBottleneck_cpu_threshold": "3",
    "CPUBottleneck_threshold": "30",
    "AllCoresBusy_patience": "40",
    "MemoryGrowth_patience": "20",
    "MemoryGrowth_window": "10",
    "MemoryGrowth_increase": "6",
    "SmallBatches_threshold": "30",
    "SmallBatches_patience": "20",
    "StepOutlier_stddev": "10",
    "StepOutlier_n_outliers": "3",
    "Dataloader_min_threshold": str(100 * WORKERS / CORES - 1),
    "Dataloader_max_threshold": str(100 * WORKERS / CORES),
}
ONE_KIND = {
    "healthy": {"scan_interval_us": "5000000"},
    "sick": {
        "AllCoresBusy_cpu_threshold": "3",
        "MaxInitializationTime_threshold": "0.05",
        "scan_interval_us": "1000000",
    },
}


@pytest.fixture(scope="module")
def played_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the modules that play a machine, and of the file that says how it is."""
    folder = Path(shutil.copytree(SCRIPTS / "played_machine", tmp_path_factory.mktemp("played") / "machine"))
    (folder / "state").write_text("healthy")
    return folder


@pytest.fixture(scope="module")
def machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, played_machine: Path
) -> Iterator[RunningEmulator]:
    """An emulator on a played machine, with the scripts in its S3."""
    folder = tmp_path_factory.mktemp("emulator") / "state"
    emulator = RunningEmulator(folder, runtime=request.param, search_path=played_machine)
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    for _, script, _ in TRAININGS.values():
        stage_source(emulator.client("s3"), script, [SCRIPTS / script, SCRIPTS / "faults.py"], BUCKET)
    yield emulator
    assert emulator.stop() == 0


def build_request(name: str, training: str, kind: str) -> dict[str, Any]:
    image, script, workers = TRAININGS[training]
    arguments = {"sick": int(kind == "sick"), "workers": workers + 1 if workers and kind == "sick" else workers}
    request = build_training_job(
        name,
        image=image,
        hyperparameters=build_script_mode(f"s3://{BUCKET}/source/{script}/sourcedir.tar.gz", script, arguments),
        channels=(),
        collections={},
        bucket=BUCKET,
    )
    request["ResourceConfig"]["InstanceType"] = "ml.g4dn.xlarge"
    request["ProfilerConfig"] = {
        "S3OutputPath": f"s3://{BUCKET}/profiles",
        "ProfilingIntervalInMilliseconds": 100,
        "ProfilingParameters": {"DataloaderProfilingConfig": "{'StartStep': 0, 'NumSteps': 100000}"},
    }
    report = build_rule("ProfilerReport", **BOTH, **ONE_KIND[kind])
    request["ProfilerRuleConfigurations"] = [{**report, "RuleConfigurationName": "Report"}]
    return request


def find_names(details: str, before: str) -> set[str]:
    """The rules that a verdict lists after some words."""
    _, _, found = details.partition(before)
    return set(re.findall(r"[A-Z][A-Za-z]+", found.partition(".")[0]))


def list_cells() -> list[ParameterSet]:
    """Each training in both kinds on each back end that hands out GPUs."""
    return [
        pytest.param(
            back_end.id,
            training,
            kind,
            id=f"{back_end.id}-{training}-{kind}",
            marks=back_end.marks,
        )
        for back_end in BACK_ENDS
        if back_end.id != "swarm"
        for training in TRAININGS
        for kind in ONE_KIND
    ]


@pytest.mark.parametrize(("machine", "training", "kind"), list_cells(), indirect=["machine"])
def test_all_rules_are_right_about(machine: RunningEmulator, played_machine: Path, training: str, kind: str) -> None:
    (played_machine / "state").write_text(kind)
    name = f"{kind}-{training}-{uuid.uuid4().hex[:6]}"
    machine.client("sagemaker").create_training_job(**build_request(name, training, kind))
    job = wait_until_ended(machine, name, seconds=800)
    assert job["TrainingJobStatus"] == "Completed", read_log(machine, name)
    (status,) = job["ProfilerRuleEvaluationStatuses"]
    details = status["StatusDetails"]
    judging = JUDGING[training]
    if kind == "sick":
        assert find_names(details, "Fired: ") == judging, details
        return
    assert status["RuleEvaluationStatus"] == "NoIssuesFound", details
    # Nothing was found by rules that have looked at it, and had enough to judge.
    assert "too few data points" not in details
    every = set().union(*JUDGING.values())
    untraced = {"OverallFrameworkMetrics"} if training == "xgboost" else set()
    assert find_names(details, "Rules with nothing to judge: ") == every - judging | untraced, details
