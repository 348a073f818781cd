"""Tests of the commands that take a job's name, on a job of another region."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import Result

from benchmarks.shared.tensorboard import build_tensorboard
from emulator.cli.jobs.tensorboard import fetch_changed
from sdk_compat.demo.training_job import build_rule, build_training_job
from tests.boto3_client import make_client
from tests.commands import run_command
from tests.end_to_end.finished_jobs import wait_until_ended
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

Command = Callable[..., Result]
Program = Callable[..., str]

NAME = "digits-named-as-the-sdk-does-2026-11-22-03-10-00-001"
BUCKET = "cli-jobs"
# A job of the command line need not import a framework: its hook saves numbers as one of a network would.
SCRIPT = """
import numpy
from smdebug.capture.hook import BaseHook
from smdebug.writing.run_writer import Worker

class Hook(BaseHook):
    def get_worker(self):
        return Worker.of_rank(0, 1)

hook = Hook.create_from_json_file()
for step in range(16):
    hook._increment_step()
    hook.save_tensor("gradient/Linear_weight", numpy.full((1, 3), 0.5, numpy.float32), "gradients")
    if step == 0:  # a hook of a framework saves a loss as often as its collection says
        hook.save_tensor("MSELoss_output_0", numpy.float32(1), "losses")
hook.close()
print("the last words of the script")
"""
# An entry point's words are short.
RUN = (
    "import json, os; base = os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml'); "
    "exec(json.loads(json.load(open(base + '/input/config/hyperparameters.json'))['script']))"
)


@pytest.fixture(scope="module")
def state(start_emulator: Callable[..., RunningEmulator]) -> Path:
    """State folder of an emulator with a job that ended, in eu-west-1, and one that failed, in us-east-1."""
    emulator = start_emulator("process", warm=False)
    # A job's bucket is in the job's region.
    s3 = emulator.client("s3", "eu-west-1")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    request = build_training_job(
        NAME,
        image="pytorch-training:2.13.0-cpu-py311",
        hyperparameters={"script": json.dumps(SCRIPT)},
        channels=(),
        collections={
            "gradients": {"save_interval": "1", "include_regex": "^gradient"},
            "losses": {"save_interval": "500", "include_regex": "Loss"},
        },
        rules=[build_rule("VanishingGradient", threshold="1e9"), build_rule("LossNotDecreasing")],
        bucket=BUCKET,
    )
    again = {"CollectionName": "losses", "CollectionParameters": {"save_interval": "400", "include_regex": "Loss"}}
    request["DebugHookConfig"]["CollectionConfigurations"].append(again)
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["python", "-c", RUN]
    request["TensorBoardOutputConfig"] = {"S3OutputPath": f"s3://{BUCKET}/boards"}
    elsewhere = emulator.client("sagemaker", "eu-west-1")
    elsewhere.create_training_job(**request)
    other = f"{BUCKET}-us"
    emulator.client("s3").create_bucket(Bucket=other)
    failing = build_training_job(
        "fails", image="nobody-built:1", hyperparameters={}, channels=(), collections={}, bucket=other
    )
    emulator.client("sagemaker").create_training_job(**failing)
    wait_until_ended(emulator, "fails")

    def has_ended() -> bool:
        rules = elsewhere.describe_training_job(TrainingJobName=NAME)["DebugRuleEvaluationStatuses"]
        return all(rule["RuleEvaluationStatus"].endswith("Found") for rule in rules)

    wait_until(has_ended, lambda: str(elsewhere.describe_training_job(TrainingJobName=NAME)), seconds=270)
    reports = [f"output/{NAME}/rule-output/{rule}/report.json" for rule in ("VanishingGradient", "LossNotDecreasing")]

    def are_uploaded() -> bool:
        return all(s3.list_objects_v2(Bucket=BUCKET, Prefix=key)["KeyCount"] for key in reports)

    wait_until(are_uploaded, "the rules' reports")
    return emulator.state_dir


@pytest.fixture
def variables(state: Path, tmp_path: Path) -> dict[str, str]:
    """Those of a terminal of 80 columns."""
    return {
        "SMDEBUG_EMULATOR_STATE_DIR": str(state),
        "COLUMNS": "80",
        "AWS_PROFILE": "not-here",
        "SMDEBUG_LOG_LEVEL": "error",
        "MPLBACKEND": "agg",
        "HOME": str(tmp_path),
    }


@pytest.fixture
def command(variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return partial(run_command, environment=variables)


@pytest.fixture
def program(command: Command, capfd: pytest.CaptureFixture[str]) -> Program:
    """Run a command that leaves all to a program of its own, in an empty folder; return what that prints."""

    def run(*arguments: str, code: int = 0) -> str:
        command(*arguments, code=code)
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return said.out

    return run


def test_jobs_of_all_regions_in_80_columns(command: Command) -> None:
    lines = command("jobs").stdout.splitlines()
    assert [line.split()[:5] for line in lines] == [
        ["Training", "job", "Region", "Status", "Rules"],
        ["fails", "us-east-1", "Failed", "-", lines[1].split()[4]],
        ["digits-n…2-03-10-00-001", "eu-west-1", "Completed", "!", "1/2"],
    ]
    assert max(map(len, lines)) <= 80
    found = json.loads(command("jobs", "--json", "-n", "1").stdout)
    assert [(job["TrainingJobName"], job["Region"]) for job in found] == [("fails", "us-east-1")]
    both = {job["TrainingJobName"]: bool(job["Warnings"]) for job in json.loads(command("jobs", "--json").stdout)}
    assert both == {"fails": False, NAME: True}
    assert "digits-n…2-03-10-00-001" in command("status").stdout


def test_a_job_by_a_part_of_its_name(command: Command, state: Path) -> None:
    text = command("describe", "00-001").stdout
    assert text.startswith(f"{NAME}  (eu-west-1)\nCompleted\n")
    assert re.search(r"^ +\d+\.\d s  Training +Training image download completed", text, re.MULTILINE)
    rule = text[text.index("  VanishingGradient: IssuesFound\n") :]
    assert "RuleEvaluationConditionMet: " in rule
    assert re.search(r"absolute values: [\d.]+ at step 0; fires below 1e\+09", " ".join(rule.split()))
    little = "values in 1 of 16 saved steps; collection losses is saved every 400 steps."
    assert little in " ".join(text.split())
    assert "16 evaluated, 1 with something to judge" in text
    assert little in command("logs", "001", "--rule", "LossNotDecreasing").stdout
    assert "Warnings\n  HookParameterIgnored\n    CollectionConfigurations gives" in text
    described: dict[str, Any] = json.loads(command("describe", NAME, "--json").stdout)
    assert [each["code"] for each in described["Warnings"]] == ["HookParameterIgnored", "RuleHadLittleToJudge"]
    assert little in described["Warnings"][1]["text"]
    assert described["Region"] == "eu-west-1"
    assert described["RuleReports"]["VanishingGradient"]["Finding"]["Step"] == 0
    # What takes no millisecond has no phase.
    spent = described["SecondsSpent"]
    assert {"inputs", "start", "first step", "training", "uploads"} <= spent.keys()
    assert f"inputs {spent['inputs']:.2f}, start {spent['start']:.2f}, " in text
    sagemaker = make_client(read_endpoint(state), "sagemaker", region="eu-west-1")
    of_aws = sagemaker.describe_training_job(TrainingJobName=NAME)
    of_aws |= {name: described[name] for name in ("Region", "RuleReports", "SecondsSpent", "Warnings")}
    # Both are whole milliseconds.
    seconds = (of_aws["TrainingEndTime"] - of_aws["CreationTime"]).total_seconds()
    assert sum(spent.values()) - spent.get("rules' last look", 0) == pytest.approx(seconds, abs=0.002)
    del of_aws["ResponseMetadata"]
    assert described == json.loads(json.dumps(of_aws, default=lambda time: time.isoformat()))
    assert "Why      ClientError: No image 'nobody-built:1'" in command("describe", "fails").stdout


def test_logs_of_a_job_and_of_a_rule(command: Command) -> None:
    log = command("logs", "-f", "001").stdout
    assert "\nthe last words of the script\n" in log
    assert (
        "different parameters: save_interval of losses is 500, then 400. As on AWS, the last one counts. SDK version 2"
        in log
    )
    of_rule = command("logs", "001", "--rule", "Vanish").stdout
    assert "Rule VanishingGradient waits for the tensors of" in of_rule
    lines = [json.loads(line) for line in command("logs", "001", "--json").stdout.splitlines()]
    assert {line["stream"].split("/")[0] for line in lines} == {NAME}


# What else these programs print and refuse is in unit/smdebug/trials/test_command.py.
def test_tensors(program: Program) -> None:
    assert json.loads(program("tensors", "001", "--json"))["steps"]["GLOBAL"]["count"] == 16
    assert program("tensors", "001", "MSELoss_output_0").startswith("float32, shape (1,)\n   step  worker")


@pytest.mark.nightly  # it finds the run as the one above does
def test_plots(program: Program, tmp_path: Path) -> None:
    program("plot", "001", "gradient/Linear_weight", "--reduction", "mean", "-o", "weight.png")
    assert (tmp_path / "weight.png").read_bytes().startswith(b"\x89PNG")


def test_rules_find_the_running_emulator(program: Program) -> None:
    run = f"s3://{BUCKET}/tensors/{NAME}/debug-output"
    done = program("rules", "run", "VanishingGradient", "--trial", run, "--param", "threshold=1e9", code=2)
    assert done.startswith("IssuesFound: ")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["describe", "nobody"], 3, "There is no training job nobody: smdebug-emulator jobs lists the jobs.\n"),
        (["describe", "i"], 3, "i matches 2 training jobs: us-east-1/fails, "),
        (
            ["logs", "001", "--rule", "n"],
            3,
            f"n matches 2 rules of {NAME}: VanishingGradient, LossNotDecreasing. ",
        ),
        (
            ["logs", "001", "--rule", "Overfit"],
            3,
            "has no rule Overfit: its rules are Vanishing",
        ),
        (["stop-job", "001"], 1, "is in status Completed.\n"),
        (["tensorboard", "fails"], 1, "create the job with a TensorBoardOutputConfig.\n"),
    ],
)
def test_what_cannot_be_is_one_sentence(command: Command, arguments: list[str], code: int, text: str) -> None:
    done = command(*arguments, code=code)
    assert text in done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def read_endpoint(state: Path) -> str:
    return str(json.loads((state / "emulator.json").read_text())["endpoint_url"])


def test_tensorboard_gets_what_came(state: Path, tmp_path: Path) -> None:
    s3 = make_client(read_endpoint(state), "s3")
    known: dict[str, str] = {}
    for name, body in (("a", b"1"), ("sub/b", b"2"), ("a", b"33"), ("../out", b"no")):
        s3.put_object(Bucket=BUCKET, Key=f"tb/{name}", Body=body)
        fetch_changed(s3, BUCKET, "tb/", tmp_path / "logs", known)
    found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"logs/a": b"33", "logs/sub/b": b"2"}


@pytest.mark.nightly
def test_the_real_tensorboard_shows_a_job_and_what_comes_later(state: Path) -> None:
    s3 = make_client(read_endpoint(state), "s3")
    folder = f"boards/{NAME}/tensorboard-output/"

    def list_files() -> list[str]:
        return [found["Key"] for found in s3.list_objects_v2(Bucket=BUCKET, Prefix=folder).get("Contents", ())]

    written = wait_until(list_files, "the job's TensorBoard files")
    environment = {**os.environ, "SMDEBUG_EMULATOR_STATE_DIR": str(state), "PYTHONPATH": str(build_tensorboard())}
    # The tests may run in the background of a shell, whose children ignore Ctrl-C.
    command = [
        "env",
        "--default-signal=INT",
        sys.executable,
        "-P",
        "-m",
        "emulator",
        "tensorboard",
        "001",
        "--port",
        "0",
    ]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stderr is not None
            said = next(found for line in process.stderr if (found := re.search(r" at (http://\S+:\d+)/", line)))
            Thread(target=process.stderr.read, daemon=True).start()  # a pipe that is full would stop it

            def read_runs() -> dict[str, Any]:
                with urlopen(f"{said[1]}/data/plugin/scalars/tags", timeout=400) as answer:
                    runs: dict[str, Any] = json.load(answer)
                return runs

            (run,) = wait_until(read_runs, "the job's scalars in TensorBoard")
            assert list(read_runs()[run]) == ["MSELoss_output_0"]
            s3.copy_object(
                Bucket=BUCKET,
                Key=f"{folder}later/{written[0].rpartition('/')[2]}",
                CopySource={"Bucket": BUCKET, "Key": written[0]},
            )
            wait_until(lambda: "later" in read_runs(), "what came while it served")
        finally:
            os.killpg(process.pid, signal.SIGINT)
            ended = process.wait(60)
    assert ended == 0
