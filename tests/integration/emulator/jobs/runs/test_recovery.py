"""Tests of recovery after a killed emulator, on the same state folder."""

import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import Container, EngineUnavailableError, Exit
from container_runtime.spec import ContainerSpec
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness, open_job_harness
from tests.integration.emulator.jobs.runs import test_tuning
from tests.integration.emulator.jobs.runs.test_processing import describe, wait
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.waiting import ENDED, wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[5]

# Runs an emulator's job harness until a condition of its own state holds, then dies as by kill -9.
KILLED = """
import os, pathlib, signal, sys, json
sys.path.insert(0, {root!r})
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from tests.integration.emulator.jobs.job_harness import REGION, open_job_harness
from tests.integration.emulator.jobs.runs import test_tuning
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.waiting import ENDED, wait_until
with open_job_harness(pathlib.Path({tmp!r}), RecordingPublisher(deliver=False)) as harness:
    {before}
    request = harness.request(script={script!r}, DebugHookConfig=harness.hook(), **{members})
    request["DebugRuleConfigurations"] = [harness.rule(n, b) for n, b in {rules}]
    print(harness.bucket, flush=True)
    harness.jobs.training.create(REGION, request)
    wait_until(lambda: {condition})
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run_and_kill(
    tmp_path: Path,
    script: str,
    *,
    condition: str = "harness.describe()['SecondaryStatus'] == 'Training'",
    rules: list[tuple[str, str]] | None = None,
    members: dict[str, Any] | None = None,
    before: str = "",
) -> str:
    """Returns the bucket of the killed harness; its S3 died with it."""
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
    return open_job_harness(tmp_path, publisher, bucket=bucket)


def let_go(harness: JobHarness) -> None:
    with suppress(FileNotFoundError):  # a job has ended meanwhile
        for folder in (harness.settings.state_dir / "jobs").glob("*/algo-*"):
            (folder / "go").touch()


def lose(harness: JobHarness, container: Container, losses: int) -> None:
    """Remove a container whose job had been lost so often before."""
    harness.runtime.remove(container.id)
    for _ in range(losses):
        harness.store.count_loss(container.labels[JOB_LABEL])


WAIT_FOR_GO = "\nwhile not (ml / 'go').exists(): time.sleep(0.01)\n"


@pytest.mark.parametrize(("end", "status"), [("", "Completed"), ("sys.exit(4)", "Failed")])
def test_running_job_ends_as_its_container_exits(tmp_path: Path, end: str, status: str) -> None:
    script = "print('first', flush=True)\n(ml / 'output/tensors/early').touch()" + WAIT_FOR_GO + "print('last')\n" + end
    bucket = run_and_kill(tmp_path, script, rules=[("Passes", "pass"), ("Waits", "wait")])
    with recover(tmp_path, bucket) as harness:
        harness.jobs.recover()
        assert harness.describe()["SecondaryStatus"] == "Training"
        let_go(harness)
        wait_until(lambda: harness.describe()["TrainingJobStatus"] == status, harness.describe)
        done = harness.describe()
        lines = harness.log("/aws/sagemaker/TrainingJobs", "job/")
        assert [line for line in lines if not line.startswith("smdebug-emulator: ")][-2:] == ["first", "last"]
        assert "tensors/job/debug-output/early" in harness.stored()
        assert "tensors/job/debug-output/training_job_end.ts" in harness.stored()
        if status == "Failed":
            assert done["FailureReason"].endswith("exit code: 4")
        harness.jobs.close()
        published = [event["detail"].get("SecondaryStatus") for event in harness.publisher.events]
        assert published[0] == "Starting", "what was not delivered before goes out first"
        assert harness.store.messages.list_outbox() == []


def test_job_whose_container_ended_meanwhile_ends_too(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO + "(ml / 'model/m').touch()")
    with recover(tmp_path, bucket) as harness:
        let_go(harness)
        wait_until(lambda: not any(container.running for container in harness.runtime.find({})))
        harness.jobs.recover()
        assert harness.wait()["TrainingJobStatus"] == "Completed"
        assert "out/job/output/model.tar.gz" in harness.stored()


def test_job_whose_container_is_gone_begins_again(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, rules=[("Waits", "pass")])
    with recover(tmp_path, bucket) as harness:
        for container in harness.runtime.find({}):
            if container.name.endswith("algo-1"):
                harness.runtime.remove(container.id)
        harness.jobs.recover()
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert stages[-6:] == ["Restarting", "Starting", "Downloading", "Training", "Uploading", "Completed"]
        assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"


def test_job_whose_folder_is_gone_begins_again_though_its_container_runs(tmp_path: Path) -> None:
    """As where the state was taken from a copy, which has no folders of jobs."""
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO + "(ml / 'model/m').touch()", rules=[("Waits", "pass")])
    with recover(tmp_path, bucket) as harness:
        (left,) = [each for each in harness.runtime.find({}) if each.name.endswith("algo-1")]
        shutil.rmtree(harness.settings.state_dir / "jobs")
        harness.jobs.recover()
        assert left.id not in {each.id for each in harness.runtime.find({})}
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        assert "Restarting" in [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert "out/job/output/model.tar.gz" in harness.stored()


def test_job_that_read_a_pipe_is_never_taken_for_complete(tmp_path: Path) -> None:
    """The pipe's writer died with the emulator: who reads it sees an end that is none, and exits with 0."""
    bucket = "piped"
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{bucket}/plain/"}}
    channel = {"ChannelName": "plain", "InputMode": "Pipe", "DataSource": source}
    script = "pipe = open(ml / 'input/data/plain_0', 'rb'); pipe.read(10); print('half', flush=True)"
    script += WAIT_FOR_GO + "print(10 + len(pipe.read()), flush=True)"
    put = f"harness.s3.create_bucket({bucket!r}); harness.s3.put({bucket!r}, 'plain/a', bytes(4_000_000))"
    condition = (
        "harness.describe()['SecondaryStatus'] == 'Training' and "
        "'half' in harness.log('/aws/sagemaker/TrainingJobs', 'job/')"
    )
    harness_bucket = run_and_kill(
        tmp_path, script, condition=condition, members={"InputDataConfig": [channel]}, before=put
    )
    with recover(tmp_path, harness_bucket) as harness:
        harness.s3.create_bucket(bucket)
        harness.s3.put(bucket, "plain/a", bytes(4_000_000))
        let_go(harness)
        wait_until(lambda: not any(container.running for container in harness.runtime.find({})))
        harness.jobs.recover()
        restarted = {"Status": "Restarting"}.items()
        wait_until(lambda: any(restarted <= each.items() for each in harness.describe()["SecondaryStatusTransitions"]))
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        assert harness.log("/aws/sagemaker/TrainingJobs", "job/")[-1] == "4000000"


