"""Tests of the profiler beside a real training: config, rules and metrics."""

import json
import re
import time
from contextlib import suppress
from typing import Any

import pytest

from emulator.exceptions import ValidationException
from emulator.jobs.model.profiler_config import merge_update
from emulator.jobs.runs.measuring import starvation
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.waiting import wait_until

TRAINING_LOG = "/aws/sagemaker/TrainingJobs"

# Prints the configuration each time that it has become another one, until it disables the profiler.
FOLLOW = """
path, last = pathlib.Path(os.environ["SMPROFILER_CONFIG_PATH"]), None
def read():
    return path.read_text() if path.exists() else "{}"
while True:
    if (now := read()) != last:
        last = now
        print(json.dumps(json.loads(now)), flush=True)
    if (ml / "end").exists():
        break
    time.sleep(0.005)
traces = ml / "output/profiler/framework"
traces.mkdir()
(traces / "whole.json").write_text("[]")
(traces / "begun.json.tmp").write_text("[")
"""


def update(harness: JobHarness, **members: Any) -> None:
    harness.jobs.training.update(REGION, "job", lambda job: merge_update(job.request, members))


def printed(harness: JobHarness) -> list[dict[str, Any]]:
    return [json.loads(line) for line in harness.log(TRAINING_LOG, "job/") if line.startswith("{")]


