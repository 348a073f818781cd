"""Tests of recovery after a killed emulator, on the same state folder."""

from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TypeVar

import pytest

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import EngineUnavailableError, Exit
from container_runtime.spec import ContainerSpec
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.integration.emulator.jobs.runs.killed_harness import WAIT_FOR_GO, let_go, recover, run_and_kill
from tests.integration.emulator.jobs.runs.test_processing import LOG, build_request, describe
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
ONE_HOUR = {"StoppingCondition": {"MaxRuntimeInSeconds": 3600}}
J = TypeVar("J", TrainingJob, ProcessingJob)


@pytest.mark.parametrize(
    ("end", "status"), [pytest.param("", "Completed", marks=pytest.mark.nightly), ("sys.exit(4)", "Failed")]
)
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


def let_hours_pass(harness: JobHarness) -> None:
    """As if the machine had been off for ten hours: all that the job did is so much longer ago."""
    ms = 36_000_000
    with harness.store.transaction() as transaction:
        job = harness.store.find_training_job(REGION, "job")
        assert job is not None
        earlier = tuple(
            replace(each, start_ms=each.start_ms - ms, end_ms=None if each.end_ms is None else each.end_ms - ms)
            for each in job.transitions
        )
        transaction.save_job(replace(job, creation_ms=job.creation_ms - ms, transitions=earlier))


def test_job_whose_container_ended_meanwhile_ends_too(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO + "(ml / 'model/m').touch()", members=ONE_HOUR)
    with recover(tmp_path, bucket) as harness:
        let_go(harness)
        wait_until(lambda: not any(container.running for container in harness.runtime.find({})))
        let_hours_pass(harness)
        harness.jobs.recover()
        assert harness.wait()["TrainingJobStatus"] == "Completed"
        assert "out/job/output/model.tar.gz" in harness.stored()


def test_job_whose_container_is_gone_begins_again(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, rules=[("Waits", "pass")], members=ONE_HOUR)
    with recover(tmp_path, bucket) as harness:
        for container in harness.runtime.find({}):
            if container.name.endswith("algo-1"):
                harness.runtime.remove(container.id)
        let_hours_pass(harness)
        harness.jobs.recover()
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert stages[-6:] == ["Restarting", "Starting", "Downloading", "Training", "Uploading", "Completed"]
        assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"


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


@pytest.mark.nightly
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


@pytest.mark.nightly  # interruptions are in test_spot.py, and lost containers above
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


@pytest.mark.nightly
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


def store_stop(harness: JobHarness, record: type[J], name: str) -> None:
    """Store that a job is stopping, and do not tell its run: between the two, a busy machine may do anything else."""
    with harness.store.transaction() as transaction:
        job = transaction.find_job(record, REGION, name)
        assert job is not None
        transaction.save_job(job.begin_stop(job.last_modified_ms + 1))


@pytest.mark.parametrize("told", [True, False])
def test_stopping_job_is_stopped_if_the_engine_lost_it(harness: JobHarness, away: Event, *, told: bool) -> None:
    script = "(ml / 'output/tensors/early').touch()\nprint('first', flush=True)" + WAIT_FOR_GO
    harness.jobs.training.create(REGION, harness.request(script=script, DebugHookConfig=harness.hook()))
    harness.wait_for_stage("Training")
    wait_until(lambda: "first" in harness.log("/aws/sagemaker/TrainingJobs", "job/"))
    (container,) = harness.runtime.find({})
    if told:
        harness.jobs.training.stop(REGION, "job")
    else:
        store_stop(harness, TrainingJob, "job")
    harness.runtime.remove(container.id)
    away.set()
    assert harness.wait()["TrainingJobStatus"] == "Stopped"
    assert {"tensors/job/debug-output/early", "tensors/job/debug-output/training_job_end.ts"} <= set(harness.stored())


def test_stopping_processing_job_is_stopped_if_the_engine_lost_it(harness: JobHarness, away: Event) -> None:
    harness.jobs.processing.create(REGION, build_request(harness, "print('first', flush=True)\ntime.sleep(600)"))
    wait_until(lambda: "ProcessingStartTime" in describe(harness))
    wait_until(lambda: "first" in harness.log(LOG, "work/"))
    (container,) = harness.runtime.find({})
    store_stop(harness, ProcessingJob, "work")
    harness.runtime.remove(container.id)
    away.set()
    wait_until(lambda: describe(harness)["ProcessingJobStatus"] == "Stopped", lambda: describe(harness))


@pytest.mark.parametrize("ends", [False, True])
def test_job_outlasts_an_engine_that_goes_away(harness: JobHarness, away: Event, *, ends: bool) -> None:
    """It is reattached where its container runs on, and begins again where that ended with the engine."""
    script = "print('first', flush=True)\nprint('loss=3;', flush=True)" + WAIT_FOR_GO + "print('loss=2;', flush=True)\n"
    rules = [harness.rule("R", "pass")]
    request = harness.request(script=script, DebugHookConfig=harness.hook(), DebugRuleConfigurations=rules)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=(.*?);"}]
    harness.jobs.training.create(REGION, request)
    harness.wait_for_stage("Training")
    wait_until(lambda: harness.metric("loss", {"TrainingJobName": "job"}) == [3.0])
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
    assert harness.metric("loss", {"TrainingJobName": "job"}) == [3.0] * (1 + ends) + [2.0]


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
