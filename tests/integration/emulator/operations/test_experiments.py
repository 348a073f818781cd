"""Experiments over real HTTP: names, parents, search, and the components of jobs."""

import sys
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.integration.emulator.jobs.job_harness import REGION
from tests.integration.emulator.operations.conftest import Service

TRAINING = "print('loss=0.5'); print('loss=0.25')"


def read_error(caught: pytest.ExceptionInfo[ClientError]) -> tuple[str, str]:
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def find_components(client: Any, *filters: tuple[str, str, str]) -> list[dict[str, Any]]:
    expression = {"Filters": [dict(zip(("Name", "Operator", "Value"), each, strict=True)) for each in filters]}
    pages = client.get_paginator("search").paginate(Resource="ExperimentTrialComponent", SearchExpression=expression)
    return [each["TrialComponent"] for page in pages for each in page["Results"]]


def test_a_second_create_is_refused_and_loses_nothing(service: Service) -> None:
    client = service.client()
    client.create_experiment(ExperimentName="twice", DisplayName="shown", Description="why")
    client.create_trial(TrialName="twice-trial", ExperimentName="twice")
    client.create_trial_component(TrialComponentName="twice-part", Parameters={"lr": {"NumberValue": 0.1}})
    for create in (
        lambda: client.create_experiment(ExperimentName="twice"),
        lambda: client.create_trial(TrialName="twice-trial", ExperimentName="twice"),
        lambda: client.create_trial_component(TrialComponentName="twice-part"),
    ):
        with pytest.raises(ClientError) as caught:
            create()
        code, message = read_error(caught)
        assert code == "ValidationException"
        assert "already exists" in message
    described = client.describe_trial_component(TrialComponentName="twice-part")
    assert described["Parameters"] == {"lr": {"NumberValue": 0.1}}
    experiment = client.describe_experiment(ExperimentName="twice")
    assert (experiment["DisplayName"], experiment["Description"]) == ("shown", "why")


@pytest.mark.parametrize("operation", ["describe", "update", "delete"])
@pytest.mark.parametrize("kind", ["experiment", "trial", "trial_component"])
def test_an_unknown_name_is_resource_not_found(service: Service, operation: str, kind: str) -> None:
    member = "".join(word.capitalize() for word in kind.split("_")) + "Name"
    with pytest.raises(ClientError) as caught:
        getattr(service.client(), f"{operation}_{kind}")(**{member: "no-such"})
    code, message = read_error(caught)
    assert code == "ResourceNotFound"
    assert "no-such' does not exist" in message


def test_what_is_linked_is_not_deleted(service: Service) -> None:
    client = service.client()
    client.create_experiment(ExperimentName="linked")
    client.create_trial(TrialName="linked-trial", ExperimentName="linked")
    client.create_trial_component(TrialComponentName="linked-part")
    client.associate_trial_component(TrialName="linked-trial", TrialComponentName="linked-part")
    deletes = {
        "experiment/linked": lambda: client.delete_experiment(ExperimentName="linked"),
        "experiment-trial/linked-trial": lambda: client.delete_trial(TrialName="linked-trial"),
        "experiment-trial-component/linked-part": lambda: client.delete_trial_component(
            TrialComponentName="linked-part"
        ),
    }
    for name, delete in deletes.items():
        with pytest.raises(ClientError) as caught:
            delete()
        code, message = read_error(caught)
        assert code == "ValidationException"
        assert f":{name}' is linked to 1 or more tr" in message
    client.disassociate_trial_component(TrialName="linked-trial", TrialComponentName="linked-part")
    for name, delete in reversed(deletes.items()):
        answer = delete()
        assert any(str(value).endswith(f":{name}") for value in answer.values())


def test_lists_of_an_unknown_parent_are_refused(service: Service) -> None:
    client = service.client()
    for ask in (
        lambda: client.list_trials(ExperimentName="no-such"),
        lambda: client.list_trials(TrialComponentName="no-such"),
        lambda: client.list_trial_components(ExperimentName="no-such"),
        lambda: client.list_trial_components(TrialName="no-such"),
    ):
        with pytest.raises(ClientError) as caught:
            ask()
        assert read_error(caught)[0] == "ResourceNotFound"