def statuses(description: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {
        each["RuleConfigurationName"]: (each["RuleEvaluationStatus"], each.get("StatusDetails"))
        for each in description["ProfilerRuleEvaluationStatuses"]
    }


@pytest.mark.slow
def test_a_profiler_that_is_enabled_changed_and_disabled_while_the_job_runs(harness: JobHarness) -> None:
    """One job sees all of it: enabled late, given rules and parameters, refused others, disabled, ended."""
    path = f"s3://{harness.bucket}/profiled"
    harness.jobs.training.create(REGION, harness.request(script=FOLLOW, ProfilerConfig={"DisableProfiler": True}))
    harness.wait_for_stage("Training")
    wait_until(lambda: printed(harness) == [{}], harness.describe)
    assert harness.describe()["ProfilingStatus"] == "Disabled"

    update(harness, ProfilerConfig={"S3OutputPath": path, "DisableProfiler": False}, ProfilerRuleConfigurations=[])
    wait_until(lambda: printed(harness)[1:] == [{"S3OutputPath": path, "DisableProfiler": False}], harness.describe)
    assert harness.describe()["ProfilingStatus"] == "Enabled"

    rules = [harness.rule("Fires", "fire"), harness.rule("Waits", "wait")]
    parameters = {"FileOpenFailThreshold": "50"}
    update(harness, ProfilerConfig={"ProfilingParameters": parameters}, ProfilerRuleConfigurations=rules)
    wait_until(lambda: len(printed(harness)) == 3, harness.describe)
    told = printed(harness)[-1]["ProfilingParameters"]
    assert told.pop("LocalPath").endswith("/output/profiler")
    assert told == parameters
    wait_until(lambda: statuses(harness.describe())["Fires"][0] == "IssuesFound", harness.describe)
    assert statuses(harness.describe())["Waits"] == ("InProgress", None)
    output = "out/job/rule-output/Fires/report.txt"
    wait_until(lambda: output in harness.stored())
    assert json.loads(harness.s3.get(harness.bucket, output))["ProfilerS3Uri"] == f"{path}/job/profiler-output"
    # While it goes on, too: a report that is written anew is looked at meanwhile.
    wait_until(lambda: "out/job/rule-output/Waits/report.txt" in harness.stored())

    before = harness.describe()
    for members, said in (
        ({"ProfilerConfig": {"S3OutputPath": "s3://other/path"}}, "cannot be changed"),
        ({"ProfilerConfig": {"ProfilingIntervalInMilliseconds": 7}}, "must be one of"),
    ):
        with pytest.raises(ValueError, match=said):
            update(harness, **members)
    assert harness.describe() == before

    update(harness, ProfilerConfig={"DisableProfiler": True})
    wait_until(lambda: printed(harness)[-1].get("DisableProfiler"), harness.describe)
    wait_until(lambda: statuses(harness.describe())["Waits"][0] == "Stopped", harness.describe)
    assert "profiler was disabled" in str(statuses(harness.describe())["Waits"][1])
    (folder,) = (harness.settings.state_dir / "jobs").glob("job-*/algo-1")
    (folder / "end").touch()
    done = harness.wait()
    assert (done["TrainingJobStatus"], done["ProfilingStatus"]) == ("Completed", "Disabled")
    stored = harness.stored("profiled/job/profiler-output/")
    assert {"framework/whole.json", "system/training_job_end.ts"} <= {each.partition("output/")[2] for each in stored}
    assert not any("begun" in each for each in stored)
    with pytest.raises(ValidationException, match="in status Completed"):
        update(harness, ProfilerConfig={"DisableProfiler": False})
    announced = [
        each["detail"].get("ProfilerRuleEvaluationStatuses", [{}])[0].get("RuleEvaluationStatus")
        for each in harness.publisher.events
    ]
    assert list(dict.fromkeys(announced)) == [None, "InProgress", "IssuesFound"]


@pytest.mark.slow
def test_rules_that_come_with_the_request(harness: JobHarness) -> None:
    """Beside a rule on tensors; of a job without a profiler that ends at once, too."""
    rules = [harness.rule("P", "pass")]
    done = harness.run(harness.request("none", ProfilerRuleConfigurations=rules))
    assert statuses(done) == {"P": ("NoIssuesFound", None)}
    assert harness.stored("out/none/profiler-output") == ["out/none/profiler-output/system/training_job_end.ts"]
    request = harness.request(
        ProfilerConfig={},
        DebugHookConfig=harness.hook(),
        DebugRuleConfigurations=[harness.rule("R", "fire")],
        ProfilerRuleConfigurations=rules,
    )
    done = harness.run(request)
    assert statuses(done) == {"P": ("NoIssuesFound", None)}
    assert [each["RuleConfigurationName"] for each in done["DebugRuleEvaluationStatuses"]] == ["R"]


def test_a_job_that_waits_for_cores_has_a_warning(harness: JobHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, whatever the share; how it is measured is seen in the tests of the module."""
    monkeypatch.setattr(starvation, "_WINDOW_SECONDS", 0.0)
    monkeypatch.setattr(starvation, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(starvation, "MOST_PERCENT", -1.0)
    profiled = {"S3OutputPath": f"s3://{harness.bucket}/p", "ProfilingIntervalInMilliseconds": 100}
    harness.jobs.training.create(REGION, harness.request("starved", script="time.sleep(600)", ProfilerConfig=profiled))
    job = harness.jobs.training.get(REGION, "starved")
    (warning,) = wait_until(lambda: harness.store.list_warnings(job.arn))
    harness.jobs.training.stop(REGION, "starved")
    harness.wait("starved")
    assert warning.code == "ContainerStarved"
    assert warning.text.startswith("On algo-1, the training waited for a core in ")
    assert harness.store.list_warnings(job.arn) == [warning]


def test_a_bucket_that_is_not_there(harness: JobHarness) -> None:
    gone = {"S3OutputPath": "s3://not-there-at-all/p"}
    done = harness.run(harness.request(ProfilerConfig=gone))
    assert "ProfilerConfig.S3OutputPath is s3://not-there-at-all/p, but the bucket" in done["FailureReason"]
    harness.jobs.training.create(REGION, harness.request("later", script="time.sleep(600)"))
    with pytest.raises(ValidationException, match="not-there-at-all"):
        harness.jobs.training.update(REGION, "later", lambda job: {**job.request, "ProfilerConfig": gone})
    harness.jobs.training.stop(REGION, "later")
    harness.wait("later")
    assert done["TrainingJobStatus"] == "Failed"


def test_a_container_that_puts_something_in_the_way(harness: JobHarness) -> None:
    """Nothing is written where a link of the job's leads; the job goes on, and its log says what was not done."""
    script = """
config = ml / "input/config"
config.rename(ml / "elsewhere")
config.symlink_to(ml / "elsewhere")
print("ready", flush=True)
while not (ml / "end").exists():
    time.sleep(0.01)
"""
    harness.jobs.training.create(REGION, harness.request(script=script, ProfilerConfig={}))
    harness.wait_for_stage("Training")
    wait_until(lambda: "ready" in harness.log(TRAINING_LOG, "job/"), harness.describe)
    (folder,) = (harness.settings.state_dir / "jobs").glob("job-*/algo-1")
    before = (folder / "elsewhere/profilerconfig.json").read_bytes()
    update(harness, ProfilerConfig={"ProfilingIntervalInMilliseconds": 100})
    assert (folder / "elsewhere/profilerconfig.json").read_bytes() == before
    (folder / "end").touch()
    assert harness.wait()["TrainingJobStatus"] == "Completed"
    assert any("ProfilerConfig could not take effect" in line for line in harness.log(TRAINING_LOG, "job/"))


def read_rows(harness: JobHarness, prefix: str) -> list[dict[str, Any]]:
    """The rows of all files below a prefix, in the order of their names."""
    keys = [key for key in harness.stored(prefix) if key.endswith(".json")]
    return [json.loads(line) for key in keys for line in harness.s3.get(harness.bucket, key).splitlines()]


def test_a_job_is_measured_from_its_first_moment_while_it_is_profiled(harness: JobHarness) -> None:
    """Enabled with another interval, disabled, enabled again: in the same minute, or in one after it."""
    script = """
block = bytearray(b"x") * (64 << 20)
print("ready", flush=True)
while not (ml / "end").exists():
    time.sleep(0.005)
"""
    interval = {"ProfilingIntervalInMilliseconds": 100}
    harness.jobs.training.create(REGION, harness.request(script=script, ProfilerConfig={"DisableProfiler": True}))
    harness.wait_for_stage("Training")
    wait_until(lambda: "ready" in harness.log(TRAINING_LOG, "job/"), harness.describe)
    (folder,) = (harness.settings.state_dir / "jobs").glob("job-*")

    def count() -> int:
        """Samples that there are so far: each has one row of the memory."""
        found = 0
        for path in folder.glob("profiler/*/*/*/*.json*"):
            with suppress(FileNotFoundError):  # renamed meanwhile: the next look counts it
                found += path.read_text().count("MemoryUsedPercent")
        return found

    assert count() == 0
    update(harness, ProfilerConfig={"DisableProfiler": False, **interval})
    wait_until(lambda: count() >= 3, harness.describe)
    update(harness, ProfilerConfig={"DisableProfiler": True})
    wait_until(lambda: list(folder.glob("profiler/**/*.json")) and not list(folder.glob("profiler/**/*.tmp")))
    before = count()
    assert before >= 3
    update(harness, ProfilerConfig={"DisableProfiler": False})
    wait_until(lambda: count() >= before + 2, harness.describe)
    (folder / "algo-1" / "end").touch()
    assert harness.wait()["TrainingJobStatus"] == "Completed"
    prefix = "out/job/profiler-output/system/"
    keys = [key.removeprefix(prefix) for key in harness.stored(prefix)]
    assert keys.pop() == "training_job_end.ts"
    for key in keys:
        found = re.fullmatch(r"incremental/(\d{10})/(\d{10})\.algo-1\.json", key)
        assert found is not None, key
        assert int(found[2]) % 60 == 0
        assert time.strftime("%Y%m%d%H", time.gmtime(int(found[2]))) == found[1]
    rows = read_rows(harness, prefix)
    assert {row["NodeId"] for row in rows} == {"algo-1"}
    assert (rows[0]["Type"], rows[0]["Name"]) == ("memory", "MemoryUsedPercent")
    dimensions = {(row["Type"], row["Dimension"] or row["Name"]) for row in rows if row["Type"] != "network"}
    assert dimensions == {
        ("cpu", "CPUUtilization"),
        ("cpu", "I/OWaitPercentage"),
        ("memory", "MemoryUsedPercent"),
        ("i/o", "IOPS"),
        ("i/o", "ReadThroughputInBytesPerSecond"),
        ("i/o", "WriteThroughputInBytesPerSecond"),
    }
    # Of the 8 GiB of an ml.m5.large.
    held = max(row["Value"] for row in rows if row["Type"] == "memory")
    assert 100 * 64 / 8192 <= held < 100 * 160 / 8192
    stamps = [row["Timestamp"] for row in rows]
    assert stamps == sorted(stamps)


def test_a_job_that_ends_in_its_first_interval_has_its_file(harness: JobHarness) -> None:
    script = "while not (ml / 'end').exists(): time.sleep(0.005)"
    profiler = {"S3OutputPath": f"s3://{harness.bucket}/p", "ProfilingIntervalInMilliseconds": 60_000}
    harness.jobs.training.create(REGION, harness.request(script=script, ProfilerConfig=profiler))
    wait_until(lambda: [*harness.settings.state_dir.glob("jobs/job-*/profiler/*/*/*/*.json*")], harness.describe)
    (folder,) = harness.settings.state_dir.glob("jobs/job-*/algo-1")
    (folder / "end").touch()
    assert harness.wait()["TrainingJobStatus"] == "Completed"
    rows = read_rows(harness, "p/job/profiler-output/system/incremental/")
    assert [row["Name"] for row in rows][:1] == ["MemoryUsedPercent"]
    assert "p/job/profiler-output/system/training_job_end.ts" in harness.stored()
