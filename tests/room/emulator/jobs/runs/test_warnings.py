"""Warnings of whole jobs: known when they are created, reported by their containers, found at their end."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from emulator.api.records import give_record, parse_record, parse_warnings, take_record
from emulator.jobs.records.database.store import JobStore
from emulator.jobs.records.warnings import build_warning
from tests.room.emulator.jobs.job_room import ACCOUNT, REGION, Room, open_room
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

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


def list_codes(room: Room, name: str = "job") -> list[str]:
    job = room.jobs.training.get(REGION, name)
    return [each.code for each in room.jobs.training.list_warnings(job)]


def write_image(tmp_path: Path, name: str, *lines: str) -> None:
    folder = tmp_path / "images" / name
    folder.mkdir(parents=True)
    (folder / "image.toml").write_text("\n".join((f'name = "{name}"', *lines)))


@pytest.fixture
def versioned_room(tmp_path: Path) -> Any:
    write_image(tmp_path, "framework", 'version = "2.13.0"')
    write_image(tmp_path, "judge", f"entrypoint = {json.dumps(['python', '-I', '-S', '-c', RULE])}")
    with open_room(tmp_path) as room:
        yield room


def test_all_warnings_of_a_job_are_one_list(versioned_room: Room) -> None:
    room = versioned_room
    script = (
        REPORT + 'report("HookParameterIgnored", "save_intervall"); report("HookParameterIgnored", "save_intervall")'
    )
    request = room.request(
        "warned-of-all",
        script=script,
        DebugHookConfig=room.hook() | {"CollectionConfigurations": [{"CollectionName": "losses"}]},
        DebugRuleConfigurations=[room.rule("X", "pass", RuleEvaluatorImage="judge:latest")],
        ResourceConfig={"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1},
    )
    request["AlgorithmSpecification"] |= {
        "TrainingImage": "framework:2.3.0",
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9]+)"}],
    }
    room.jobs.training.create(REGION, request)
    known = ["ImageSubstituted", "NoGpu"]
    assert list_codes(room, "warned-of-all")[:2] == known
    assert room.wait("warned-of-all")["TrainingJobStatus"] == "Completed"
    found = list_codes(room, "warned-of-all")
    assert found[:2] == known
    assert sorted(found[2:]) == [
        "HookParameterIgnored",
        "HookSavedNothing",
        "MetricNeverMatched",
        "RuleWithoutCollection",
    ]
    log = "\n".join(room.log("/aws/sagemaker/TrainingJobs", "warned-of-all"))
    for said in (
        "smdebug-emulator: The request asks for framework:2.3.0; the local image is version 2.13.0 and runs in its",
        "smdebug-emulator: ml.g5.xlarge has GPUs",
        "smdebug-emulator: The metric 'loss' has no value",
        "smdebug-emulator: The job asks for tensors, and none were saved.",
    ):
        assert log.count(said) == 1
    # What reports them is no output of the job.
    assert not [key for key in room.stored() if "warnings" in key]


def test_a_job_that_does_what_was_asked_has_no_warning(room: Room) -> None:
    script = """
path = ml / "output/tensors/index/000000000"
path.mkdir(parents=True)
(path / "000000000000_worker_0.json").write_text("{}")
print("loss=3")
"""
    request = room.request(script=script, DebugHookConfig=room.hook() | {"HookParameters": {"save_interval": "1"}})
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=([0-9]+)"}]
    assert room.run(request)["TrainingJobStatus"] == "Completed"
    assert list_codes(room) == []


def test_what_a_container_reports_shows_while_it_runs(room: Room) -> None:
    room.jobs.training.create(REGION, room.request(script=REPORT + 'report("TensorsDropped", "a"); time.sleep(600)'))
    wait_until(lambda: list_codes(room) == ["TensorsDropped"], lambda: room.describe())
    room.jobs.training.stop(REGION, "job")
    room.wait()


def test_a_failure_of_pip_is_a_warning(room: Room) -> None:
    script = '(ml / "output/failure").write_text("InstallRequirementsError: no such package"); sys.exit(1)'
    assert room.run(room.request(script=script))["TrainingJobStatus"] == "Failed"
    assert list_codes(room) == ["RequirementsNotInstalled"]


@pytest.mark.parametrize(
    "content", ["os.urandom(1 << 20)", "b'[' * (1 << 20) + b'\\n'", "b''", 'b\'{"Code": "NoGpu", "Text": "x"}\\n\'']
)
def test_a_job_may_write_anything_into_the_file(room: Room, content: str) -> None:
    script = f'pathlib.Path(os.environ["SMDEBUG_WARNINGS_PATH"]).write_bytes({content})'
    assert room.run(room.request(script=script))["TrainingJobStatus"] == "Completed"
    assert list_codes(room) == []


def test_a_deleted_job_takes_its_warnings_along(room: Room) -> None:
    request = room.request(ResourceConfig={"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1})
    for _ in range(2):
        room.run(request)
        assert list_codes(room) == ["NoGpu"]
        room.jobs.training.delete(REGION, "job")
        assert room.store.list_warnings_of([f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job"]) == {}


def test_warnings_outlive_the_emulator_and_a_state_of_before_them_is_read(tmp_path: Path) -> None:
    with open_room(tmp_path) as room:
        bucket = room.bucket
        request = room.request(
            ResourceConfig={"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1}
        )
        room.run(request)
    with open_room(tmp_path, RecordingPublisher(), bucket) as room:
        assert list_codes(room) == ["NoGpu"]
    path = tmp_path / "state" / "jobs.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE job_warnings")
    store = JobStore(path)
    job = store.find_training_job(REGION, "job")
    assert job is not None
    assert store.list_warnings(job.arn) == []
    store.close()


def test_an_exported_job_has_its_warnings_and_an_older_export_has_none(room: Room) -> None:
    room.run(room.request(ResourceConfig={"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1}))
    account = room.jobs.services
    record = json.loads(json.dumps(give_record(account, room.jobs.training.get(REGION, "job")), default=str))
    room.jobs.training.delete(REGION, "job")
    job, evaluations = parse_record(record)
    take_record(account, job, evaluations, record, parse_warnings(record))
    assert list_codes(room) == ["NoGpu"]
    assert parse_warnings({}) == []
    for wrong in ([{"code": "a"}], [{"code": 1, "text": "", "remedy": ""}], [{"more": 1}], [None]):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            parse_warnings({"warnings": wrong})


def test_a_job_has_so_many_warnings_and_no_more(room: Room) -> None:
    many = [build_warning("MetricNeverMatched", name=str(each), regex="") for each in range(300)]
    with room.store.transaction() as transaction:
        assert len(transaction.add_warnings("arn", many)) == 100
        assert transaction.add_warnings("arn", many) == []
    assert len(room.store.list_warnings("arn")) == 100
