"""Tests of recovery: rules, folders, containers, processing and tuning jobs."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from container_runtime.runtime import Container
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.integration.emulator.jobs.runs import test_tuning
from tests.integration.emulator.jobs.runs.killed_harness import WAIT_FOR_GO, let_go, recover, run_and_kill
from tests.integration.emulator.jobs.runs.test_processing import describe, wait
from tests.waiting import ENDED, wait_until

pytestmark = pytest.mark.slow


def lose(harness: JobHarness, container: Container, losses: int) -> None:
    """Remove a container whose job had been lost so often before."""
    harness.runtime.remove(container.id)
    for _ in range(losses):
        harness.store.count_loss(container.labels[JOB_LABEL])


def fail_job(harness: JobHarness) -> TrainingJob:
    """Store that the job has failed, and nothing else of its end."""
    with harness.store.transaction() as transaction:
        job = transaction.find_job(TrainingJob, REGION, "job")
        assert job is not None
        transaction.save_job(job.transition("Failed", job.last_modified_ms + 1))
    return job


def test_job_whose_folder_is_gone_begins_again_though_its_container_runs(tmp_path: Path) -> None:
    """As where the state was taken from a copy, which has no folders of jobs."""
    # The attempts' containers have the same id; their programs do not.
    bucket = run_and_kill(
        tmp_path,
        "\nimport os\n(ml / f'model/{os.getpid()}.program').touch()" + WAIT_FOR_GO + "(ml / 'model/m').touch()",
        condition="[*harness.settings.state_dir.glob('jobs/job-*/algo-1/model/*.program')]",
        rules=[("Waits", "pass")],
    )
    with recover(tmp_path, bucket) as harness:
        (left,) = (each.stem for each in harness.settings.state_dir.glob("jobs/job-*/algo-1/model/*.program"))
        assert Path("/proc", left).exists()
        shutil.rmtree(harness.settings.state_dir / "jobs")
        harness.jobs.recover()
        wait_until(lambda: not Path("/proc", left).exists())
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        assert "Restarting" in [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert "out/job/output/model.tar.gz" in harness.stored()


@pytest.mark.parametrize(
    ("losses", "status"), [(0, "NoIssuesFound"), pytest.param(10, "Error", marks=pytest.mark.nightly)]
)
def test_rule_whose_container_is_gone_judges_again(tmp_path: Path, losses: int, status: str) -> None:
    condition = "harness.describe()['SecondaryStatus'] == 'Training' and len(harness.runtime.find({})) == 2"
    condition += " and any(each.start_ms for each in harness.store.list_running_jobs(RuleEvaluation))"
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, condition=condition, rules=[("R", "pass when let go")])
    with recover(tmp_path, bucket) as harness:

        def rule_has_ended() -> bool:
            for folder in (harness.settings.state_dir / "jobs").glob("job-R-*/ml/output"):
                with suppress(FileNotFoundError):  # a rule that has ended has no folder
                    (folder / "go").touch()
            return harness.describe()["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == status

        for container in harness.runtime.find({}):
            if not container.name.endswith("algo-1"):
                lose(harness, container, losses)
        harness.jobs.recover()
        wait_until(rule_has_ended, harness.describe)
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed"
        rule = done["DebugRuleEvaluationStatuses"][0]
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


def test_rule_that_never_started_ends_with_its_job(tmp_path: Path) -> None:
    """The emulator was killed between the job's end and the end of the rule, which had waited for a place."""
    before = "from emulator.jobs.runs.rule_job_run import RuleJobRun; RuleJobRun.drive = lambda run: None"
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, before=before, rules=[("R", "pass")])
    with recover(tmp_path, bucket) as harness:
        fail_job(harness)
        harness.jobs.recover()
        (rule,) = harness.describe()["DebugRuleEvaluationStatuses"]
        assert rule["RuleEvaluationStatus"] == "Stopped"
        assert "ended before its container started" in rule["StatusDetails"]


def test_container_of_an_ended_job_is_removed(tmp_path: Path) -> None:
    bucket = run_and_kill(tmp_path, "time.sleep(600)")
    with recover(tmp_path, bucket) as harness:
        store_id = harness.store.id
        job = fail_job(harness)
        (container,) = harness.runtime.find({STORE_LABEL: store_id})
        assert container.labels[JOB_LABEL] == job.arn
        harness.jobs.recover()
        assert harness.runtime.find({}) == []


@pytest.mark.parametrize("lost", [False, pytest.param(True, marks=pytest.mark.nightly)])
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


@pytest.mark.parametrize("status", [pytest.param("Completed", marks=pytest.mark.nightly), "Failed"])
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


@pytest.mark.nightly  # it is removed where that of a training job is
def test_folder_of_a_processing_job_that_had_ended_goes(tmp_path: Path) -> None:
    before = (
        "from emulator.jobs.runs import job_run; "
        "job_run.remove_work_folder = lambda folder: os.kill(os.getpid(), signal.SIGKILL); "
        "from tests.integration.emulator.jobs.runs.test_processing import build_request; "
        "harness.jobs.processing.create(REGION, build_request(harness, 'pass'))"
    )
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, before=before, condition="False")
    with recover(tmp_path, bucket) as harness:
        assert describe(harness)["ProcessingJobStatus"] == "Completed"
        assert any(Path(folder).name.startswith("work-") for folder in list_folders(harness))
        harness.jobs.recover()
        assert not any(Path(folder).name.startswith("work-") for folder in list_folders(harness))
        let_go(harness)


def test_folder_that_is_reported_as_kept_outlasts_a_restart(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("gone", "losses"), [(False, 0), pytest.param(True, 0, marks=pytest.mark.nightly), (True, 10)])
def test_processing_job_is_reattached_or_restarted(tmp_path: Path, *, gone: bool, losses: int) -> None:
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


def test_tuning_job_continues_where_it_was(tmp_path: Path) -> None:
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
