"""Tests of XGBoost jobs in both back ends.

An unmodified script, a script with a hook, and the algorithm without a script.
"""

import io
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from examples.frameworks.job import BUCKET, build_request, stage_scripts
from examples.frameworks.xgboost.algorithm import ALGORITHM, build_algorithm_request, stage_cancer
from sdk_compat.environment import prepare_environment
from smdebug.trials import Trial, create_trial
from tests.end_to_end.finished_jobs import (
    JobsByKind,
    WaitForJob,
    download_model,
    download_run,
    read_streams,
    wait_until_ended,
)
from tests.running_emulator import IMAGE_BY_DAY, RunningEmulator

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks" / "xgboost"


def make_name(kind: str) -> str:
    return f"xgb-{kind}-{uuid.uuid4().hex[:8]}"


def build_hosts_request(name: str) -> dict[str, Any]:
    """Cross validation on two hosts, each with a part of the training data and all of the validation data."""
    request = build_algorithm_request(name, {**ALGORITHM, "num_round": "5", "_kfold": "2"})
    request["ResourceConfig"]["InstanceCount"] = 2
    train, validation = (channel["DataSource"]["S3DataSource"] for channel in request["InputDataConfig"])
    train |= {"S3Uri": f"s3://{BUCKET}/data/parts/", "S3DataDistributionType": "ShardedByS3Key"}
    validation["S3DataDistributionType"] = "FullyReplicated"
    return request


def stage_parts(emulator: RunningEmulator) -> None:
    """Put the data into S3, the training data in a part for each of two hosts as well."""
    stage_cancer(emulator.client("s3"))
    rows = read_object(emulator, "data/train/cancer.csv").splitlines(keepends=True)
    for number, part in enumerate((rows[:250], rows[250:])):
        emulator.client("s3").put_object(Bucket=BUCKET, Key=f"data/parts/{number}.csv", Body=b"".join(part))


@pytest.fixture(scope="module")
def jobs(emulator: RunningEmulator) -> dict[str, str]:
    """Names of the jobs by kind."""
    stage_scripts(emulator.client("s3"), "xgboost")
    stage_parts(emulator)
    requests = {
        "untouched": lambda name: build_request("xgboost", name, "train.py", num_round=21),
        "hook": lambda name: build_request("xgboost", name, "train_with_hook.py", num_round=11),
        "algorithm": lambda name: build_algorithm_request(name, ALGORITHM),
        "hosts": build_hosts_request,
        "refused": lambda name: build_algorithm_request(name, {**ALGORITHM, "max_depth": "deep", "typo": "1"}),
    }

    def start(kind: str) -> str:
        name = make_name(kind)
        emulator.client("sagemaker").create_training_job(**requests[kind](name))
        return name

    return JobsByKind(start)


@pytest.fixture
def read_job(
    jobs: dict[str, str], emulator: RunningEmulator, wait_for_job: WaitForJob, tmp_path: Path
) -> Callable[[str], tuple[dict[str, Any], Trial, dict[str, bytes]]]:
    """Wait for a job; its description, its tensors, and the files of its model by name."""

    def read(kind: str) -> tuple[dict[str, Any], Trial, dict[str, bytes]]:
        description = wait_for_job(jobs[kind])
        assert description["TrainingJobStatus"] == "Completed", description.get("FailureReason")
        run = download_run(emulator, BUCKET, jobs[kind], tmp_path / "run")
        return description, create_trial(str(run)), download_model(emulator, description)

    return read


def read_final_metrics(description: dict[str, Any]) -> dict[str, float]:
    return {metric["MetricName"]: metric["Value"] for metric in description["FinalMetricDataList"]}


def read_object(emulator: RunningEmulator, key: str) -> bytes:
    content: bytes = emulator.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return content


def read_validation_data(emulator: RunningEmulator) -> xgboost.DMatrix:
    body = read_object(emulator, "data/validation/cancer.csv")
    table = np.loadtxt(io.StringIO(body.decode()), delimiter=",", dtype=np.float32)
    return xgboost.DMatrix(table[:, 1:], table[:, 0])


@pytest.mark.parametrize("emulator", IMAGE_BY_DAY, indirect=True)
def test_an_untouched_script_is_captured(read_job: Any) -> None:
    description, trial, files = read_job("untouched")
    history = json.loads(files["metrics.json"])
    assert read_final_metrics(description)["test:accuracy"] == pytest.approx(history["test_accuracy"], abs=1e-4)
    assert history["test_accuracy"] > 0.93
    assert trial.steps() == [0, 5, 10, 15, 20]
    assert trial.loaded_all_steps
    for step in trial.steps():
        for data in ("train", "validation"):
            for metric in ("mlogloss", "merror"):
                assert trial.tensor(f"{data}-{metric}").value(step)[0] == history[data][metric][step]
    predicted = trial.tensor("predictions").value(20)
    wrong = (predicted.argmax(axis=1) != trial.tensor("labels").value(20)).mean()
    assert wrong == pytest.approx(history["validation"]["merror"][20], abs=1e-6)
    assert trial.tensor("hyperparameters/objective").value(0).tolist() == ["multi:softprob"]
    # One tree a class, numbered over all rounds.
    assert sorted(set(trial.tensor("trees/Tree").value(20))) == list(range(200, 210))


