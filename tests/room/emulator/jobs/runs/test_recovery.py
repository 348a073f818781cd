"""What a killed emulator leaves is taken up by the next one on the same folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import EngineUnavailableError, Exit
from emulator.jobs.records.training_job import TrainingJob
from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL
from tests.room.emulator.jobs.job_room import REGION, open_room
from tests.room.emulator.jobs.runs import test_tuning
from tests.room.emulator.jobs.runs.test_processing import describe, wait
from tests.waiting import ENDED, wait_until

if TYPE_CHECKING:
    from container_runtime.runtime import Container
    from tests.room.emulator.jobs.job_room import Room
    from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher

ROOT = Path(__file__).parents[5]

# Runs an emulator's job room until a condition of its own state holds, then dies as by kill -9.
KILLED = """
import os, pathlib, signal, sys, json
sys.path.insert(0, {root!r})
from emulator.jobs.records.rule_evaluation import RuleEvaluation
from tests.room.emulator.jobs.job_room import REGION, open_room
from tests.room.emulator.jobs.runs import test_tuning
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.waiting import ENDED, wait_until
with open_room(pathlib.Path({tmp!r}), RecordingPublisher(deliver=False)) as room:
    {before}
    request = room.request(script={script!r}, DebugHookConfig=room.hook(), **{members})
    request["DebugRuleConfigurations"] = [room.rule(n, b) for n, b in {rules}]
    print(room.bucket, flush=True)
    room.jobs.training.create(REGION, request)
    wait_until(lambda: {condition})
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run_and_kill(
    tmp_path: Path,
    script: str,
    *,
    condition: str = "room.describe()['SecondaryStatus'] == 'Training'",
    rules: list[tuple[str, str]] | None = None,
    members: dict[str, Any] | None = None,
    before: str = "",
) -> str:
    """Returns the bucket of the killed room; its S3 died with it."""
    program = KILLED.format(
        root=str(ROOT),
        tmp=str(tmp_path),
        script=script,
        condition=condition,
        rules=rules or [],
        members=members or {},
        before=before,
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.strip()


def recover(tmp_path: Path, bucket: str, publisher: RecordingPublisher | None = None) -> Any:
    from emulator.moto_services.s3.objects import ObjectStore

    ObjectStore("123456789012", REGION).create_bucket(bucket)
    return open_room(tmp_path, publisher, bucket=bucket)


def let_go(room: Room) -> None:
    with suppress(FileNotFoundError):  # a job has ended meanwhile
        for folder in (room.settings.state_dir / "jobs").glob("*/algo-*"):
            (folder / "go").touch()


def lose(room: Room, container: Container, losses: int) -> None:
    """Remove a container whose job had been lost so often before."""
    room.runtime.remove(container.id)
    for _ in range(losses):
        room.store.count_loss(container.labels[JOB_LABEL])


WAIT_FOR_GO = "\nwhile not (ml / 'go').exists(): time.sleep(0.01)\n"


@pytest.mark.parametrize(("end", "status"), [("", "Completed"), ("sys.exit(4)", "Failed")])
def test_running_job_ends_as_its_container_exits(tmp_path: Path, end: str, status: str) -> None:
    script = "print('first', flush=True)\n(ml / 'output/tensors/early').touch()" + WAIT_FOR_GO + "print('last')\n" + end
    bucket = run_and_kill(tmp_path, script, rules=[("Passes", "pass"), ("Waits", "wait")])
    with recover(tmp_path, bucket) as room:
        room.jobs.recover()
        assert room.describe()["SecondaryStatus"] == "Training"
        let_go(room)
        wait_until(lambda: room.describe()["TrainingJobStatus"] == status, room.describe)
        done = room.describe()
        assert room.log("/aws/sagemaker/TrainingJobs", "job/")[-2:] == ["first", "last"]
        assert "tensors/job/debug-output/early" in room.stored()
        assert "tensors/job/debug-output/training_job_end.ts" in room.stored()
        if status == "Failed":
            assert done["FailureReason"].endswith("exit code: 4")
        room.jobs.close()
        published = [event["detail"].get("SecondaryStatus") for event in room.publisher.events]
        assert published[0] == "Starting", "what was not delivered before goes out first"
        assert room.store.messages.list_outbox() == []


def test_job_whose_container_ended_meanwhile_ends_too(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO + "(ml / 'model/m').touch()")
    with recover(tmp_path, bucket) as room:
        let_go(room)
        wait_until(lambda: not any(container.running for container in room.runtime.find({})))
        room.jobs.recover()
        assert room.wait()["TrainingJobStatus"] == "Completed"
        assert "out/job/output/model.tar.gz" in room.stored()


def test_job_whose_container_is_gone_begins_again(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, rules=[("Waits", "pass")])
    with recover(tmp_path, bucket) as room:
        for container in room.runtime.find({}):
            if container.name.endswith("algo-1"):
                room.runtime.remove(container.id)
        room.jobs.recover()
        room.wait_for_stage("Training")
        let_go(room)
        done = room.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert stages[-6:] == ["Restarting", "Starting", "Downloading", "Training", "Uploading", "Completed"]
        assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"


def test_job_whose_folder_is_gone_begins_again_though_its_container_runs(tmp_path: Path) -> None:
    """As where the state was taken from a copy, which has no folders of jobs."""
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO + "(ml / 'model/m').touch()", rules=[("Waits", "pass")])
    with recover(tmp_path, bucket) as room:
        (left,) = [each for each in room.runtime.find({}) if each.name.endswith("algo-1")]
        shutil.rmtree(room.settings.state_dir / "jobs")
        room.jobs.recover()
        assert left.id not in {each.id for each in room.runtime.find({})}
        room.wait_for_stage("Training")
        let_go(room)
        done = room.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        assert "Restarting" in [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert "out/job/output/model.tar.gz" in room.stored()


def test_job_that_read_a_pipe_is_never_taken_for_complete(tmp_path: Path) -> None:
    """The pipe's writer died with the emulator: who reads it sees an end that is none, and exits with 0."""
    bucket = "piped"
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{bucket}/plain/"}}
    channel = {"ChannelName": "plain", "InputMode": "Pipe", "DataSource": source}
    script = "pipe = open(ml / 'input/data/plain_0', 'rb'); pipe.read(10); print('half', flush=True)"
    script += WAIT_FOR_GO + "print(10 + len(pipe.read()), flush=True)"
    put = f"room.s3.create_bucket({bucket!r}); room.s3.put({bucket!r}, 'plain/a', bytes(4_000_000))"
    condition = (
        "room.describe()['SecondaryStatus'] == 'Training' and 'half' in room.log('/aws/sagemaker/TrainingJobs', 'job/')"
    )
    room_bucket = run_and_kill(
        tmp_path, script, condition=condition, members={"InputDataConfig": [channel]}, before=put
    )
    with recover(tmp_path, room_bucket) as room:
        room.s3.create_bucket(bucket)
        room.s3.put(bucket, "plain/a", bytes(4_000_000))
        let_go(room)
        wait_until(lambda: not any(container.running for container in room.runtime.find({})))
        room.jobs.recover()
        restarted = {"Status": "Restarting"}.items()
        wait_until(lambda: any(restarted <= each.items() for each in room.describe()["SecondaryStatusTransitions"]))
        room.wait_for_stage("Training")
        let_go(room)
        done = room.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        assert room.log("/aws/sagemaker/TrainingJobs", "job/")[-1] == "4000000"


def test_job_that_was_stopping_is_stopped(tmp_path: Path) -> None:
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n(ml / 'ready').touch()\ntime.sleep(600)"
    condition = (
        "list((room.settings.state_dir / 'jobs').glob('*/algo-1/ready')) and "
        "room.describe()['SecondaryStatus'] in ('Training', 'Stopping') and room.jobs.training.stop(REGION, 'job')"
    )
    bucket = run_and_kill(tmp_path, script, condition=condition)
    with recover(tmp_path, bucket) as room:
        room.jobs.recover()
        done = room.wait()
        assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "Stopped")


