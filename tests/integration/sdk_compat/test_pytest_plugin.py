"""Tests of the pytest plugin in a project whose folders have our names."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.forked_emulator import ForkedEmulator
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

pytest_plugins = "pytester"

JOBS = '''
import os
from pathlib import Path

import boto3
import pytest

from sdk_compat.demo.training_job import build_rule, build_script_mode, build_training_job, stage_source

# It writes what a training would.
SCRIPT = """
import numpy as np

from smdebug.config.collection_manager import CollectionManager
from smdebug.writing.file_writer import FileWriter

collections = CollectionManager()
collections.get("gradients").tensor_names.add("gradient/Linear_weight")
collections.set_num_workers(1)
collections.export("/opt/ml/output/tensors", "worker_0_collections.json")
for step in range(4):
    with FileWriter("/opt/ml/output/tensors", "worker_0", step) as writer:
        writer.write_tensor(np.full((1, 3), 1e-8, "float32"), "gradient/Linear_weight")
print("the last words of the script")
"""


@pytest.fixture(scope="module")
def job(sagemaker_emulator, boto3_session, s3_bucket, tmp_path_factory):
    script = tmp_path_factory.mktemp("source") / "train.py"
    script.write_text(SCRIPT)
    source = stage_source(boto3_session.client("s3"), "project", [script], s3_bucket)
    request = build_training_job(
        "a-job-whose-name-is-told-apart-by-its-end-2026-11-22",
        image="pytorch-training:2.13.0-cpu-py311",
        hyperparameters=build_script_mode(source, "train.py", {}),
        channels=(),
        collections={"gradients": {"save_interval": "1"}},
        rules=[build_rule("VanishingGradient", threshold="1e9")],
        bucket=s3_bucket,
    )
    request["RoleArn"] = sagemaker_emulator.role_arn
    request["ResourceConfig"]["InstanceType"] = "ml.g5.2xlarge"
    boto3_session.client("sagemaker").create_training_job(**request)
    return request["TrainingJobName"]


def test_verdicts(job, wait_for_training_job, wait_for_rules, assert_rule, open_trial):
    assert wait_for_training_job(job, "Completed")["TrainingJobName"] == job
    assert_rule(job, "VanishingGradient", "IssuesFound")
    assert wait_for_rules(job) == {"VanishingGradient": "IssuesFound"}
    assert open_trial(job).steps() == [0, 1, 2, 3]


def test_wrong_verdict(job, assert_rule):
    assert_rule(job, "VanishingGradient", "NoIssuesFound")


def test_wrong_rule(job, assert_rule):
    assert_rule(job, "Overfit", "NoIssuesFound")


def test_no_job(wait_for_training_job):
    wait_for_training_job("nobody")


def test_clients_see_it(sagemaker_emulator):
    assert ":assumed-role/sagemaker-tests/" in boto3.client("sts").get_caller_identity()["Arn"]
    Path(os.environ["SEEN"], "jobs").write_text(sagemaker_emulator.endpoint_url)


def test_tests_without_it_do_not():
    assert "AWS_ENDPOINT_URL" not in os.environ
    assert os.environ["AWS_PROFILE"] == "of-the-user"
'''

OTHERS = """
import os
from pathlib import Path


def test_another_worker(sagemaker_emulator, s3_bucket):
    import boto3

    assert boto3.client("s3").list_buckets()["Buckets"][0]["Name"] == s3_bucket
    Path(os.environ["SEEN"], "others").write_text(sagemaker_emulator.endpoint_url)
    boto3.client("s3").put_object(Bucket=s3_bucket, Key="key", Body=b"")
    boto3.client("sqs").create_queue(QueueName="queue")


def test_an_emulator_that_was_reset(reset_sagemaker, s3_bucket):
    import boto3

    assert boto3.client("s3").list_objects_v2(Bucket=s3_bucket)["KeyCount"] == 0
    assert "QueueUrls" not in boto3.client("sqs").list_queues()
    assert ":assumed-role/sagemaker-tests/" in boto3.client("sts").get_caller_identity()["Arn"]