def test_summaries_have_display_names_and_updates_merge(service: Service) -> None:
    client = service.client()
    client.create_experiment(ExperimentName="listed", DisplayName="Listed")
    client.create_trial(TrialName="listed-trial", ExperimentName="listed", DisplayName="Trial")
    client.create_trial_component(TrialComponentName="listed-part", Parameters={"a": {"StringValue": "1"}})
    client.associate_trial_component(TrialName="listed-trial", TrialComponentName="listed-part")
    client.update_experiment(ExperimentName="listed", Description="later")
    client.update_trial(TrialName="listed-trial", DisplayName="Trial-2")
    client.update_trial_component(
        TrialComponentName="listed-part", DisplayName="Part", Parameters={"b": {"StringValue": "2"}}
    )
    (experiment,) = [e for e in client.list_experiments()["ExperimentSummaries"] if e["ExperimentName"] == "listed"]
    (trial,) = client.list_trials(ExperimentName="listed")["TrialSummaries"]
    (part,) = client.list_trial_components(ExperimentName="listed")["TrialComponentSummaries"]
    assert [each["DisplayName"] for each in (experiment, trial, part)] == ["Listed", "Trial-2", "Part"]
    described = client.describe_trial_component(TrialComponentName="listed-part")
    assert sorted(described["Parameters"]) == ["a", "b"]


def test_components_are_found_by_any_of_their_parents(service: Service) -> None:
    client = service.client()
    for name in ("one", "two"):
        client.create_experiment(ExperimentName=f"parent-{name}")
        client.create_trial(TrialName=f"parent-{name}-trial", ExperimentName=f"parent-{name}")
    client.create_trial_component(TrialComponentName="child", Parameters={"lr": {"NumberValue": 0.5}})
    for name in ("one", "two"):
        client.associate_trial_component(TrialName=f"parent-{name}-trial", TrialComponentName="child")
    for name in ("one", "two"):
        (found,) = find_components(client, ("Parents.ExperimentName", "Equals", f"parent-{name}"))
        assert found["TrialComponentName"] == "child"
        assert len(found["Parents"]) == 2
    client.disassociate_trial_component(TrialName="parent-one-trial", TrialComponentName="child")
    assert find_components(client, ("Parents.TrialName", "Equals", "parent-one-trial")) == []
    above = ("Parameters.lr", "GreaterThan", "0.4")
    assert len(find_components(client, above, ("Parents.ExperimentName", "Contains", "parent-"))) == 1
    with pytest.raises(ClientError) as caught:
        find_components(client, ("NoSuchThing", "Equals", "x"))
    assert read_error(caught) == ("ValidationException", "Unknown property name: NoSuchThing")


def test_a_job_with_an_experiment_becomes_a_trial_component(service: Service) -> None:
    client, harness = service.client(), service.harness
    request = harness.request("tried", HyperParameters={"lr": "0.5", "kind": "x", "clip": "inf"})
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = [sys.executable, "-I", "-S", "-c", TRAINING]
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    with pytest.raises(ClientError) as caught:
        client.create_training_job(**request, ExperimentConfig={"ExperimentName": "jobs"})
    assert read_error(caught) == ("ResourceNotFound", "Experiment 'jobs' does not exist: create it, or leave it out.")
    client.create_experiment(ExperimentName="jobs")
    client.create_trial(TrialName="jobs-trial", ExperimentName="jobs")
    config = {"ExperimentName": "jobs", "TrialName": "jobs-trial", "TrialComponentDisplayName": "Training"}
    client.create_training_job(**request, ExperimentConfig=config)
    (summary,) = client.list_trial_components(TrialName="jobs-trial")["TrialComponentSummaries"]
    assert summary["TrialComponentName"] == "tried-aws-training-job"
    harness.wait("tried")

    (found,) = find_components(client, ("Parents.ExperimentName", "Equals", "jobs"))
    assert found["DisplayName"] == "Training"
    assert found["Status"]["PrimaryStatus"] == "Completed"
    assert found["Source"]["SourceArn"].endswith(":training-job/tried")
    assert found["Parameters"]["lr"] == {"NumberValue": 0.5}
    assert found["Parameters"]["kind"] == {"StringValue": "x"}
    assert found["Parameters"]["clip"] == {"StringValue": "inf"}, "JSON has no such number"
    (metric,) = found["Metrics"]
    assert (metric["MetricName"], metric["Last"], metric["Max"], metric["Count"]) == ("loss", 0.25, 0.5, 2)
    assert found["OutputArtifacts"]["SageMaker.ModelArtifact"]["Value"].endswith("model.tar.gz")
    client.delete_training_job(TrainingJobName="tried")
    component = client.describe_trial_component(TrialComponentName="tried-aws-training-job")
    assert component["Status"]["PrimaryStatus"] == "Completed"