def test_job_that_lost_its_container_too_often_fails_and_says_so(tmp_path: Path) -> None:
    script = "(ml / 'output/tensors/early').touch()\n" + WAIT_FOR_GO
    condition = "list((room.settings.state_dir / 'jobs').glob('*/algo-1/output/tensors/early'))"
    bucket = run_and_kill(
        tmp_path, script, condition=condition + " and room.describe()['SecondaryStatus'] == 'Training'"
    )
    with recover(tmp_path, bucket) as room:
        for container in room.runtime.find({STORE_LABEL: room.store.id}):
            room.runtime.remove(container.id)
        with room.store.transaction() as transaction:
            job = transaction.find_job(TrainingJob, REGION, "job")
            assert job is not None
            for _ in range(10):
                job = job.begin_again(job.last_modified_ms + 1)
                for stage in ("Starting", "Downloading", "Training"):
                    job = job.transition(stage, job.last_modified_ms + 1)
            transaction.save_job(job)
        room.jobs.recover()
        done = room.describe()
        assert done["TrainingJobStatus"] == "Failed"
        assert done["FailureReason"].startswith("InternalServerError: What the job ran in was lost too often")
        assert "tensors/job/debug-output/early" in room.stored(), "what it had saved is kept"
        assert list((room.settings.state_dir / "jobs").iterdir()) == []