"""


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEEN", str(tmp_path))
    monkeypatch.setenv("AWS_PROFILE", "of-the-user")
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.fixture
def project(pytester: pytest.Pytester, seen: Path) -> pytest.Pytester:
    """A project as somebody has it: packages `emulator` and `tests`, no conftest, an AWS profile in the environment."""
    for name in ("emulator", "tests", "json"):
        pytester.mkpydir(name)
    (pytester.path / "json").rename(pytester.path / "click")
    (pytester.path / "click" / "__init__.py").write_text("raise ImportError('the project folder is on the path')\n")
    return pytester


JOB_NAME = "a-job-whose-name-is-told-apart-by-its-end-2026-11-22"
OPTIONS = [
    *("-W", "error", "--sagemaker-runtime", "process", "--sagemaker-no-warm", "--sagemaker-keep"),
    *("--sagemaker-report", "out/report.html"),
]


def test_jobs_are_waited_for_judged_and_reported(
    pytester: pytest.Pytester, seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, and on an emulator in a fork."""
    monkeypatch.setattr("sdk_compat.emulator_process.EmulatorProcess", ForkedEmulator)
    pytester.makepyfile(test_jobs=JOBS, test_others=OTHERS)
    result = pytester.runpytest_inprocess("-p", "no:xdist", *OPTIONS, "test_others.py", "test_jobs.py")
    assert len({path.read_text() for path in seen.iterdir()}) == 1, "a session has one emulator"
    table = check_results(result, pytester.path / "out" / "report.html", "test_jobs.py")
    assert [line.split() for line in table[:2]] == [
        ["Training", "job", "Status", "Rule", "Verdict", "Test"],
        [JOB_NAME, "Completed", "VanishingGradient", "IssuesFound", "test_verdicts"],
    ]


@pytest.mark.nightly  # by day a test of workers is in unit/sdk_compat/pytest_plugin, and those of a project are here
@pytest.mark.timeout(600)
def test_a_project_of_its_own(project: pytest.Pytester, seen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (project.path / "tests" / "test_jobs.py").write_text(JOBS)
    (project.path / "tests" / "test_others.py").write_text(OTHERS)
    result = project.runpytest_subprocess(*OPTIONS, "-n", "2", "--dist", "loadfile", timeout=500)
    assert len({path.read_text() for path in seen.iterdir()}) == 2, "each worker has an emulator of its own"
    table = check_results(result, project.path / "out" / "report.html", "tests/test_jobs.py")
    assert [line.split() for line in table[:2]] == [
        ["Training", "job", "Status", "Rule", "Verdict"],
        ["a-job-whose-…t-by-its-end-2026-11-22", "Completed", "VanishingGradient", "IssuesFound"],
    ]
    assert max(map(len, table[:2])) <= 80


def check_results(result: pytest.RunResult, report: Path, file: str) -> list[str]:
    """Check what both sessions print and report; return the lines from the table of jobs on."""
    result.assert_outcomes(passed=5, failed=3)
    result.stdout.no_fnmatch_line("*During handling of the above exception*")
    result.stdout.fnmatch_lines_random(
        [
            "*VanishingGradient of a-job-*-2026-11-22 is IssuesFound, not NoIssuesFound.",
            "*a-job-*-2026-11-22: Completed, Completed",
            "*RuleEvaluationConditionMet: *",
            "*the last words of the script*",
            "*Rule VanishingGradient waits for the tensors of *",
            "*The training job 'nobody' cannot be described in *: Requested resource not found.*",
            "  NoGpu: ml.g5.2xlarge: no GPU here*",
            "*has no rule 'Overfit'; its rules are: VanishingGradient.*",
        ]
    )
    table = result.outlines[[" SageMaker training jobs " in line for line in result.outlines].index(True) + 1 :]
    written = report.read_text()
    assert JOB_NAME in written
    assert f"<td>{file}::test_verdicts</td>" in written
    assert written.count("data:image/svg+xml;base64,") == 1
    assert "<strong>NoGpu</strong>: ml.g5.2xlarge: no GPU here" in written
    kept = next(line for line in table if line.startswith("Kept: ")).split()[-1]
    assert (Path(kept) / "jobs.sqlite").exists()
    return table


def test_only_a_test_that_asks_for_it_starts_it(project: pytest.Pytester) -> None:
    """An emulator that cannot start is one message, and not one of the project's modules that have our names."""
    (project.path / "tests" / "test_both.py").write_text(
        textwrap.dedent(
            """
            import sys

            def test_nothing_is_imported():
                assert "sdk_compat.pytest_plugin" in sys.modules
                for name in ("boto3", "botocore", "sagemaker", "sdk_compat.pytest_plugin.emulator"):
                    assert name not in sys.modules

            def test_it(sagemaker_emulator): ...
            """
        )
    )
    result = project.runpytest_subprocess("-W", "error", "--sagemaker-runtime", "nowhere")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["The SageMaker emulator did not start: *'nowhere' is not a*"])
    assert "SageMaker training jobs" not in result.stdout.str()


def test_an_emulator_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    source = f"""
        import os
        from pathlib import Path
        from sdk_compat.emulator_process import EmulatorProcess
        print(EmulatorProcess(Path({str(tmp_path / "state")!r}), runtime="process").process.pid, flush=True)
        os.kill(os.getpid(), 9)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, check=False, timeout=120
    )
    number = int(re.fullmatch(r"(\d+)\n", done.stdout)[1])  # type: ignore[index]

    def has_ended() -> bool:
        try:
            return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_until(has_ended, "the emulator ended")