def test_job_that_was_stopping_is_stopped(tmp_path: Path) -> None:
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n(ml / 'ready').touch()\ntime.sleep(600)"
    condition = (
        "list((harness.settings.state_dir / 'jobs').glob('*/algo-1/ready')) and "
        "harness.describe()['SecondaryStatus'] in ('Training', 'Stopping') and "
        "harness.jobs.training.stop(REGION, 'job')"
    )
    bucket = run_and_kill(tmp_path, script, condition=condition)
    with recover(tmp_path, bucket) as harness:
        harness.jobs.recover()
        done = harness.wait()
        assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "Stopped")


def test_job_that_lost_its_container_too_often_fails_and_says_so(tmp_path: Path) -> None:
    script = "(ml / 'output/tensors/early').touch()\n" + WAIT_FOR_GO
    condition = "list((harness.settings.state_dir / 'jobs').glob('*/algo-1/output/tensors/early'))"
    bucket = run_and_kill(
        tmp_path, script, condition=condition + " and harness.describe()['SecondaryStatus'] == 'Training'"
    )
    with recover(tmp_path, bucket) as harness:
        for container in harness.runtime.find({STORE_LABEL: harness.store.id}):
            harness.runtime.remove(container.id)
        with harness.store.transaction() as transaction:
            job = transaction.find_job(TrainingJob, REGION, "job")
            assert job is not None
            for _ in range(10):
                job = job.restart(job.last_modified_ms + 1)
                for stage in ("Starting", "Downloading", "Training"):
                    job = job.transition(stage, job.last_modified_ms + 1)
            transaction.save_job(job)
        harness.jobs.recover()
        done = harness.describe()
        assert done["TrainingJobStatus"] == "Failed"
        assert done["FailureReason"].startswith("InternalServerError: What the job ran in was lost too often")
        assert "tensors/job/debug-output/early" in harness.stored(), "what it had saved is kept"
        assert list((harness.settings.state_dir / "jobs").iterdir()) == []