@pytest.fixture
def session(service: Service, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in (("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", REGION)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", service.endpoint_url)
    from sagemaker.session import Session

    own = boto3.Session(region_name=REGION)
    clients = {"sagemaker_client": own.client("sagemaker"), "sagemaker_metrics_client": own.client("sagemaker-metrics")}
    return Session(own, default_bucket=service.harness.bucket, **clients)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_the_sdk_runs_and_analyses_an_experiment(session: Any) -> None:
    from sagemaker.analytics import ExperimentAnalytics
    from sagemaker.experiments import Run, load_run

    with Run(experiment_name="by-sdk", run_name="first", sagemaker_session=session) as run:
        run.log_parameter("lr", 0.1)
        run.log_metric("loss", 0.5, step=0)
    with load_run(experiment_name="by-sdk", run_name="first", sagemaker_session=session) as run:
        run.log_parameter("epochs", 3)
        run.log_metric("loss", 0.25, step=1)
    frame = ExperimentAnalytics(experiment_name="by-sdk", sagemaker_session=session).dataframe()
    (row,) = frame.to_dict("records")
    assert (row["lr"], row["epochs"]) == (0.1, 3)
    assert (row["loss - Last"], row["loss - Count"]) == (0.25, 2)
    assert row["Experiments"] == ["by-sdk"]


def test_names_are_found_in_upper_and_lower_case(service: Service) -> None:
    client = service.client()
    client.create_experiment(ExperimentName="mixed-case")
    client.create_trial(TrialName="Mixed-Trial", ExperimentName="Mixed-Case")
    client.create_trial_component(TrialComponentName="Mixed-Part")
    client.associate_trial_component(TrialComponentName="mixed-part", TrialName="mixed-trial")
    assert client.describe_experiment(ExperimentName="Mixed-Case")["ExperimentName"] == "mixed-case"
    (trial,) = client.list_trials(ExperimentName="MIXED-CASE", TrialComponentName="mixed-part")["TrialSummaries"]
    assert trial["TrialName"] == "Mixed-Trial"
    (part,) = client.list_trial_components(ExperimentName="MIXED-CASE", TrialName="mixed-trial")[
        "TrialComponentSummaries"
    ]
    assert part["TrialComponentName"] == "Mixed-Part"
    with pytest.raises(ClientError) as caught:
        client.create_experiment(ExperimentName="MIXED-case")
    assert "already exists" in read_error(caught)[1]
    client.disassociate_trial_component(TrialComponentName="mixed-part", TrialName="mixed-trial")
    client.delete_trial(TrialName="mixed-trial")
    client.delete_experiment(ExperimentName="Mixed-Case")


def test_what_an_update_gives_and_removes_is_removed(service: Service) -> None:
    client = service.client()
    client.create_trial_component(TrialComponentName="trimmed")
    client.update_trial_component(
        TrialComponentName="trimmed",
        Parameters={"kept": {"NumberValue": 1.0}, "gone": {"StringValue": "x"}},
        ParametersToRemove=["gone"],
    )
    assert client.describe_trial_component(TrialComponentName="trimmed")["Parameters"] == {"kept": {"NumberValue": 1.0}}
