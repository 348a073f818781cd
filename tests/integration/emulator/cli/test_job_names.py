"""Short job names, which mean the same job to every command."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emulator.cli.commands import main
from sdk_compat.demo.training_job import build_training_job
from sdk_compat.notebook import TrainingJob
from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.analysis.notebook_utils.training_job import TrainingJob as ProfiledJob
from tests.boto3_client import make_client
from tests.forked_emulator import ForkedEmulator
from tests.waiting import has_ended, wait_until

NAMES = ("tb-2026", "m-outb", "twice-a", "twice-b", *(f"many-{at:02}" for at in range(21)))
BUCKET = "names"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedEmulator]:
    """An emulator with jobs that failed at once, one of them in two regions."""
    with ForkedEmulator(tmp_path_factory.mktemp("names") / "state", runtime="process") as started:
        make_client(started.endpoint_url, "s3").create_bucket(Bucket=BUCKET)
        there = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
        make_client(started.endpoint_url, "s3", "eu-west-1").create_bucket(Bucket=f"{BUCKET}-eu-west-1", **there)
        for region, names in (("us-east-1", NAMES), ("eu-west-1", ("twice-a",))):
            sagemaker = make_client(started.endpoint_url, "sagemaker", region)
            for name in names:
                request = build_training_job(
                    name,
                    image="nobody-built:1",
                    hyperparameters={},
                    channels=(),
                    collections={},
                    bucket=BUCKET if region == "us-east-1" else f"{BUCKET}-{region}",
                )
                sagemaker.create_training_job(**request)
            for name in names:
                wait_until(lambda: has_ended(sagemaker.describe_training_job(TrainingJobName=name)))  # noqa: B023
        yield started


def run(emulator: ForkedEmulator, *arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, [*arguments, "--state-dir", str(emulator.state_dir)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def rules_of(emulator: ForkedEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Result]:
    """Run a rule by the command line, in a folder of the test, on what a name means there."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SMDEBUG_EMULATOR_STATE_DIR", str(emulator.state_dir))
    monkeypatch.chdir(tmp_path)
    return lambda run_of: CliRunner().invoke(main, ["rules", "run", "Overfit", "--no-wait", f"--trial={run_of}"])


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The programs that commands would have become."""
    started: list[list[str]] = []

    def note(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        started.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("emulator.cli.jobs.other_programs.subprocess.run", note)
    return started


def test_the_job_that_begins_so_goes_before_those_that_end_so(emulator: ForkedEmulator) -> None:
    assert run(emulator, "describe", "tb").startswith("tb-2026  (us-east-1)\n")
    assert run(emulator, "describe", "outb").startswith("m-outb  (us-east-1)\n")
    assert run(emulator, "open", "--print", "tb").endswith("#/jobs/us-east-1/tb-2026\n")
    assert "the training job is in status Failed" in run(emulator, "stop-job", "tb", code=1)
    assert run(emulator, "describe", "eu-west-1/twice").startswith("twice-a  (eu-west-1)\n")


def test_an_export_that_cannot_be_written_is_one_line(emulator: ForkedEmulator, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "job"
    refused = run(emulator, "export", "tb-2026", "--output", str(folder), code=1)
    assert refused == f"{folder} cannot be written: Not a directory\n"


@pytest.mark.slow
@pytest.mark.parametrize(("command", "option"), [(["state", "export"], []), (["report", "tb-2026"], ["--output"])])
def test_a_file_that_exists_is_kept(
    command: list[str], option: list[str], emulator: ForkedEmulator, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    refused = run(emulator, *command, *option, str(file), code=1)
    assert refused == f"{file} already exists: give another file, or --overwrite to replace it.\n"
    assert file.read_text() == "kept"
    assert (
        "already exists"
        not in CliRunner()
        .invoke(main, [*command, *option, str(file), "--overwrite", "--state-dir", str(emulator.state_dir)])
        .output
    )


@pytest.mark.parametrize(
    "command",
    [
        *(["describe"], ["logs"], ["tensors"], ["plot"], ["profile"], ["stop-job"], ["export"], ["interrupt"]),
        *(["open", "--print"], ["report"], ["tensorboard"]),
    ],
)
def test_several_are_refused_with_their_names(command: list[str], emulator: ForkedEmulator) -> None:
    more = ["loss"] if command == ["plot"] else []
    several = "twice matches 3 training jobs: "
    said = run(emulator, *command, "twice", *more, code=3)
    assert said.startswith(several)
    assert sorted(said.removeprefix(several).removesuffix(". Give more of the name.\n").split(", ")) == [
        "eu-west-1/twice-a",
        "us-east-1/twice-a",
        "us-east-1/twice-b",
    ]
    assert "twice-a matches 2 training jobs: " in run(emulator, *command, "twice-a", *more, code=3)
    assert "There is no training job : " in run(emulator, *command, "", *more, code=3)


def test_a_long_list_is_cut(emulator: ForkedEmulator) -> None:
    said = run(emulator, "describe", "many", code=3)
    assert said.startswith("many matches 21 training jobs: us-east-1/many-20, ")
    assert " and 1 more. " in said
    with pytest.raises(LookupError, match=r"many matches 21 training jobs: .* and 1 more\."):
        TrainingJob("many", emulator.endpoint_url)


@pytest.mark.slow
def test_rules_judge_a_job_by_its_name(rules_of: Callable[[str], Result], capfd: pytest.CaptureFixture[str]) -> None:
    judged = rules_of("tb").exit_code
    assert (judged, "/tb-2026/debug-output" in (said := capfd.readouterr().out)) == (1, True), said
    refused = rules_of("twice")
    assert (refused.exit_code, refused.stderr.startswith("twice matches 3 training jobs: ")) == (3, True)


def test_rules_judge_a_folder_of_that_name_unless_it_is_an_export(
    rules_of: Callable[[str], Result], programs: list[list[str]], tmp_path: Path
) -> None:
    (tmp_path / "twice").mkdir()
    rules_of("twice")
    # Unless it is what export wrote of the job.
    (tmp_path / "tb-2026").mkdir()
    (tmp_path / "tb-2026" / "job.json").touch()
    rules_of("tb-2026")
    folder, job = [command[-1] for command in programs]
    assert folder == "--trial=twice"
    assert job.endswith("/tb-2026/debug-output")


def test_notebooks_take_the_same_names(emulator: ForkedEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert TrainingJob("tb").name == "tb-2026"
    assert TrainingJob("eu-west-1/twice").region == "eu-west-1"
    with pytest.raises(SMDebugValueError, match="The training job tb-2026 has no profiler"):
        ProfiledJob("tb", "us-east-1")
    with pytest.raises(SMDebugValueError, match="twice matches 2 training jobs: twice-"):
        ProfiledJob("twice", "us-east-1")
    sagemaker = make_client(emulator.endpoint_url, "sagemaker")
    with pytest.raises(sagemaker.exceptions.ClientError, match="not found") as missing:
        ProfiledJob("nobody", "us-east-1")
    assert json.dumps(missing.value.response["Error"])


def test_jobs_are_chosen_by_status_name_and_age(emulator: ForkedEmulator) -> None:
    assert "tb-2026" in run(emulator, "jobs", "--status", "failed", "--name", "tb", "--since", "1h")
    assert run(emulator, "jobs", "--status", "Completed") == "No training job matches.\n"
    assert run(emulator, "jobs", "--since", "0s") == "No training job matches.\n"
    listed = json.loads(run(emulator, "jobs", "--name", "twice-a", "--json"))
    assert sorted(job["Region"] for job in listed) == ["eu-west-1", "us-east-1"]
    assert "'soon'" in run(emulator, "jobs", "--since", "soon", code=2)


def test_a_status_is_reported_once_where_both_are_the_same(emulator: ForkedEmulator) -> None:
    assert run(emulator, "describe", "tb-2026").splitlines()[1] == "Failed"


@pytest.mark.parametrize("command", ["env", "run"])
def test_a_region_that_aws_has_not_is_refused(command: str, emulator: ForkedEmulator) -> None:
    said = run(emulator, command, "--region", "mars", *(["true"] if command == "run" else []), code=2)
    assert "'mars' is not an AWS region: give one such as us-east-1." in said


def test_the_last_lines_of_a_log(emulator: ForkedEmulator) -> None:
    logs = make_client(emulator.endpoint_url, "logs")
    group = {"logGroupName": "/aws/sagemaker/TrainingJobs"}
    (stream,) = logs.describe_log_streams(**group, logStreamNamePrefix="tb-2026/")["logStreams"]
    group["logStreamName"] = stream["logStreamName"]
    now = int(time.time() * 1000) + 1000
    logs.put_log_events(**group, logEvents=[{"timestamp": now + at, "message": f"line {at}"} for at in range(9)])
    assert run(emulator, "logs", "tb-2026", "--tail", "2") == "line 7\nline 8\n"
    assert run(emulator, "logs", "tb-2026", "--tail", "0") == ""
    assert run(emulator, "logs", "tb-2026", "--tail", "99") == run(emulator, "logs", "tb-2026")


def test_a_job_without_a_line_of_log_says_why(emulator: ForkedEmulator) -> None:
    asked = ["logs", "m-outb"]
    why = "m-outb printed nothing: smdebug-emulator describe m-outb says how it ended.\n"
    assert run(emulator, *asked, code=3) == run(emulator, *asked, "--follow", "--json", code=3) == why
    logs = make_client(emulator.endpoint_url, "logs")
    group = "/aws/sagemaker/TrainingJobs"
    (stream,) = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix="m-outb/")["logStreams"]
    # As prune does with the logs of all ended jobs.
    logs.delete_log_stream(logGroupName=group, logStreamName=stream["logStreamName"])
    for tail in ([], ["--tail", "3"]):
        assert run(emulator, *asked, *tail, code=3).startswith("m-outb has no log: its containers did not start")


def test_tables_fit_80_columns(emulator: ForkedEmulator) -> None:
    for command in (["jobs"], ["status"], ["describe", "tb-2026"], ["images", "list"], ["doctor"]):
        done = CliRunner().invoke(
            main,
            [*command, *(["--state-dir", str(emulator.state_dir)] if "images" not in command else [])],
            env={"COLUMNS": "80", "DOCKER_HOST": f"unix://{emulator.state_dir}/no.sock"},
        )
        paths = str(emulator.state_dir)
        assert [line for line in done.output.splitlines() if len(line) > 80 and paths not in line] == [], command


@pytest.mark.slow
def test_importing_a_job_that_exists_says_what_to_do(emulator: ForkedEmulator, tmp_path: Path) -> None:
    run(emulator, "export", "tb-2026", "--output", str(tmp_path / "job"))
    said = run(emulator, "import", str(tmp_path / "job"), code=1)
    assert said.startswith("A job tb-2026 already exists in us-east-1: import it into another emulator")
    assert "reset --job-name-prefix tb-2026" in said


@pytest.mark.slow
def test_an_import_makes_the_buckets_of_its_region_again(emulator: ForkedEmulator, tmp_path: Path) -> None:
    bucket = {"Bucket": f"{BUCKET}-eu-west-1"}
    s3, sagemaker = (make_client(emulator.endpoint_url, service, "eu-west-1") for service in ("s3", "sagemaker"))
    described = sagemaker.describe_training_job(TrainingJobName="twice-a")
    prefix = described["OutputDataConfig"]["S3OutputPath"].removeprefix(f"s3://{bucket['Bucket']}/")
    keys = [f"{prefix}/twice-a/output/{name}" for name in ("one", "two")]
    for key in keys:
        s3.put_object(**bucket, Key=key, Body=b"of the job")
    run(emulator, "export", "eu-west-1/twice-a", "--output", str(tmp_path / "job"))
    for each in s3.list_objects_v2(**bucket)["Contents"]:
        s3.delete_object(**bucket, Key=each["Key"])
    s3.delete_bucket(**bucket)
    said = run(emulator, "export", "eu-west-1/twice-a", "--output", str(tmp_path / "without"))
    assert f"s3://{bucket['Bucket']}/{prefix}/twice-a is not exported: its bucket was deleted.\n" in said
    assert "Wrote " in said
    sagemaker.delete_training_job(TrainingJobName="twice-a")
    assert "Imported twice-a." in run(emulator, "import", str(tmp_path / "job"))
    assert s3.get_bucket_location(**bucket)["LocationConstraint"] == "eu-west-1"
    assert {each["Key"] for each in s3.list_objects_v2(**bucket)["Contents"]} >= set(keys)