def test_job_killed_while_it_was_prepared_begins_again(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, condition="True", rules=[("R", "pass")])
    with recover(tmp_path, bucket) as harness:
        for container in harness.runtime.find({STORE_LABEL: harness.store.id}):
            harness.runtime.stop(container.id, 0)
            harness.runtime.remove(container.id)
        harness.jobs.recover()
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed"
        assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"


def test_job_that_failed_while_nobody_answered_begins_again(tmp_path: Path) -> None:
    """The first time it cannot reach S3, say; the second is its own."""
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO + "print('fails', flush=True)\nsys.exit(5)")
    with recover(tmp_path, bucket) as harness:
        let_go(harness)
        wait_until(lambda: not any(container.running for container in harness.runtime.find({})))
        harness.jobs.recover()
        wait_until(
            lambda: "Restarting" in [each["Status"] for each in harness.describe()["SecondaryStatusTransitions"]]
        )
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
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
        "harness.describe()['SecondaryStatus'] == 'Training' and "
        "harness.jobs.training.interrupt(REGION, 'job', 0) or False"
    )
    bucket = run_and_kill(
        tmp_path, WAIT_FOR_GO, before=before, condition=condition, members={"EnableManagedSpotTraining": True}
    )
    with recover(tmp_path, bucket) as harness:
        assert harness.describe()["SecondaryStatus"] == "Interrupted"
        assert len(harness.runtime.find({})) == 1
        harness.jobs.recover()
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert stages.count("Interrupted") == 1
        assert stages.count("Training") == 2


def test_job_that_was_stopping_without_a_container_is_stopped(tmp_path: Path) -> None:
    condition = (
        "harness.describe()['SecondaryStatus'] in ('Training', 'Stopping') and "
        "harness.jobs.training.stop(REGION, 'job')"
    )
    bucket = run_and_kill(
        tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)", condition=condition
    )
    with recover(tmp_path, bucket) as harness:
        for container in harness.runtime.find({STORE_LABEL: harness.store.id}):
            harness.runtime.remove(container.id)
        harness.jobs.recover()
        assert harness.wait()["TrainingJobStatus"] == "Stopped"


@pytest.mark.parametrize(("losses", "status"), [(0, "NoIssuesFound"), (10, "Error")])
def test_rule_whose_container_is_gone_judges_again(tmp_path: Path, losses: int, status: str) -> None:
    condition = "harness.describe()['SecondaryStatus'] == 'Training' and len(harness.runtime.find({})) == 2"
    condition += " and harness.store.list_running_jobs(RuleEvaluation)[0].start_ms"
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, condition=condition, rules=[("R", "pass")])
    with recover(tmp_path, bucket) as harness:
        for container in harness.runtime.find({}):
            if not container.name.endswith("algo-1"):
                lose(harness, container, losses)
        harness.jobs.recover()
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed"
        rule = done["DebugRuleEvaluationStatuses"][0]
        assert rule["RuleEvaluationStatus"] == status
        assert ("lost too often" in rule.get("StatusDetails", "")) == (losses > 0)
        wait_until(lambda: list((harness.settings.state_dir / "jobs").iterdir()) == [])


