"""Tests of a healthy training, and of the project's rules on failing ones."""

import io
import json
import tarfile

import pytest
from tumours.job import build_estimator


@pytest.fixture(scope="module")
def healthy(sagemaker_session, sagemaker_emulator, scaled):
    """A training as it should be."""
    estimator = build_estimator(sagemaker_session, sagemaker_emulator.role_arn)
    estimator.fit({"training": scaled}, wait=False)
    return estimator


def test_its_rules_find_nothing(healthy, assert_rule):
    assert_rule(healthy, "LossNotDecreasing", "NoIssuesFound")
    assert_rule(healthy, "ConfidentTooEarly", "NoIssuesFound")


def test_its_loss_falls(healthy, open_trial):
    trial = open_trial(healthy)
    (loss,) = trial.tensor_names(collection="losses")
    values = [value.item() for value in trial.tensor(loss).values().values()]
    assert len(values) == 12
    assert values[-1] < 0.3 * values[0]


def test_its_model_is_good_enough(healthy, wait_for_training_job, boto3_session):
    wait_for_training_job(healthy, "Completed")
    bucket, _, key = healthy.model_data.removeprefix("s3://").partition("/")
    model = boto3_session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(model)) as archive:
        assert json.load(archive.extractfile("metrics.json"))["accuracy"] > 0.9


def test_a_table_that_nobody_scaled_is_noticed(
    sagemaker_session, sagemaker_emulator, tumours, upload_table, assert_rule
):
    estimator = build_estimator(sagemaker_session, sagemaker_emulator.role_arn, steps=10)
    estimator.fit({"training": upload_table("raw", *tumours)}, wait=False)
    assert_rule(estimator, "ConfidentTooEarly", "IssuesFound")


def test_a_training_that_diverges_is_stopped(
    sagemaker_session, sagemaker_emulator, scaled, assert_rule, wait_for_training_job
):
    estimator = build_estimator(
        sagemaker_session, sagemaker_emulator.role_arn, **{"learning-rate": 1000, "steps": 1_000_000}
    )
    estimator.fit({"training": scaled}, wait=False)
    assert_rule(estimator, "LossNotDecreasing", "IssuesFound")
    wait_for_training_job(estimator, "Stopped")


def test_a_channel_without_the_table_fails_with_a_reason(
    sagemaker_session, sagemaker_emulator, s3_bucket, boto3_session, wait_for_training_job
):
    boto3_session.client("s3").put_object(Bucket=s3_bucket, Key="empty/readme.txt", Body=b"nothing here")
    estimator = build_estimator(sagemaker_session, sagemaker_emulator.role_arn)
    estimator.fit({"training": f"s3://{s3_bucket}/empty"}, wait=False)
    described = wait_for_training_job(estimator, "Failed")
    assert "has no tumours.csv" in described["FailureReason"]
