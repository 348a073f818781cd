"""Records of many ended training jobs and of a tuning job."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import FinalMetric, new_training_job
from emulator.jobs.model.tuning_job import TuningJob
from emulator.jobs.store.store import JobStore
from sdk_compat.demo.training_job import ROLE_ARN, TRAINING_IMAGE

ACCOUNT = "123456789012"
REGION = "us-east-1"
BORN_MS = 1_763_900_000_000
FAILED_EVERY = 7
FAILURE = (
    'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "RuntimeError: mat1 and mat2 shapes cannot be '
    'multiplied (64x100 and 120x10)"\nCommand "/usr/local/bin/python3 train.py --learning-rate 0.1 --epochs 12"'
)
TUNING = "tune-digits"
# The learning rate and the optimiser of each trial, and the loss that it came to; the third has none.
TRIALS: list[tuple[str, str, float | None]] = [
    ("0.1", "sgd", 0.9),
    ("0.001", "adam", 0.2),
    ("0.03", "sgd", None),
    ("0.00002", "adam", 0.45),
]


def store_jobs(state_dir: Path, count: int) -> None:
    """Write the records into the state folder of an emulator that does not run."""
    store = JobStore(state_dir / "jobs.sqlite")
    try:
        with store.transaction() as transaction:
            for number in range(count):
                born_ms = BORN_MS + number * 1000
                image = "my-registry/tabular:3" if number % 10 == 1 else TRAINING_IMAGE
                job = new_training_job(
                    ACCOUNT, REGION, f"{number:012x}", _build_request(f"churn-{number:04}", image), born_ms
                )
                job = job.transition("Downloading", born_ms + 100).transition("Training", born_ms + 200)
                if number % FAILED_EVERY == 0:
                    job = job.transition("Failed", born_ms + 900, failure_reason=FAILURE)
                else:
                    job = job.transition("Uploading", born_ms + 800).transition("Completed", born_ms + 90_000)
                rules = [_build_evaluation(job.name, number)] if number % 3 == 0 else []
                transaction.create_training_job(job, rules, ())
            _store_tuning(transaction)
    finally:
        store.close()


def _build_request(name: str, image: str = TRAINING_IMAGE) -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
        "HyperParameters": {"epochs": "12"},
        "OutputDataConfig": {"S3OutputPath": "s3://nothing-is-here/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
    }


def _build_evaluation(job: str, number: int) -> RuleEvaluation:
    return RuleEvaluation(
        account_id=ACCOUNT,
        region=REGION,
        name=f"{job}-lossnotdecreasing-{number:08x}",
        training_job_name=job,
        position=0,
        configuration={"RuleConfigurationName": "LossNotDecreasing", "RuleEvaluatorImage": "rules:latest"},
        creation_ms=BORN_MS + number * 1000,
        last_modified_ms=BORN_MS + number * 1000,
        start_ms=BORN_MS + number * 1000,
        end_ms=BORN_MS + number * 1000 + 700,
        status="IssuesFound" if number % 2 else "NoIssuesFound",
    )


def _store_tuning(transaction: Any) -> None:
    born_ms = BORN_MS - 1_000_000
    definition = {key: value for key, value in _build_request("").items() if key != "TrainingJobName"}
    tuning = TuningJob(
        account_id=ACCOUNT,
        region=REGION,
        name=TUNING,
        id="f" * 12,
        request={
            "HyperParameterTuningJobName": TUNING,
            "HyperParameterTuningJobConfig": {
                "Strategy": "Bayesian",
                "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
                "ResourceLimits": {"MaxNumberOfTrainingJobs": 6, "MaxParallelTrainingJobs": 2},
                "ParameterRanges": {
                    "ContinuousParameterRanges": [{"Name": "learning-rate", "MinValue": "0.00001", "MaxValue": "1"}],
                    "CategoricalParameterRanges": [{"Name": "optimizer", "Values": ["sgd", "adam"]}],
                },
            },
            "TrainingJobDefinition": definition,
        },
        creation_ms=born_ms,
        last_modified_ms=born_ms + 60_000,
        status="Completed",
        end_ms=born_ms + 60_000,
    )
    transaction.create_job(tuning, ())
    for number, (rate, optimizer, loss) in enumerate(TRIALS):
        name = f"{TUNING}-{number + 1:03}"
        parameters = {"learning-rate": rate, "optimizer": optimizer}
        request = tuning.build_training_request(definition, name, parameters, ())
        job = new_training_job(ACCOUNT, REGION, f"a{number:011x}", request, born_ms + number * 1000)
        job = job.transition("Downloading", born_ms + 100).transition("Training", born_ms + 200)
        if loss is None:
            job = job.transition("Failed", born_ms + 5_000, failure_reason=FAILURE)
        else:
            job = job.transition("Uploading", born_ms + 4_000).transition("Completed", born_ms + 5_000)
            job = replace(job, final_metrics=(FinalMetric("loss", loss, born_ms + 4_000),))
        transaction.create_training_job(job, (), ())
