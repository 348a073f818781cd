"""Tests of profiled trainings on a real GPU, in forks of a warm interpreter."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from sdk_compat.demo.training_job import build_rule, build_script_mode, build_training_job, stage_source
from smdebug.trials import create_trial
from tests.end_to_end.finished_jobs import download_run, read_log, wait_until_ended
from tests.running_emulator import RunningEmulator

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

SCRIPT = Path(__file__).with_name("gpu_training") / "train.py"
BUCKET = "gpu-training"
FIRST, BUSY, WAITING = "first", "busy", "waiting"
# Width of the model, seconds and whether the GPU waits between the steps.
TRAININGS = {FIRST: (64, 1, 0), BUSY: (8192, 12, 0), WAITING: (64, 12, 1)}


def build_request(name: str) -> dict[str, Any]:
    width, seconds, waits = TRAININGS[name]
    arguments = {"width": width, "seconds": seconds, "waits": waits}
    request = build_training_job(
        name,
        image="pytorch-training:2.13.0-cpu-py311",
        hyperparameters=build_script_mode(f"s3://{BUCKET}/source/train/sourcedir.tar.gz", "train.py", arguments),
        channels=(),
        collections={"losses": {"save_interval": "1"}},
        bucket=BUCKET,
    )
    request["ResourceConfig"]["InstanceType"] = "ml.p3.2xlarge"
    request["ProfilerConfig"] = {
        "S3OutputPath": f"s3://{BUCKET}/profiles",
        "ProfilingIntervalInMilliseconds": 100,
        "ProfilingParameters": {"DetailedProfilingConfig": "{'StartStep': 5, 'NumSteps': 2}"},
    }
    rule = build_rule("LowGPUUtilization", window="20", patience="20", scan_interval_us="1000000")
    request["ProfilerRuleConfigurations"] = [rule]
    return request


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningEmulator, dict[str, dict[str, Any]]]]:
    """An emulator and the descriptions of three jobs in it, of which the last two ran at the same time."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("emulator") / "state", runtime="process")
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    stage_source(emulator.client("s3"), "train", [SCRIPT], BUCKET)
    ended: dict[str, dict[str, Any]] = {}
    for together in ([FIRST], [BUSY, WAITING]):
        for name in together:
            emulator.client("sagemaker").create_training_job(**build_request(name))
        ended |= {name: wait_until_ended(emulator, name, seconds=200) for name in together}
    yield emulator, ended
    assert emulator.stop() == 0


def read_profile(emulator: RunningEmulator, name: str, kind: str) -> list[str]:
    """The texts of a job's profile files of one kind: ``system`` or ``framework``."""
    s3, prefix = emulator.client("s3"), f"profiles/{name}/profiler-output/{kind}/"
    found = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
    return [s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read().decode() for each in found]


def list_figures(emulator: RunningEmulator, name: str, dimension: str) -> list[float]:
    rows = [json.loads(line) for text in read_profile(emulator, name, "system") for line in text.splitlines()]
    return [row["Value"] for row in rows if (row["Type"], row["Dimension"]) == ("gpu", dimension)]


@pytest.mark.parametrize("name", TRAININGS)
def test_it_trains(jobs: tuple[RunningEmulator, dict[str, dict[str, Any]]], name: str, tmp_path: Path) -> None:
    emulator, ended = jobs
    log = read_log(emulator, name)
    assert ended[name]["TrainingJobStatus"] == "Completed", log
    printed = [float(line.partition(": ")[2]) for line in log.splitlines() if line.startswith("loss ")]
    trial = create_trial(str(download_run(emulator, BUCKET, name, tmp_path)))
    (loss,) = trial.tensor_names(collection="losses")
    assert [trial.tensor(loss).value(step) for step in trial.tensor(loss).steps()] == pytest.approx(printed)


def test_the_others_start_in_forks_of_a_warm_interpreter(
    jobs: tuple[RunningEmulator, dict[str, dict[str, Any]]],
) -> None:
    emulator, _ = jobs
    assert ["warm: True" in read_log(emulator, name) for name in (BUSY, WAITING)] == [True, True]


def test_each_draws_other_numbers(jobs: tuple[RunningEmulator, dict[str, dict[str, Any]]]) -> None:
    emulator, _ = jobs
    lines = [line for name in TRAININGS for line in read_log(emulator, name).splitlines() if "random number" in line]
    assert len({line.partition("number: ")[2] for line in lines}) == len(TRAININGS)


def test_each_is_measured_by_its_part_of_the_gpu(jobs: tuple[RunningEmulator, dict[str, dict[str, Any]]]) -> None:
    emulator, _ = jobs
    busy, waiting = (list_figures(emulator, name, "GPUUtilization") for name in (BUSY, WAITING))
    assert max(busy) > 90
    assert median(busy) > 50, busy
    assert median(waiting) < 20, waiting
    memory, other = (list_figures(emulator, name, "GPUMemoryUtilization") for name in (BUSY, WAITING))
    assert 0 < max(other) < max(memory) < 100


def test_its_rule_finds_the_gpu_that_waits(jobs: tuple[RunningEmulator, dict[str, dict[str, Any]]]) -> None:
    _, ended = jobs
    (status,) = ended[WAITING]["ProfilerRuleEvaluationStatuses"]
    assert status["RuleEvaluationStatus"] == "IssuesFound", status
    assert "gpu0" in status["StatusDetails"]


def test_kernels_are_in_the_trace(jobs: tuple[RunningEmulator, dict[str, dict[str, Any]]]) -> None:
    emulator, _ = jobs
    for name in (BUSY, WAITING):
        assert any("gpu_functions-dev:0" in text for text in read_profile(emulator, name, "framework")), name
