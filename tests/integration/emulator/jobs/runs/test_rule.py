"""Tests of whole rule evaluation runs beside a real training."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from container_runtime.runtime import NETWORK_CLOSED, Exit
from container_runtime.spec import Mount
from emulator.exceptions import ValidationException
from emulator.jobs.model.rule_evaluation import RuleEvaluation, new_rule_evaluation
from emulator.jobs.runs import threads
from emulator.jobs.runs.rule_job_run import describe_exit_without_verdict, parse_verdict
from emulator.jobs.staging.rule_configuration import is_below, locate_output
from emulator.jobs.store.transaction import StoreTransaction
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.waiting import wait_until


def rule_statuses(description: dict[str, Any]) -> dict[str, str]:
    return {
        each["RuleConfigurationName"]: each["RuleEvaluationStatus"]
        for each in description.get("DebugRuleEvaluationStatuses", ())
    }


def details_of(description: dict[str, Any], name: str) -> str:
    (found,) = [e for e in description["DebugRuleEvaluationStatuses"] if e["RuleConfigurationName"] == name]
    return str(found.get("StatusDetails"))


@pytest.mark.slow
def test_each_rule_ends_with_its_verdict(harness: JobHarness) -> None:
    rules = [
        harness.rule("Fires", "fire"),
        harness.rule("Passes", "pass", S3OutputPath=f"s3://{harness.bucket}/elsewhere/"),
        harness.rule("Dies", "die"),
        harness.rule("Mumbles", "nonsense"),
        harness.rule("NoImage", "pass", RuleEvaluatorImage="nobody-built-this:1"),
    ]
    request = harness.request(script="time.sleep(0.3)", DebugHookConfig=harness.hook(), DebugRuleConfigurations=rules)
    done = harness.run(request)
    assert done["TrainingJobStatus"] == "Completed"
    assert rule_statuses(done) == {
        "Fires": "IssuesFound",
        "Passes": "NoIssuesFound",
        "Dies": "Error",
        "Mumbles": "Error",
        "NoImage": "Error",
    }
    assert details_of(done, "Fires").startswith("RuleEvaluationConditionMet: Evaluation of the rule X at step 3")
    assert details_of(done, "Dies") == (
        "AlgorithmError: The rule container ended without a verdict. Its last line was: the last thing it said, "
        "exit code: 7"
    )
    assert details_of(done, "NoImage").startswith("ClientError: No image 'nobody-built-this:1'")
    assert "{not json" in details_of(done, "Mumbles")

    arn = done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationJobArn"]
    assert re.fullmatch(r"arn:aws:sagemaker:us-east-1:123456789012:processing-job/job-fires-[0-9a-f]{8}", arn)
    output = "out/job/rule-output/Fires/report.txt"
    wait_until(lambda: output in harness.stored() and "elsewhere/job/rule-output/Passes/report.txt" in harness.stored())
    configuration = json.loads(harness.s3.get(harness.bucket, output))
    assert configuration["TensorsS3Uri"] == f"s3://{harness.bucket}/tensors/job/debug-output"
    assert configuration["RuleParameters"] == {"behaviour": "fire"}
    assert set(configuration) == {
        "TrainingJobName",
        "TrainingJobArn",
        "ProcessingJobName",
        "RuleConfigurationName",
        "RuleParameters",
        "TensorsS3Uri",
        "TensorsS3UriOfJobs",
        "OutputPath",
        "VerdictPath",
    }

    jobs, _ = harness.jobs.processing.list_page(REGION, {"SortBy": "Name", "StatusEquals": "Completed"})
    judged = {job.rule_configuration_name: job for job in jobs if isinstance(job, RuleEvaluation)}
    assert len(judged) == len(jobs)
    assert sorted(judged) == ["Fires", "Passes"]
    described = harness.jobs.processing.describe(judged["Fires"])
    assert described["ProcessingJobStatus"] == "Completed"
    assert described["ExitMessage"].startswith("RuleEvaluationConditionMet: ")
    assert described["TrainingJobArn"] == done["TrainingJobArn"]
    assert described["ProcessingStartTime"] <= described["ProcessingEndTime"]
    log = harness.log("/aws/sagemaker/ProcessingJobs", described["ProcessingJobName"] + "/algo-1-")
    assert log == ["evaluating Fires"]


def test_an_end_that_cannot_be_stored_is_stored_when_the_disk_has_space(
    harness: JobHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As when a rule, or a training, fills the disk that the jobs' state is on."""
    monkeypatch.setattr(threads, "_STORE_AGAIN_SECONDS", 0.01)
    refused: list[str] = []

    def refuse(save: Any, times: int) -> Any:
        def refuse_the_end(transaction: Any, changed: Any) -> None:
            if changed.ended and refused.count(changed.name) < times:
                refused.append(changed.name)
                raise OSError("database or disk is full")
            save(transaction, changed)

        return refuse_the_end

    monkeypatch.setattr(StoreTransaction, "save_job", refuse(StoreTransaction.save_job, 4))
    request = harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=[harness.rule("Fires", "fire")])
    done = harness.run(request)
    assert rule_statuses(done) == {"Fires": "IssuesFound"}
    assert details_of(done, "Fires").startswith("RuleEvaluationConditionMet: ")
    assert done["TrainingJobStatus"] == "Failed"
    assert "disk is full" in done["FailureReason"]
    assert set(refused) == {"job", *(name for name in refused if name.startswith("job-Fires-"))}
    assert caplog.text.count("could not be stored") == 2