# unit/smdebug/xgboost has hooks of scripts, and what they save.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_a_script_with_a_hook_of_its_own(read_job: Any) -> None:
    description, trial, files = read_job("hook")
    history = json.loads(files["metrics.json"])
    assert history["test_accuracy"] > 0.93
    assert trial.steps() == [0, 5, 10]
    for step in trial.steps():
        assert trial.tensor("validation_1-auc").value(step)[0] == history["validation_1"]["auc"][step]
    assert trial.tensor("scalar/test_accuracy").value(10)[0] == history["test_accuracy"]
    assert read_final_metrics(description)["test:accuracy"] == pytest.approx(history["test_accuracy"], abs=1e-4)
    booster = xgboost.Booster()
    booster.load_model(bytearray(files["model.ubj"]))
    shares: dict[str, Any] = booster.get_score(importance_type="gain")
    for feature, score in shares.items():
        saved = trial.tensor(f"feature_importance/gain/{feature}").value(10)[0]
        assert saved == pytest.approx(score / sum(shares.values()))


# unit/rules_images/training/xgboost has the algorithm, and the job below starts it as this one does.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_the_algorithm_trains_without_a_script(read_job: Any, emulator: RunningEmulator) -> None:
    description, trial, files = read_job("algorithm")
    booster = xgboost.Booster()
    booster.load_model(bytearray(files["xgboost-model"]))
    assert booster.num_boosted_rounds() == 20
    assert read_final_metrics(description)["validation:auc"] > 0.97
    validation = read_validation_data(emulator)
    assert trial.steps() == [0, 5, 10, 15]
    for step in trial.steps():
        np.testing.assert_array_equal(trial.tensor("predictions").value(step), booster[: step + 1].predict(validation))
        np.testing.assert_array_equal(trial.tensor("labels").value(step), validation.get_label())
    frame = booster.trees_to_dataframe()
    frame = frame[frame.Tree == 15]
    assert trial.tensor("trees/Feature").value(15).tolist() == frame.Feature.tolist()
    np.testing.assert_array_equal(trial.tensor("trees/Gain").value(15).astype("f4"), frame.Gain.to_numpy().astype("f4"))
    assert trial.tensor("hyperparameters/eval_metric").value(0).tolist() == ["logloss", "auc"]


@pytest.mark.nightly
@pytest.mark.any_back_end
def test_the_algorithm_cross_validates_on_two_hosts(
    read_job: Any, jobs: dict[str, str], emulator: RunningEmulator
) -> None:
    description, trial, files = read_job("hosts")
    texts = read_streams(emulator, jobs["hosts"])
    assert "Channel train: 250 rows of 30 features." in texts["algo-1"]
    assert "Channel train: 150 rows of 30 features." in texts["algo-2"]
    assert all("each of the 2 hosts has all data of channel validation" in text for text in texts.values())
    assert all("Run 1-round of 2-fold cross validation" in text for text in texts.values())
    # The first host alone has written the models and shown the metrics, which are those of both.
    assert sorted(files) == ["xgboost-model-0", "xgboost-model-1"]
    assert "#011validation-auc:" not in texts["algo-2"].partition("The metrics of round 1")[0]
    validation = read_validation_data(emulator)
    for content in files.values():
        booster = xgboost.Booster()
        booster.load_model(bytearray(content))
        assert booster.num_boosted_rounds() == 5
        assert np.mean((booster.predict(validation) > 0.5) == validation.get_label()) > 0.93
    assert read_final_metrics(description)["validation:auc"] > 0.95
    # The rounds of the second fold follow those of the first.
    assert trial.steps() == [0, 5]
    np.testing.assert_array_equal(trial.tensor("labels").value(5), validation.get_label())


@pytest.mark.any_back_end
def test_wrong_hyperparameters_fail_the_job(jobs: dict[str, str], wait_for_job: WaitForJob) -> None:
    description = wait_for_job(jobs["refused"])
    assert description["TrainingJobStatus"] == "Failed"
    reason = description["FailureReason"]
    assert reason.startswith("AlgorithmError: Hyperparameters: max_depth is 'deep', expected a whole number")
    assert "typo is not a hyperparameter of this algorithm" in reason
    assert reason.endswith("exit code: 1")


# clients/test_sagemaker_frameworks.py has the SDK's XGBoost estimators; rules on such runs have unit tests.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_the_sdk_trains_the_algorithm_under_rules(alone: RunningEmulator, tmp_path: Path) -> None:
    stage_cancer(alone.client("s3"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environment |= prepare_environment(alone.endpoint_url, environment, folder=tmp_path / "clients")
    name = make_name("sdk")
    command = [sys.executable, str(EXAMPLES / "estimator.py"), BUCKET, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Model: s3://{BUCKET}/output/{name}/output/model.tar.gz" in done.stdout
    assert re.search(r"\[0\]#011train-logloss:0\.\d+#011validation-logloss:0\.\d+", done.stdout)
    description = wait_until_ended(alone, name)
    assert description["TrainingJobStatus"] == "Completed"
    assert read_final_metrics(description)["validation:logloss"] < 0.2
    rules = {rule["RuleConfigurationName"]: rule for rule in description["DebugRuleEvaluationStatuses"]}
    assert rules["CreateXgboostReport"]["RuleEvaluationStatus"] == "NoIssuesFound", rules
    assert rules["FeatureImportanceOverweight"]["RuleEvaluationStatus"] == "IssuesFound", rules
