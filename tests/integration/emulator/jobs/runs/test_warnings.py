"""Warnings of whole jobs: at Create, from their containers, at their end."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from emulator.api.jobs.job_exports import give_record, parse_record, parse_traces, parse_warnings, take_record
from emulator.exceptions import ValidationException
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.warnings import build_warning
from emulator.jobs.store.store import JobStore
from tests.integration.emulator.jobs.job_harness import ACCOUNT, REGION, JobHarness, open_job_harness
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.waiting import wait_until

REPORT = """
def report(code, text):
    with open(os.environ["SMDEBUG_WARNINGS_PATH"], "a") as file:
        file.write(json.dumps({"Code": code, "Text": text}) + "\\n")
"""
RULE = """
import json, os, pathlib
c = json.load(open(os.environ["SMDEBUG_RULE_CONFIG_PATH"]))
with open(os.environ["SMDEBUG_WARNINGS_PATH"], "a") as file:
    file.write(json.dumps({"Code": "RuleWithoutCollection", "Text": "Rule X found none of what it looks at."}) + "\\n")
path = pathlib.Path(c["VerdictPath"])
path.with_suffix(".tmp").write_text(json.dumps({"RuleEvaluationStatus": "NoIssuesFound", "StatusDetails": ""}))
path.with_suffix(".tmp").rename(path)
"""


def list_codes(harness: JobHarness, name: str = "job") -> list[str]:
    job = harness.jobs.training.get(REGION, name)
    return [each.code for each in harness.store.list_warnings(job.arn)]


def write_image(tmp_path: Path, name: str, *lines: str) -> None:
    folder = tmp_path / "images" / name
    folder.mkdir(parents=True)
    (folder / "image.toml").write_text("\n".join((f'name = "{name}"', *lines)))


@pytest.fixture
def versioned_harness(tmp_path: Path) -> Any:
    write_image(tmp_path, "framework", 'version = "2.13.0"')
    write_image(tmp_path, "judge", f"entrypoint = {json.dumps(['python', '-I', '-S', '-c', RULE])}")
    with open_job_harness(tmp_path) as harness:
        yield harness


@pytest.fixture
def strict_harness(tmp_path: Path) -> Any:
    write_image(tmp_path, "framework", 'version = "2.13.0"')
    with open_job_harness(tmp_path, strict_versions=True) as harness:
        yield harness


def test_strict_versions_refuse_a_training_job_at_create(strict_harness: JobHarness) -> None:
    request = strict_harness.request()
    request["AlgorithmSpecification"]["TrainingImage"] = "framework:2.3.0"
    with pytest.raises(ValidationException, match=r"has version 2\.3\.0.*--strict-versions.*2\.13\.0"):
        strict_harness.jobs.training.create(REGION, request)
    assert strict_harness.store.find_training_job(REGION, "job") is None
    request["AlgorithmSpecification"]["TrainingImage"] = "framework:2.13.1"
    assert strict_harness.run(request)["TrainingJobStatus"] == "Completed"


def test_strict_versions_refuse_a_processing_job_at_create(strict_harness: JobHarness) -> None:
    request = {"ProcessingJobName": "work", "AppSpecification": {"ImageUri": "framework:2.3.0"}}
    with pytest.raises(ValidationException, match=r"has version 2\.3\.0.*--strict-versions.*2\.13\.0"):
        strict_harness.jobs.processing.create(REGION, request)
    assert strict_harness.store.find_job(ProcessingJob, REGION, "work") is None


def test_all_warnings_of_a_job_are_one_list(versioned_harness: JobHarness) -> None:
    harness = versioned_harness
    script = (
        REPORT + 'report("HookParameterIgnored", "save_intervall"); report("HookParameterIgnored", "save_intervall")'
    )
    request = harness.request(
        "warned-of-all",
        script=script,
        DebugHookConfig=harness.hook() | {"CollectionConfigurations": [{"CollectionName": "losses"}]},
        DebugRuleConfigurations=[harness.rule("X", "pass", RuleEvaluatorImage="judge:latest")],
        ResourceConfig={"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1},
    )
    request["AlgorithmSpecification"] |= {
        "TrainingImage": "framework:2.3.0",
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9]+)"}],
    }
    harness.jobs.training.create(REGION, request)
    known = ["ImageSubstituted", "NoGpu"]
    assert list_codes(harness, "warned-of-all")[:2] == known
    assert harness.wait("warned-of-all")["TrainingJobStatus"] == "Completed"
    found = list_codes(harness, "warned-of-all")
    assert found[:2] == known
    assert sorted(found[2:]) == [
        "HookParameterIgnored",
        "HookSavedNothing",
        "MetricNeverMatched",
        "RuleWithoutCollection",
    ]
    log = "\n".join(harness.log("/aws/sagemaker/TrainingJobs", "warned-of-all"))
    for said in (
        "smdebug-emulator: asked 2.3.0, runs 2.13.0. The request is for framework:2.3.0; the local image is version",
        "smdebug-emulator: ml.g5.xlarge: no GPU here. The job runs on the CPU.",
        "smdebug-emulator: The metric 'loss' has no value",
        "smdebug-emulator: The job asks for tensors, but none were saved.",
    ):
        assert log.count(said) == 1
    # What reports them is not an output of the job.
    assert not [key for key in harness.stored() if "warnings" in key]


def test_a_job_that_does_what_was_asked_has_no_warning(harness: JobHarness) -> None:
    script = """