def test_job_killed_while_it_was_prepared_begins_again(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, condition="True", rules=[("R", "pass")])
    with recover(tmp_path, bucket) as room:
        for container in room.runtime.find({STORE_LABEL: room.store.id}):
            room.runtime.stop(container.id, 0)
            room.runtime.remove(container.id)
        room.jobs.recover()
        room.wait_for_stage("Training")
        let_go(room)
        done = room.wait()
        assert done["TrainingJobStatus"] == "Completed"
        assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"


def test_job_that_failed_while_nobody_answered_begins_again(tmp_path: Path) -> None:
    """The first time it cannot reach S3, say; the second is its own."""
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO + "print('fails', flush=True)\nsys.exit(5)")
    with recover(tmp_path, bucket) as room:
        let_go(room)
        wait_until(lambda: not any(container.running for container in room.runtime.find({})))
        room.jobs.recover()
        wait_until(lambda: "Restarting" in [each["Status"] for each in room.describe()["SecondaryStatusTransitions"]])
        room.wait_for_stage("Training")
        let_go(room)
        done = room.wait()
        assert done["TrainingJobStatus"] == "Failed"
        assert done["FailureReason"].endswith("exit code: 5")
        assert [each["Status"] for each in done["SecondaryStatusTransitions"]].count("Restarting") == 1


def test_job_killed_between_interruption_and_cleanup_begins_again(tmp_path: Path) -> None:
    """Its containers are all there, and have ended by the interruption."""
    before = (
        "from emulator.jobs.runs.training_job_run import TrainingJobRun; "
        "TrainingJobRun._replace_attempt = lambda run, containers: os.kill(os.getpid(), signal.SIGKILL)"
    )
    condition = (
        "room.describe()['SecondaryStatus'] == 'Training' and room.jobs.training.interrupt(REGION, 'job', 0) or False"
    )
    bucket = run_and_kill(
        tmp_path, WAIT_FOR_GO, before=before, condition=condition, members={"EnableManagedSpotTraining": True}
    )
    with recover(tmp_path, bucket) as room:
        assert room.describe()["SecondaryStatus"] == "Interrupted"
        assert len(room.runtime.find({})) == 1
        room.jobs.recover()
        room.wait_for_stage("Training")
        let_go(room)
        done = room.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert stages.count("Interrupted") == 1
        assert stages.count("Training") == 2


