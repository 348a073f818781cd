"""The lists of tuning jobs and pipeline executions, and one of each."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from emulator.cli.commands import main
from emulator.cli.jobs.jobs import NO_SUCH_JOB
from sdk_compat.demo.training_job import ROLE_ARN, build_training_job
from tests.boto3_client import make_client
from tests.forked_emulator import ForkedEmulator
from tests.waiting import ENDED, wait_until

BUCKET = "other-kinds"
REGION = "us-east-1"
TRIAL = ("RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition")


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedEmulator]:
    """An emulator with a tuning job whose one trial failed, and an execution that ended at a Fail step."""
    with ForkedEmulator(tmp_path_factory.mktemp("kinds") / "state", runtime="process") as started:
        make_client(started.endpoint_url, "s3").create_bucket(Bucket=BUCKET)
        sagemaker = make_client(started.endpoint_url, "sagemaker")
        training = build_training_job(
            "", image="nobody-built:1", hyperparameters={}, channels=(), collections={}, bucket=BUCKET
        )
        algorithm = {
            "TrainingImage": "nobody-built:1",
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.*)"}],
        }
        sagemaker.create_hyper_parameter_tuning_job(
            HyperParameterTuningJobName="search",
            HyperParameterTuningJobConfig={
                "Strategy": "Random",
                "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
                "ResourceLimits": {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1},
                "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "rate", "MinValue": "2", "MaxValue": "3"}]},
            },
            TrainingJobDefinition={**{name: training[name] for name in TRIAL}, "AlgorithmSpecification": algorithm},
        )
        step = {"Name": "Refuse", "Type": "Fail", "Arguments": {"ErrorMessage": "no data"}}
        sagemaker.create_pipeline(
            PipelineName="flow",
            PipelineDefinition=json.dumps({"Version": "2020-12-01", "Steps": [step]}),
            RoleArn=ROLE_ARN,
            ClientRequestToken="t" * 32,
        )
        execution = sagemaker.start_pipeline_execution(PipelineName="flow", ClientRequestToken="e" * 32)
        arn = execution["PipelineExecutionArn"]
        wait_until(
            lambda: (
                sagemaker.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="search")[
                    "HyperParameterTuningJobStatus"
                ]
                in ENDED
            )
        )
        wait_until(
            lambda: (
                sagemaker.describe_pipeline_execution(PipelineExecutionArn=arn)["PipelineExecutionStatus"] == "Failed"
            )
        )
        yield started


def run(emulator: ForkedEmulator, *arguments: str) -> str:
    done = CliRunner().invoke(main, [*arguments, "--state-dir", str(emulator.state_dir)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def test_a_tuning_job_and_its_trials(emulator: ForkedEmulator) -> None:
    heading, row = run(emulator, "tuning").splitlines()
    assert heading.split() == ["Tuning", "job", "Status", "Trials", "Best", "Objective", "Created"]
    assert row.split()[:5] == ["search", "Failed", "1/1", "-", "loss"]
    (listed,) = json.loads(run(emulator, "tuning", "--json"))
    assert (listed["name"], listed["trials"]) == ("search", 1)
    heading, row = run(emulator, "tuning", "sea").splitlines()
    assert heading.split() == ["Trial", "Status", "loss", "rate"]
    name, status, value, rate = row.split()
    assert (name.startswith("search-"), status, value, rate.startswith("2.")) == (True, "Failed", "-", True)
    assert json.loads(run(emulator, "tuning", "search", "--json"))["trialJobs"][0]["name"] == name
    assert run(emulator, "tuning", "--status", "Completed") == "No tuning jobs.\n"


def test_a_pipeline_execution_and_its_steps(emulator: ForkedEmulator) -> None:
    heading, row = run(emulator, "pipelines").splitlines()
    assert heading.split() == ["Execution", "Pipeline", "Status", "Steps", "Created"]
    name, *others = row.split()
    assert others[:3] == ["flow", "Failed", "1/1"]
    heading, row = run(emulator, "pipelines", name).splitlines()
    assert heading.split() == ["Step", "Type", "Status", "Job", "Why"]
    assert row.split(maxsplit=4)[:4] == ["Refuse", "Fail", "Failed", "-"]
    assert "no data" in row
    assert json.loads(run(emulator, "pipelines", name, "--json"))["stepList"][0]["name"] == "Refuse"


@pytest.mark.slow
def test_names_in_short(emulator: ForkedEmulator) -> None:
    whole = run(emulator, "tuning", "search")
    assert [run(emulator, "tuning", name) for name in ("arc", f"{REGION}/search", f"{REGION}/arc")] == [whole] * 3
    (execution,) = json.loads(run(emulator, "pipelines", "--json"))
    run(emulator, "pipelines", f"{REGION}/{execution['name']}")
    for name in ("eu-west-3/search", f"{REGION}/"):
        done = CliRunner().invoke(main, ["tuning", name, "--state-dir", str(emulator.state_dir)])
        assert done.exit_code == NO_SUCH_JOB
        assert f"There is no tuning job {name}" in done.output