def test_rule_killed_before_its_container_started_starts_from_nothing(tmp_path: Path) -> None:
    before = (
        "from emulator.jobs.runs.rule_job_run import RuleJobRun; "
        "RuleJobRun._start_containers = lambda run: os.kill(os.getpid(), signal.SIGKILL)"
    )
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, before=before, condition="False", rules=[("R", "pass")])
    with recover(tmp_path, bucket) as harness:
        (folder,) = (harness.settings.state_dir / "jobs").glob("job-R-*")
        (folder / "ml/output/verdict.json").write_text('{"RuleEvaluationStatus": "IssuesFound"}')
        harness.jobs.recover()
        harness.wait_for_stage("Training")
        let_go(harness)
        assert harness.wait()["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"


def test_container_of_an_ended_job_is_removed(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, "time.sleep(600)")
    with recover(tmp_path, bucket) as harness:
        store_id = harness.store.id
        with harness.store.transaction() as transaction:
            job = transaction.find_job(TrainingJob, REGION, "job")
            assert job is not None
            transaction.save_job(job.transition("Failed", job.last_modified_ms + 1))
        (container,) = harness.runtime.find({STORE_LABEL: store_id})
        assert container.labels[JOB_LABEL] == job.arn
        harness.jobs.recover()
        assert harness.runtime.find({}) == []


@pytest.mark.parametrize("lost", [False, True])
def test_rule_that_had_ended_leaves_its_output_and_no_folder(tmp_path: Path, *, lost: bool) -> None:
    """It was killed between the verdict and the upload of what the rule wrote; or its container went as well."""
    before = (
        "from emulator.jobs.runs.rule_job_run import RuleJobRun; "
        "RuleJobRun._upload_output = lambda run: os.kill(os.getpid(), signal.SIGKILL)"
    )
    condition = "False"
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, before=before, condition=condition, rules=[("R", "pass")])
    with recover(tmp_path, bucket) as harness:
        if lost:
            for container in harness.runtime.find({}):
                if not container.name.endswith("algo-1"):
                    harness.runtime.stop(container.id, 0)
                    harness.runtime.remove(container.id)
        harness.jobs.recover()
        wait_until(lambda: any(key.endswith("report.txt") for key in harness.stored()), harness.stored)
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed"
        assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"
        harness.jobs.close()
        assert list_folders(harness) == []
        told = [event["detail"].get("DebugRuleEvaluationStatuses") for event in harness.publisher.events]
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
    with recover(tmp_path, bucket) as harness:
        assert len(list_folders(harness)) == 1
        harness.jobs.recover()
        assert harness.describe()["TrainingJobStatus"] == status
        assert list_folders(harness) == []
        # The S3 of the killed one died with it: a failed job's tensors are made sure of.
        assert ("tensors/job/debug-output/late" in harness.stored()) == (status == "Failed")


def test_folder_that_is_said_to_be_kept_outlasts_a_restart(tmp_path: Path) -> None:
    script = "os.rmdir(ml / 'model'); os.symlink('/usr', ml / 'model')"
    condition = "harness.describe()['TrainingJobStatus'] == 'Failed'"
    bucket = run_and_kill(tmp_path, script, condition=condition)
    with recover(tmp_path, bucket) as harness:
        harness.jobs.recover()
        (folder,) = list_folders(harness)
        assert f"is kept in {folder}" in harness.describe()["FailureReason"]


def list_folders(harness: JobHarness) -> list[str]:
    return [str(folder) for folder in (harness.settings.state_dir / "jobs").glob("*")]


def test_other_emulators_containers_are_left_alone(harness: JobHarness) -> None:
    from container_runtime.spec import ContainerSpec

    spec = ContainerSpec(
        "other",
        "tiny",
        entrypoint=(sys.executable, "-c", "import time; time.sleep(60)"),
        labels={STORE_LABEL: "somebody else's", JOB_LABEL: "arn:x"},
    )
    container_id = harness.runtime.start(spec)
    harness.jobs.recover()
    assert [container.id for container in harness.runtime.find({})] == [container_id]
    harness.runtime.stop(container_id, 0)
    harness.runtime.remove(container_id)


@pytest.mark.parametrize(("gone", "losses"), [(False, 0), (True, 0), (True, 10)])
def test_processing_job_is_taken_up_or_begins_again(tmp_path: Path, *, gone: bool, losses: int) -> None:
    script = WAIT_FOR_GO + "(ml / 'processing/live/late').touch()"
    before = (
        "from tests.integration.emulator.jobs.runs.test_processing import build_outputs, build_request, describe; "
        "harness.jobs.processing.create(REGION, build_request(harness, " + repr(script) + ", "
        "ProcessingOutputConfig=build_outputs(harness, live='Continuous')))"
    )
    condition = "'ProcessingStartTime' in describe(harness)"
    bucket = run_and_kill(tmp_path, "", before=before, condition=condition)
    with recover(tmp_path, bucket) as harness:
        if gone:
            for container in harness.runtime.find({STORE_LABEL: harness.store.id}):
                lose(harness, container, losses)
        harness.jobs.recover()
        if losses:
            assert wait(harness)["FailureReason"].startswith(
                "InternalServerError: What the job ran in was lost too often"
            )
            assert list((harness.settings.state_dir / "jobs").glob("work-*")) == []
            return
        assert describe(harness)["ProcessingJobStatus"] == "InProgress"

        def has_ended() -> bool:
            let_go(harness)
            return describe(harness)["ProcessingJobStatus"] != "InProgress"

        wait_until(has_ended)
        assert wait(harness)["ProcessingJobStatus"] == "Completed"
        assert "out/live/late" in harness.stored()