@pytest.mark.slow
def test_a_rule_gets_the_addresses_of_the_jobs_that_it_compares_with(harness: JobHarness) -> None:
    hook = {"S3OutputPath": f"s3://{harness.bucket}/somewhere/else"}
    harness.run(harness.request(TrainingJobName="earlier", DebugHookConfig=hook))
    rule = harness.rule("Compares", "pass")
    rule["RuleParameters"] |= {"other_trials": "earlier, unknown", "other_trial_0": "s3://bucket/run"}
    harness.run(harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=[rule]))
    output = "out/job/rule-output/Compares/report.txt"
    wait_until(lambda: output in harness.stored())
    configuration = json.loads(harness.s3.get(harness.bucket, output))
    assert configuration["TensorsS3UriOfJobs"] == {
        "earlier": f"s3://{harness.bucket}/somewhere/else/earlier/debug-output"
    }


@pytest.mark.slow
def test_rule_that_fires_is_announced_while_training_runs(harness: JobHarness) -> None:
    request = harness.request(
        script="time.sleep(600)",
        DebugHookConfig=harness.hook(),
        DebugRuleConfigurations=[harness.rule("Fires", "fire"), harness.rule("Waits", "wait")],
    )
    harness.jobs.training.create(REGION, request)
    wait_until(lambda: rule_statuses(harness.describe())["Fires"] == "IssuesFound", harness.describe)
    harness.wait_for_stage("Training")

    def announcements() -> list[str]:
        return [
            event["detail-type"]
            for event in harness.publisher.events
            if "IssuesFound" in rule_statuses(event["detail"]).values()
            or event["detail"].get("ProcessingJobStatus") == "Completed"
        ]

    # Stored first, published right after.
    wait_until(lambda: len(announcements()) == 2)
    assert announcements() == ["SageMaker Training Job State Change", "SageMaker Processing Job State Change"]

    harness.jobs.training.stop(REGION, "job")
    done = harness.wait()
    assert done["TrainingJobStatus"] == "Stopped"
    assert rule_statuses(done) == {"Fires": "IssuesFound", "Waits": "Stopped"}
    assert details_of(done, "Waits") == "The training job ended before every step was evaluated."
    harness.jobs.close()
    waits = [
        event["detail"]["ProcessingJobStatus"]
        for event in harness.publisher.events
        if event["detail"].get("ProcessingJobName", "").startswith("job-Waits")
    ]
    assert waits == ["InProgress", "Stopping", "Stopped"]


def test_rules_of_a_job_that_never_trained_are_stopped(harness: JobHarness) -> None:
    request = harness.request(
        OutputDataConfig={"S3OutputPath": "s3://no-such-bucket-at-all/x"},
        DebugRuleConfigurations=[harness.rule("R", "pass")],
    )
    done = harness.run(request)
    assert done["TrainingJobStatus"] == "Failed"
    assert rule_statuses(done) == {"R": "Stopped"}


@pytest.mark.slow
def test_files_of_a_rule_are_taken_from_its_local_path(harness: JobHarness) -> None:
    paths = [
        "/opt/ml/processing/mine",
        "/data/rule-output",
        "relative",
        "/",
        "/opt/ml",
        "/opt/ml/output",
        "/data/../etc",
    ]
    rules = [harness.rule(f"R{at}", "pass", LocalPath=path) for at, path in enumerate(paths)]
    done = harness.run(harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=rules))
    assert list(rule_statuses(done).values()) == ["NoIssuesFound"] * 2 + ["Error"] * 5
    assert details_of(done, "R2") == (
        "ClientError: The LocalPath of the rule R2 is 'relative': give an absolute path of a folder that the container "
        "does not need, such as /opt/ml/processing/output/rule."
    )
    wait_until(lambda: {f"out/job/rule-output/R{at}/report.txt" for at in (0, 1)} <= set(harness.stored()))


def test_what_a_rule_links_to_is_not_read(harness: JobHarness, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/report.json").write_text("swordfish")
    rule = harness.rule("Links", "link")
    rule["RuleParameters"]["target"] = str(tmp_path / "secret")
    done = harness.run(harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=[rule]))
    assert details_of(done, "Links").startswith("AlgorithmError: The rule container ended without a verdict.")
    said = "'output/verdict.json' is a symbolic link; 'processing/output/rule' is a symbolic link."
    wait_until(lambda: any(said in line for line in harness.log("/aws/sagemaker/ProcessingJobs", "job")))
    assert harness.stored("out/job/rule-output") == []