def test_job_that_was_stopping_without_a_container_is_stopped(tmp_path: Path) -> None:
    condition = (
        "room.describe()['SecondaryStatus'] in ('Training', 'Stopping') and room.jobs.training.stop(REGION, 'job')"
    )
    bucket = run_and_kill(
        tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)", condition=condition
    )
    with recover(tmp_path, bucket) as room:
        for container in room.runtime.find({STORE_LABEL: room.store.id}):
            room.runtime.remove(container.id)
        room.jobs.recover()
        assert room.wait()["TrainingJobStatus"] == "Stopped"


@pytest.mark.parametrize(("losses", "status"), [(0, "NoIssuesFound"), (10, "Error")])
def test_rule_whose_container_is_gone_judges_again(tmp_path: Path, losses: int, status: str) -> None:
    condition = "room.describe()['SecondaryStatus'] == 'Training' and len(room.runtime.find({})) == 2"
    condition += " and room.store.list_running_jobs(RuleEvaluation)[0].start_ms"
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, condition=condition, rules=[("R", "pass")])
    with recover(tmp_path, bucket) as room:
        for container in room.runtime.find({}):
            if not container.name.endswith("algo-1"):
                lose(room, container, losses)
        room.jobs.recover()
        let_go(room)
        done = room.wait()
        assert done["TrainingJobStatus"] == "Completed"
        rule = done["DebugRuleEvaluationStatuses"][0]
        assert rule["RuleEvaluationStatus"] == status
        assert ("lost too often" in rule.get("StatusDetails", "")) == (losses > 0)
        wait_until(lambda: list((room.settings.state_dir / "jobs").iterdir()) == [])


def test_rule_killed_before_its_container_started_starts_from_nothing(tmp_path: Path) -> None:
    before = (
        "from emulator.jobs.runs.rule_job_run import RuleJobRun; "
        "RuleJobRun._start_containers = lambda run: os.kill(os.getpid(), signal.SIGKILL)"
    )
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, before=before, condition="False", rules=[("R", "pass")])
    with recover(tmp_path, bucket) as room:
        (folder,) = (room.settings.state_dir / "jobs").glob("job-R-*")
        (folder / "ml/output/verdict.json").write_text('{"RuleEvaluationStatus": "IssuesFound"}')
        room.jobs.recover()
        room.wait_for_stage("Training")
        let_go(room)
        assert room.wait()["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"


def test_container_of_an_ended_job_is_removed(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, "time.sleep(600)")
    with recover(tmp_path, bucket) as room:
        store_id = room.store.id
        with room.store.transaction() as transaction:
            job = transaction.find_job(TrainingJob, REGION, "job")
            assert job is not None
            transaction.save_job(job.transition("Failed", job.last_modified_ms + 1))
        (container,) = room.runtime.find({STORE_LABEL: store_id})
        assert container.labels[JOB_LABEL] == job.arn
        room.jobs.recover()
        assert room.runtime.find({}) == []


@pytest.mark.parametrize("lost", [False, True])
def test_rule_that_had_ended_leaves_its_output_and_no_folder(tmp_path: Path, *, lost: bool) -> None:
    """It was killed between the verdict and the upload of what the rule wrote; or its container went as well."""
    before = (
        "from emulator.jobs.runs.rule_job_run import RuleJobRun; "
        "RuleJobRun._upload_output = lambda run: os.kill(os.getpid(), signal.SIGKILL)"
    )
    condition = "False"
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, before=before, condition=condition, rules=[("R", "pass")])
    with recover(tmp_path, bucket) as room:
        if lost:
            for container in room.runtime.find({}):
                if not container.name.endswith("algo-1"):
                    room.runtime.stop(container.id, 0)
                    room.runtime.remove(container.id)
        room.jobs.recover()
        wait_until(lambda: any(key.endswith("report.txt") for key in room.stored()), room.stored)
        let_go(room)
        done = room.wait()
        assert done["TrainingJobStatus"] == "Completed"
        assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"
        room.jobs.close()
        assert list_folders(room) == []
        told = [event["detail"].get("DebugRuleEvaluationStatuses") for event in room.publisher.events]
        assert [each[0]["RuleEvaluationStatus"] for each in told if each].count("NoIssuesFound") >= 1