path = ml / "output/tensors/index/000000000"
path.mkdir(parents=True)
(path / "000000000000_worker_0.json").write_text("{}")
print("loss=3")
"""
    request = harness.request(
        script=script, DebugHookConfig=harness.hook() | {"HookParameters": {"save_interval": "1"}}
    )
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=([0-9]+)"}]
    assert harness.run(request)["TrainingJobStatus"] == "Completed"
    assert list_codes(harness) == []


def test_what_a_container_reports_shows_while_it_runs(harness: JobHarness) -> None:
    """A job that was stopped is not warned of what it might still have done."""
    script = 'signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); report("TensorsDropped", "a"); time.sleep(600)'
    request = harness.request(script=REPORT + script)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=([0-9]+)"}]
    harness.jobs.training.create(REGION, request)
    wait_until(lambda: list_codes(harness) == ["TensorsDropped"], lambda: harness.describe())
    harness.jobs.training.stop(REGION, "job")
    assert harness.wait()["TrainingJobStatus"] == "Stopped"
    assert list_codes(harness) == ["TensorsDropped"]


def test_a_failure_of_pip_is_a_warning(harness: JobHarness) -> None:
    script = '(ml / "output/failure").write_text("InstallRequirementsError: no such package"); sys.exit(1)'
    assert harness.run(harness.request(script=script))["TrainingJobStatus"] == "Failed"
    assert list_codes(harness) == ["RequirementsNotInstalled"]


CONTENTS = ('b\'{"Code": "NoGpu", "Text": "x"}\\n\'', "b'[' * (1 << 20) + b'\\n'", "os.urandom(1 << 20)", "b''")


@pytest.mark.parametrize(
    "content", [" + ".join(CONTENTS), *(pytest.param(each, marks=pytest.mark.nightly) for each in CONTENTS)]
)
def test_a_job_may_write_anything_into_the_file(harness: JobHarness, content: str) -> None:
    script = f'pathlib.Path(os.environ["SMDEBUG_WARNINGS_PATH"]).write_bytes({content})'
    assert harness.run(harness.request(script=script))["TrainingJobStatus"] == "Completed"
    assert list_codes(harness) == []


def test_a_deleted_job_takes_its_warnings_along(harness: JobHarness) -> None:
    request = harness.request(ResourceConfig={"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1})
    for _ in range(2):
        harness.run(request)
        assert list_codes(harness) == ["NoGpu"]
        harness.jobs.training.delete(REGION, "job")
        assert harness.store.list_warnings_of([f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job"]) == {}


def test_warnings_outlive_the_emulator_and_a_state_of_before_them_is_read(tmp_path: Path) -> None:
    with open_job_harness(tmp_path) as harness:
        bucket = harness.bucket
        request = harness.request(
            ResourceConfig={"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1}
        )
        harness.run(request)
    with open_job_harness(tmp_path, RecordingPublisher(), bucket) as harness:
        assert list_codes(harness) == ["NoGpu"]
    path = tmp_path / "state" / "jobs.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE job_warnings")
    store = JobStore(path)
    job = store.find_training_job(REGION, "job")
    assert job is not None
    assert store.list_warnings(job.arn) == []
    store.close()


@pytest.mark.slow
def test_an_exported_job_has_its_warnings_and_an_older_export_has_none(harness: JobHarness) -> None:
    harness.run(
        harness.request(ResourceConfig={"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1})
    )
    account = harness.jobs.services
    record = json.loads(json.dumps(give_record(account, harness.jobs.training.get(REGION, "job")), default=str))
    harness.jobs.training.delete(REGION, "job")
    job, evaluations = parse_record(record)
    take_record(account, job, evaluations, record, parse_warnings(record), {}, parse_traces(record))
    assert list_codes(harness) == ["NoGpu"]
    assert parse_warnings({}) == []
    for wrong in ([{"code": "a"}], [{"code": 1, "text": "", "remedy": ""}], [{"more": 1}], [None]):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            parse_warnings({"warnings": wrong})


def test_the_number_of_warnings_of_a_job_is_limited(harness: JobHarness) -> None:
    many = [build_warning("MetricNeverMatched", name=str(each), regex="") for each in range(300)]
    with harness.store.transaction() as transaction:
        assert len(transaction.add_warnings("arn", many)) == 100
        assert transaction.add_warnings("arn", many) == []
    assert len(harness.store.list_warnings("arn")) == 100


def test_what_will_fail_in_the_job_is_said_at_create(versioned_harness: JobHarness) -> None:
    harness = versioned_harness
    request = harness.request(
        DebugHookConfig=harness.hook() | {"HookParameters": {"save_interval": "0"}},
        DebugRuleConfigurations=[
            harness.rule("here", "pass", RuleEvaluatorImage="judge:latest"),
            harness.rule("lost", "pass", RuleEvaluatorImage="nobody-has-this:1"),
        ],
    )
    harness.jobs.training.create(REGION, request)
    said = {each.code: each.text for each in harness.store.list_warnings(harness.jobs.training.get(REGION, "job").arn)}
    assert said["HookParameterDoubtful"].endswith("which selects no step: give 1 or more.")
    assert "RuleEvaluatorImage of lost is 'nobody-has-this:1', which is not on this machine" in said["RuleDoubtful"]
    harness.wait()
