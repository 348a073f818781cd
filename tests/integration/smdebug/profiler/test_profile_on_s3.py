"""Tests of profiles on S3: readers, frames, timelines, trials and job names."""

import json
import time
from pathlib import Path
from typing import Any

import boto3
import pytest

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader, S3AlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils.training_job import TrainingJob
from smdebug.profiler.analysis.python_profile_analysis import cProfileAnalysis
from smdebug.profiler.analysis.utils.merge_timelines import MergedTimeline
from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from smdebug.profiler.profiler_constants import LAST
from smdebug.profiler.system_metrics_reader import LocalSystemMetricsReader, S3SystemMetricsReader
from smdebug.tracing.python_profiles import CProfiler, PythonProfiles
from smdebug.trials import create_trial
from tests.unit.smdebug.object_storage import BUCKET, Storage
from tests.unit.smdebug.profiler.profiled_job import START_US, write_profiled_job

URI = f"s3://{BUCKET}/out/job/profiler-output"


@pytest.fixture
def folder(storage: Storage, tmp_path: Path) -> Path:
    """The same profile in a folder and on S3."""
    maker = write_profiled_job(tmp_path / "job")
    profiles = PythonProfiles(CProfiler("cpu_time"))
    profiles.place(maker.folder, "pytorch", "0-algo-1")
    profiles.begin("global", 1, "stepstart")
    profiles.end("global", 2, "stepstart")
    maker.end()
    for path in maker.folder.rglob("*"):
        if path.is_file():
            storage.put(f"out/job/profiler-output/{path.relative_to(maker.folder)}", path.read_bytes())
    return maker.folder


class Service:
    """SageMaker, as far as a job is asked about; what it answers next is in `answers`, the last of them for ever."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)

    def describe_training_job(self, TrainingJobName: str) -> dict[str, Any]:  # noqa: N803 -- boto3's name
        assert TrainingJobName == "job"
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def serve(monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any]) -> None:
    build = boto3.client
    service = Service(*answers)
    monkeypatch.setattr(boto3, "client", lambda name, **given: service if name == "sagemaker" else build(name, **given))


def describe(status: str, **config: str) -> dict[str, Any]:
    return {"TrainingJobStatus": status, "SecondaryStatus": status, "ProfilerConfig": config}


@pytest.mark.slow
def test_all_of_a_profile_is_read_from_s3_as_from_a_folder(folder: Path, tmp_path: Path) -> None:
    assert S3SystemMetricsReader(URI).get_events(0, LAST) == LocalSystemMetricsReader(folder).get_events(0, LAST)
    events = S3AlgorithmMetricsReader(f"{URI}/").get_events(START_US, START_US + 4_000_000)
    assert events == LocalAlgorithmMetricsReader(folder).get_events(START_US, START_US + 4_000_000)
    assert PandasFrame(URI).get_all_framework_metrics().equals(PandasFrame(folder).get_all_framework_metrics())
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    analysis = cProfileAnalysis(fetched, s3_path=URI)
    assert analysis.list_available_node_ids() == ["0-algo-1"]
    assert analysis.fetch_profile_stats_by_time(0, time.time()) is not None
    with pytest.raises(SMDebugValueError, match="is not an S3 path"):
        cProfileAnalysis(fetched, s3_path="elsewhere")


def test_a_merged_time_line_is_written_to_s3(folder: Path, storage: Storage, tmp_path: Path) -> None:
    path = MergedTimeline(URI, output_directory=f"s3://{BUCKET}/merged/").merge_timeline(START_US, START_US + 3_000_000)
    assert path.startswith(f"s3://{BUCKET}/merged/{START_US + 3_000_000}_")
    written = storage.client.get_object(Bucket=BUCKET, Key=path.removeprefix(f"s3://{BUCKET}/"))["Body"].read()
    local = MergedTimeline(folder, output_directory=tmp_path).merge_timeline(START_US, START_US + 3_000_000)
    assert json.loads(written) == json.loads(Path(local).read_bytes())


def test_a_trial_over_a_profile_on_s3(folder: Path, tmp_path: Path) -> None:
    trial = create_trial(URI, profiler=True, output_dir=str(tmp_path / "output"))
    assert trial.job_finished()
    assert trial.first_timestamp == START_US
    assert len(trial.get_system_metrics(0, LAST)) == 24 * 2 * 6


def test_a_training_job_is_found_and_its_profile_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(monkeypatch, describe("InProgress", S3OutputPath=f"s3://{BUCKET}/out/"))
    job = TrainingJob("job", "eu-west-1")
    assert job.profiler_s3_output_path == URI
    assert job.profiler_config == {"S3OutputPath": f"s3://{BUCKET}/out/"}
    job.wait_for_sys_profiling_data_to_be_available()
    job.wait_for_framework_profiling_data_to_be_available()
    system, framework = job.get_systems_metrics_reader(), job.get_framework_metrics_reader()
    assert system is not None
    assert framework is not None
    assert (len(system.get_events(0, LAST)), len(framework.get_events(0, LAST))) == (24 * 2 * 6, 21)
    assert "There are trace events; the latest file is of 2023-11-14T22:14:" in capsys.readouterr().out


def test_a_training_job_that_leaves_nothing(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    going = describe("InProgress", S3OutputPath=f"s3://{BUCKET}/empty")
    serve(monkeypatch, going, going, going, describe("Failed", S3OutputPath=f"s3://{BUCKET}/empty"))
    job = TrainingJob("job", poll_interval_s=0.01)
    with pytest.raises(SMDebugError, match="job is Failed, Failed and has left no system metrics"):
        job.wait_for_sys_profiling_data_to_be_available()
    assert capsys.readouterr().out == "Waiting for system metrics: the job is InProgress, InProgress.\n"
    serve(monkeypatch, {"TrainingJobStatus": "Completed"})
    with pytest.raises(SMDebugValueError, match="job has no profiler"):
        TrainingJob("job")