@pytest.mark.parametrize("status", ["Completed", "Failed"])
def test_folder_of_a_job_that_had_ended_goes(tmp_path: Path, status: str) -> None:
    """It was killed between the job's end and the folder's."""
    before = (
        "from emulator.jobs.runs import job_run; "
        "job_run.remove_work_folder = lambda folder: os.kill(os.getpid(), signal.SIGKILL)"
    )
    script = "(ml / 'output/tensors/late').touch()\n" + ("sys.exit(3)" if status == "Failed" else "")
    bucket = run_and_kill(tmp_path, script, before=before, condition="False")
    with recover(tmp_path, bucket) as room:
        assert len(list_folders(room)) == 1
        room.jobs.recover()
        assert room.describe()["TrainingJobStatus"] == status
        assert list_folders(room) == []
        # The S3 of the killed one died with it: a failed job's tensors are made sure of.
        assert ("tensors/job/debug-output/late" in room.stored()) == (status == "Failed")


def test_folder_that_is_said_to_be_kept_outlasts_a_restart(tmp_path: Path) -> None:
    script = "os.rmdir(ml / 'model'); os.symlink('/usr', ml / 'model')"
    condition = "room.describe()['TrainingJobStatus'] == 'Failed'"
    bucket = run_and_kill(tmp_path, script, condition=condition)
    with recover(tmp_path, bucket) as room:
        room.jobs.recover()
        (folder,) = list_folders(room)
        assert f"is kept in {folder}" in room.describe()["FailureReason"]


def list_folders(room: Room) -> list[str]:
    return [str(folder) for folder in (room.settings.state_dir / "jobs").glob("*")]


def test_other_emulators_containers_are_left_alone(room: Room) -> None:
    from container_runtime.spec import ContainerSpec

    spec = ContainerSpec(
        "other",
        "tiny",
        entrypoint=(sys.executable, "-c", "import time; time.sleep(60)"),
        labels={STORE_LABEL: "somebody else's", JOB_LABEL: "arn:x"},
    )
    container_id = room.runtime.start(spec)
    room.jobs.recover()
    assert [container.id for container in room.runtime.find({})] == [container_id]
    room.runtime.stop(container_id, 0)
    room.runtime.remove(container_id)


@pytest.mark.parametrize(("gone", "losses"), [(False, 0), (True, 0), (True, 10)])
def test_processing_job_is_taken_up_or_begins_again(tmp_path: Path, *, gone: bool, losses: int) -> None:
    script = WAIT_FOR_GO + "(ml / 'processing/live/late').touch()"
    before = (
        "from tests.room.emulator.jobs.runs.test_processing import build_outputs, build_request, describe; "
        "room.jobs.processing.create(REGION, build_request(room, " + repr(script) + ", "
        "ProcessingOutputConfig=build_outputs(room, live='Continuous')))"
    )
    condition = "'ProcessingStartTime' in describe(room)"
    bucket = run_and_kill(tmp_path, "", before=before, condition=condition)
    with recover(tmp_path, bucket) as room:
        if gone:
            for container in room.runtime.find({STORE_LABEL: room.store.id}):
                lose(room, container, losses)
        room.jobs.recover()
        if losses:
            assert wait(room)["FailureReason"].startswith("InternalServerError: What the job ran in was lost too often")
            assert list((room.settings.state_dir / "jobs").glob("work-*")) == []
            return
        assert describe(room)["ProcessingJobStatus"] == "InProgress"

        def has_ended() -> bool:
            let_go(room)
            return describe(room)["ProcessingJobStatus"] != "InProgress"

        wait_until(has_ended)
        assert wait(room)["ProcessingJobStatus"] == "Completed"
        assert "out/live/late" in room.stored()


