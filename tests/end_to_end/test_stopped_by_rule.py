"""Tests of the main scenario: a rule fires, and the stop handler ends the job.

Each client sends the job once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sdk_compat.demo.training_job import BUCKET, HEALTHY, SICK, build_request
from sdk_compat.environment import prepare_environment
from tests.end_to_end.finished_jobs import WaitForJob, wait_for_handler_line
from tests.running_emulator import RunningEmulator


def check_stopped_by_handler(emulator: RunningEmulator, description: dict[str, Any]) -> None:
    name = description["TrainingJobName"]
    assert description["TrainingJobStatus"] == "Stopped", description
    assert description["SecondaryStatus"] == "Stopped"
    rules = {r["RuleConfigurationName"]: r for r in description["DebugRuleEvaluationStatuses"]}
    assert rules["VanishingGradient"]["RuleEvaluationStatus"] == "IssuesFound"
    assert "Evaluation of the rule VanishingGradient at step 0" in rules["VanishingGradient"]["StatusDetails"]
    stages = [t["Status"] for t in description["SecondaryStatusTransitions"]]
    assert stages[:3] == ["Starting", "Downloading", "Training"]
    assert stages[-1] == "Stopped"
    assert "Stopping" in stages

    # The proof that the handler stopped it.
    wait_for_handler_line(emulator.client("logs"), f"Stopped {name}")

    s3 = emulator.client("s3")
    keys = [k["Key"] for k in s3.list_objects_v2(Bucket=BUCKET, Prefix=tensor_prefix(description))["Contents"]]
    assert any(key.endswith("training_job_end.ts") for key in keys)
    indexes = {key.rsplit("/", 1)[1].removesuffix(".json") for key in keys if "/index/" in key}
    events_saved = {key.rsplit("/", 1)[1].removesuffix(".tfevents") for key in keys if "/events/" in key}
    assert indexes
    # The stop may come between an event file and its index.
    assert indexes <= events_saved
    assert len(events_saved - indexes) <= 1


def tensor_prefix(description: dict[str, Any]) -> str:
    base = description["DebugHookConfig"]["S3OutputPath"].removeprefix(f"s3://{BUCKET}/").rstrip("/")
    return f"{base}/{description['TrainingJobName']}/debug-output/"


def test_boto3_job_is_stopped_by_its_rule(staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob) -> None:
    staged.client("sagemaker").create_training_job(**build_request(job_name, SICK))
    check_stopped_by_handler(staged, wait_for_job(job_name))


# clients/test_boto3_and_aws_cli.py has a job of the AWS CLI, and the test above what becomes of a job by its rule.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_cli_job_is_stopped_by_its_rule(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob, tmp_path: Path
) -> None:
    request_file = tmp_path / "request.json"
    request_file.write_text(json.dumps(build_request(job_name, SICK)))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ENDPOINT_URL": staged.endpoint_url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    aws = str(Path(sys.executable).with_name("aws"))
    created = subprocess.run(
        [aws, "sagemaker", "create-training-job", "--cli-input-json", f"file://{request_file}"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(created.stdout)["TrainingJobArn"].endswith(f":training-job/{job_name}")
    check_stopped_by_handler(staged, wait_for_job(job_name))


# clients/test_sagemaker_estimator.py has jobs of estimators whose rules find issues.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_sdk_estimator_is_stopped_by_its_rule(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob, tmp_path: Path
) -> None:
    """An ordinary SDK script, with nothing but the variables that `smdebug-emulator env` prints."""
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    variables = prepare_environment(staged.endpoint_url, home)
    script = Path(__file__).parents[2] / "examples" / "digits" / "estimator.py"
    ran = subprocess.run(
        [sys.executable, str(script), BUCKET, job_name],
        env={**home, **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    check_stopped_by_handler(staged, wait_for_job(job_name))
    assert "step=0 train_loss=" in ran.stdout, "the job's log reaches fit()"
    assert f"Tensors: s3://{BUCKET}/tensors/{job_name}/debug-output" in ran.stdout
    assert "VanishingGradient IssuesFound" in ran.stdout


@pytest.mark.any_back_end
def test_healthy_job_completes_with_no_issues(staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob) -> None:
    staged.client("sagemaker").create_training_job(**build_request(job_name, {**HEALTHY, "steps": 101}))
    description = wait_for_job(job_name)
    assert description["TrainingJobStatus"] == "Completed", description
    statuses = {r["RuleEvaluationStatus"] for r in description["DebugRuleEvaluationStatuses"]}
    assert statuses == {"NoIssuesFound"}, description["DebugRuleEvaluationStatuses"]
    stages = [t["Status"] for t in description["SecondaryStatusTransitions"]]
    assert stages == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    model = description["ModelArtifacts"]["S3ModelArtifacts"]
    assert model == f"s3://{BUCKET}/output/{job_name}/output/model.tar.gz"
    staged.client("s3").head_object(Bucket=BUCKET, Key=model.removeprefix(f"s3://{BUCKET}/"))