def test_tuning_job_goes_on_where_it_was(tmp_path: Path) -> None:
    script = "p = json.loads((ml / 'input/config/hyperparameters.json').read_text())" + WAIT_FOR_GO
    before = (
        "from tests.integration.emulator.jobs.runs import test_tuning as tuning; "
        "tuning.SCRIPT = " + repr(script + "print('loss=' + p['x'] + ';')") + "; "
        "harness.jobs.tuning.create(REGION, tuning.build_request(harness, ['2', '1'], 'tune'))"
    )
    condition = "any(each['TrainingJobStatus'] == 'InProgress' for each in tuning.list_trainings(harness)) and ("
    condition += (
        "harness.describe(tuning.list_trainings(harness)[0]['TrainingJobName'])['SecondaryStatus'] == 'Training')"
    )
    bucket = run_and_kill(tmp_path, "", before=before, condition=condition)
    with recover(tmp_path, bucket) as harness:
        harness.jobs.recover()

        def ended() -> bool:
            let_go(harness)
            return test_tuning.describe(harness)["HyperParameterTuningJobStatus"] in ENDED

        wait_until(ended, lambda: test_tuning.describe(harness))
        done = test_tuning.describe(harness)
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


def test_job_that_was_stopping_is_stopped_whose_engine_lost_it(harness: JobHarness, away: Event) -> None:
    script = "(ml / 'output/tensors/early').touch()\nprint('first', flush=True)" + WAIT_FOR_GO
    harness.jobs.training.create(REGION, harness.request(script=script, DebugHookConfig=harness.hook()))
    harness.wait_for_stage("Training")
    wait_until(lambda: "first" in harness.log("/aws/sagemaker/TrainingJobs", "job/"))
    (container,) = harness.runtime.find({})
    harness.jobs.training.stop(REGION, "job")
    harness.runtime.remove(container.id)
    away.set()
    assert harness.wait()["TrainingJobStatus"] == "Stopped"
    assert {"tensors/job/debug-output/early", "tensors/job/debug-output/training_job_end.ts"} <= set(harness.stored())


@pytest.mark.parametrize("ends", [False, True])
def test_job_outlasts_an_engine_that_goes_away(harness: JobHarness, away: Event, *, ends: bool) -> None:
    """It is reattached where its container runs on, and begins again where that ended with the engine."""
    script = "print('first', flush=True)" + WAIT_FOR_GO
    rules = [harness.rule("R", "pass")]
    request = harness.request(script=script, DebugHookConfig=harness.hook(), DebugRuleConfigurations=rules)
    harness.jobs.training.create(REGION, request)
    harness.wait_for_stage("Training")
    wait_until(lambda: "first" in harness.log("/aws/sagemaker/TrainingJobs", "job/"))
    if ends:
        (container,) = harness.runtime.find({JOB_LABEL: harness.store.list_running_jobs(TrainingJob)[0].arn})
        # As an engine that ends ends it.
        harness.runtime._supervisors.stop(harness.runtime._folder_of(container.id), 60)
    away.set()
    if ends:
        wait_until(
            lambda: "Restarting" in [each["Status"] for each in harness.describe()["SecondaryStatusTransitions"]]
        )
        harness.wait_for_stage("Training")

    def has_completed() -> bool:
        let_go(harness)
        return bool(harness.describe()["TrainingJobStatus"] == "Completed")

    wait_until(has_completed, harness.describe)
    assert harness.wait()["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"
    assert harness.log("/aws/sagemaker/TrainingJobs", "job/").count("first") == 1 + ends


def test_what_warm_pools_need_is_kept_ready_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[tuple[str, float | None]] = []

    def keep_ready(_: LocalProcesses, spec: ContainerSpec, seconds: float | None = None) -> bool:
        kept.append((spec.image, seconds))
        return True

    monkeypatch.setattr(LocalProcesses, "keep_ready", keep_ready)
    resources = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}
    bucket = run_and_kill(
        tmp_path,
        "",
        condition="harness.describe().get('WarmPoolStatus', {}).get('Status') == 'Available'",
        members={"ResourceConfig": {**resources, "KeepAlivePeriodInSeconds": 3600}},
    )
    with recover(tmp_path, bucket) as harness:
        harness.jobs.recover()
        assert harness.describe()["WarmPoolStatus"]["Status"] == "Available"
        image = harness.describe()["AlgorithmSpecification"]["TrainingImage"]
        assert [name for name, _ in kept] == [image]
        assert kept[0][1] is not None
        assert 0 < kept[0][1] <= 3600