def test_tuning_job_goes_on_where_it_was(tmp_path: Path) -> None:
    script = "p = json.loads((ml / 'input/config/hyperparameters.json').read_text())" + WAIT_FOR_GO
    before = (
        "from tests.room.emulator.jobs.runs import test_tuning as tuning; "
        "tuning.SCRIPT = " + repr(script + "print('loss=' + p['x'] + ';')") + "; "
        "room.jobs.tuning.create(REGION, tuning.build_request(room, ['2', '1'], 'tune'))"
    )
    condition = "any(each['TrainingJobStatus'] == 'InProgress' for each in tuning.list_trainings(room)) and ("
    condition += "room.describe(tuning.list_trainings(room)[0]['TrainingJobName'])['SecondaryStatus'] == 'Training')"
    bucket = run_and_kill(tmp_path, "", before=before, condition=condition)
    with recover(tmp_path, bucket) as room:
        room.jobs.recover()

        def ended() -> bool:
            let_go(room)
            return test_tuning.describe(room)["HyperParameterTuningJobStatus"] in ENDED

        wait_until(ended, lambda: test_tuning.describe(room))
        done = test_tuning.describe(room)
        assert done["HyperParameterTuningJobStatus"] == "Completed"
        assert done["TrainingJobStatusCounters"]["Completed"] == 2
        assert done["BestTrainingJob"]["TunedHyperParameters"] == {"x": "1"}


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Event:
    """An engine that is away until the event is set: then whoever waited for a container's end hears of it."""
    wait, away = LocalProcesses.wait, Event()

    def wait_on_engine(runtime: LocalProcesses, container_id: str, timeout: float | None = None) -> Exit | None:
        if timeout is None and not away.is_set():
            away.wait()
            raise EngineUnavailableError("no engine answers")
        return wait(runtime, container_id, timeout)

    monkeypatch.setattr(LocalProcesses, "wait", wait_on_engine)
    return away


def test_job_that_was_stopping_is_stopped_whose_engine_lost_it(room: Room, away: Event) -> None:
    script = "(ml / 'output/tensors/early').touch()\nprint('first', flush=True)" + WAIT_FOR_GO
    room.jobs.training.create(REGION, room.request(script=script, DebugHookConfig=room.hook()))
    room.wait_for_stage("Training")
    wait_until(lambda: "first" in room.log("/aws/sagemaker/TrainingJobs", "job/"))
    (container,) = room.runtime.find({})
    room.jobs.training.stop(REGION, "job")
    room.runtime.remove(container.id)
    away.set()
    assert room.wait()["TrainingJobStatus"] == "Stopped"
    assert {"tensors/job/debug-output/early", "tensors/job/debug-output/training_job_end.ts"} <= set(room.stored())


@pytest.mark.parametrize("ends", [False, True])
def test_job_outlasts_an_engine_that_goes_away(room: Room, away: Event, *, ends: bool) -> None:
    """It is taken up again where its container runs on, and begins again where that ended with the engine."""
    script = "print('first', flush=True)" + WAIT_FOR_GO
    rules = [room.rule("R", "pass")]
    request = room.request(script=script, DebugHookConfig=room.hook(), DebugRuleConfigurations=rules)
    room.jobs.training.create(REGION, request)
    room.wait_for_stage("Training")
    wait_until(lambda: "first" in room.log("/aws/sagemaker/TrainingJobs", "job/"))
    if ends:
        (container,) = room.runtime.find({JOB_LABEL: room.store.list_running_jobs(TrainingJob)[0].arn})
        with room.runtime._watch(room.runtime._folder_of(container.id)) as watch:  # as an engine that ends ends it
            watch.send(signal.SIGTERM)
            assert watch.wait(60)
    away.set()
    if ends:
        wait_until(lambda: "Restarting" in [each["Status"] for each in room.describe()["SecondaryStatusTransitions"]])
        room.wait_for_stage("Training")

    def has_completed() -> bool:
        let_go(room)
        return bool(room.describe()["TrainingJobStatus"] == "Completed")

    wait_until(has_completed, room.describe)
    assert room.wait()["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"
    assert room.log("/aws/sagemaker/TrainingJobs", "job/").count("first") == 1 + ends