def test_where_a_rule_leaves_its_files_in_a_container(tmp_path: Path) -> None:
    opt_ml = Mount(tmp_path / "ml", "/opt/ml")
    for local_path, source in (
        (None, tmp_path / "ml/processing/output/rule"),
        ("/opt/ml/here", tmp_path / "ml/here"),
        ("/data/x", tmp_path / "elsewhere"),
    ):
        configuration = {"RuleConfigurationName": "R", **({"LocalPath": local_path} if local_path else {})}
        evaluation = new_rule_evaluation("1", REGION, "job", 0, configuration, "0" * 8, 0)
        output = locate_output(opt_ml, tmp_path / "elsewhere", evaluation)
        assert (output.source, output.target) == (source, local_path or "/opt/ml/processing/output/rule")
        assert is_below(opt_ml, output) == (local_path != "/data/x")


def test_what_of_a_rules_instance_is_not_as_asked_is_in_its_log(harness: JobHarness) -> None:
    rule = harness.rule("R", "pass", InstanceType="ml.x9.large", VolumeSizeInGB=7)
    harness.run(harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=[rule]))
    (job,), _ = harness.jobs.processing.list_page(REGION, {})

    def log() -> list[str]:
        return harness.log("/aws/sagemaker/ProcessingJobs", job.name)

    wait_until(lambda: len(log()) == 2, log)
    assert log()[:1] == [
        "smdebug-emulator: How much memory ml.x9.large has is not known here: the container's is not limited.",
    ]


@pytest.mark.slow
def test_a_rule_that_never_ends_is_stopped_and_holds_up_no_training(harness: JobHarness) -> None:
    request = harness.request(
        DebugHookConfig=harness.hook(),
        DebugRuleConfigurations=[harness.rule("Loops", "wait")],
        StoppingCondition={"MaxRuntimeInSeconds": 10},
    )
    done = harness.run(request)
    assert done["TrainingJobStatus"] == "Completed"
    assert rule_statuses(done) == {"Loops": "Stopped"}
    assert details_of(done, "Loops") == (
        "The rule still ran 10 s (MaxRuntimeInSeconds) after the training job had ended."
    )
    ends = [
        event["detail"] for event in harness.publisher.events if event["detail"].get("SecondaryStatus") == "Completed"
    ]
    assert rule_statuses(ends[0]) == {"Loops": "InProgress"}


@pytest.mark.slow
def test_stopping_a_processing_job_leaves_the_training_alone(harness: JobHarness) -> None:
    script = "\nwhile not (ml / 'go').exists(): time.sleep(0.01)"
    request = harness.request(
        script=script, DebugHookConfig=harness.hook(), DebugRuleConfigurations=[harness.rule("R", "wait")]
    )
    harness.jobs.training.create(REGION, request)
    (job,), _ = harness.jobs.processing.list_page(REGION, {})
    host = {"Host": f"{job.name}/algo-1"}
    wait_until(lambda: harness.metric("MemoryUtilization", host, "/aws/sagemaker/ProcessingJobs"))
    assert harness.jobs.processing.stop(REGION, job.name).status == "Stopping"
    wait_until(lambda: harness.jobs.processing.get(REGION, job.name).ended)
    harness.wait_for_stage("Training")
    with pytest.raises(ValidationException, match="the processing job is in status Stopped"):
        harness.jobs.processing.stop(REGION, job.name)
    folder = next(
        f for f in (harness.settings.state_dir / "jobs").iterdir() if f.name.startswith("job-") and "-R-" not in f.name
    )
    (folder / "algo-1" / "go").touch()
    assert harness.wait()["TrainingJobStatus"] == "Completed"


def test_verdict_has_to_keep_the_contract() -> None:
    good = parse_verdict(b'{"RuleEvaluationStatus": "NoIssuesFound", "StatusDetails": "", "Step": null}')
    assert (good.status, good.details) == ("NoIssuesFound", None)
    for broken in (b"", b"[]", b'{"RuleEvaluationStatus": "Stopped"}', b'{"RuleEvaluationStatus": 3}'):
        assert parse_verdict(broken).status == "Error"
    odd = parse_verdict(rb'{"RuleEvaluationStatus": "Error", "StatusDetails": "half \udc80 \u2603"}')
    assert odd.details == "half \\udc80 \u2603"


def test_a_rule_that_missed_the_network_says_what_opens_it() -> None:
    text = describe_exit_without_verdict(
        Exit(1), ["No such package", f"{NETWORK_CLOSED}: it reaches the emulator only."]
    )
    assert text.startswith(
        "AlgorithmError: The rule container ended without a verdict. Its last line was: No such package"
    )
    assert text.endswith("start --allow-internet opens it.), exit code: 1")


def test_exit_by_memory_is_named_plainly() -> None:
    text = describe_exit_without_verdict(Exit(137, out_of_memory=True), ["x" * 3_000])
    assert text.startswith("AlgorithmError: The rule container ran out of memory and was killed.")
    assert text.endswith(", exit code: 137")
    assert len(text) <= 1024
