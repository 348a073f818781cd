"""Pipelines over real HTTP: definitions, conditions, references and limits."""

import json
import uuid
from threading import Event
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.jobs.runs.pipelines import pipeline_run
from emulator.jobs.runs.pipelines.pipeline_run import PipelineRun
from tests.integration.emulator.operations.conftest import Service
from tests.integration.emulator.operations.scored_image import SCORED
from tests.waiting import wait_until

ROLE = "arn:aws:iam::123456789012:role/x"


def fail(name: str, message: Any = None, **members: Any) -> dict[str, Any]:
    return {"Name": name, "Type": "Fail", "Arguments": {} if message is None else {"ErrorMessage": message}, **members}


def condition(name: str, *conditions: dict[str, Any], then: Any = (), otherwise: Any = ()) -> dict[str, Any]:
    arguments = {"Conditions": list(conditions), "IfSteps": list(then), "ElseSteps": list(otherwise)}
    return {"Name": name, "Type": "Condition", "Arguments": arguments}


def define(*steps: dict[str, Any]) -> str:
    return json.dumps({"Version": "2020-12-01", "Parameters": [], "Steps": list(steps)})


def create(service: Service, name: str, definition: str, **members: Any) -> None:
    service.client().create_pipeline(
        PipelineName=name,
        PipelineDefinition=definition,
        ClientRequestToken=name.ljust(32, "-"),
        RoleArn=ROLE,
        **members,
    )


def follow(service: Service, arn: str) -> dict[str, dict[str, Any]]:
    """Wait for the end of an execution; return its steps by name."""
    client = service.client()

    def describe() -> dict[str, Any]:
        found: dict[str, Any] = client.describe_pipeline_execution(PipelineExecutionArn=arn)
        return found

    wait_until(lambda: describe()["PipelineExecutionStatus"] not in ("Executing", "Stopping"), describe)
    steps = client.list_pipeline_execution_steps(PipelineExecutionArn=arn)["PipelineExecutionSteps"]
    return {step["StepName"]: step for step in steps}


def run(service: Service, name: str, *steps: dict[str, Any]) -> dict[str, dict[str, Any]]:
    create(service, name, define(*steps))
    return follow(service, service.client().start_pipeline_execution(PipelineName=name)["PipelineExecutionArn"])


def test_not_reads_its_condition_and_an_outcome_joins_as_json(service: Service) -> None:
    message = {"Std:Join": {"On": "/", "Values": ["was", {"Get": "Steps.If.Outcome"}]}}
    equal = {"Type": "Equals", "LeftValue": 1, "RightValue": 1}
    steps = run(service, "not", condition("If", {"Type": "Not", "Condition": equal}, otherwise=[fail("End", message)]))
    assert steps["If"]["StepStatus"] == "Succeeded"
    assert steps["If"]["Metadata"] == {"Condition": {"Outcome": "False"}}
    assert steps["End"]["FailureReason"] == "was/false"


@pytest.mark.slow
def test_jobs_of_a_pipeline_are_in_the_experiment_that_it_names(service: Service) -> None:
    client = service.client()
    training = service.harness.request()
    del training["TrainingJobName"]
    training["AlgorithmSpecification"] = {"TrainingImage": SCORED, "TrainingInputMode": "File"}
    training["HyperParameters"] = {"x": "1"}
    training["ExperimentConfig"] = {"TrialComponentDisplayName": "shown"}
    definition = json.loads(define({"Name": "Train", "Type": "Training", "Arguments": training}))
    definition["PipelineExperimentConfig"] = {
        "ExperimentName": {"Get": "Execution.PipelineName"},
        "TrialName": {"Std:Join": {"On": "-", "Values": ["trial", {"Get": "Execution.PipelineExecutionId"}]}},
    }
    create(service, "studied", json.dumps(definition))
    for _ in range(2):  # the second one finds the experiment
        arn = client.start_pipeline_execution(PipelineName="studied")["PipelineExecutionArn"]
        step = follow(service, arn)["Train"]
        assert step["StepStatus"] == "Succeeded", step.get("FailureReason")
        trial = f"trial-{arn.rpartition('/')[2]}"
        assert client.describe_trial(TrialName=trial)["ExperimentName"] == "studied"
        (component,) = client.list_trial_components(TrialName=trial)["TrialComponentSummaries"]
        assert component["DisplayName"] == "shown"
        assert component["Status"]["PrimaryStatus"] == "Completed"


def test_an_execution_can_be_tagged(service: Service) -> None:
    client = service.client()
    create(service, "tagged", define(fail("End")))
    arn = client.start_pipeline_execution(PipelineName="tagged")["PipelineExecutionArn"]
    tags = [{"Key": "team", "Value": "vision"}]
    assert client.add_tags(ResourceArn=arn, Tags=tags)["Tags"] == tags
    assert client.list_tags(ResourceArn=arn)["Tags"] == tags
    client.delete_tags(ResourceArn=arn, TagKeys=["team"])
    assert client.list_tags(ResourceArn=arn)["Tags"] == []


def test_a_fail_step_without_a_message_has_no_reason(service: Service) -> None:
    steps = run(service, "silent", fail("End"))
    assert steps["End"]["StepStatus"] == "Failed"
    assert "FailureReason" not in steps["End"]


@pytest.mark.parametrize("operation", ["create", "update"])
def test_a_step_that_depends_on_a_fail_step_is_refused(service: Service, operation: str) -> None:
    name = f"after-{operation}"
    if operation == "update":
        create(service, name, define(fail("End")))
    definition = define(fail("End"), condition("After") | {"DependsOn": ["End"]})
    members = {"PipelineName": name, "PipelineDefinition": definition, "RoleArn": ROLE}
    if operation == "create":
        members["ClientRequestToken"] = "t" * 32
    change = getattr(service.client(), f"{operation}_pipeline")
    with pytest.raises(ClientError, match="After can not depends on End") as caught:
        change(**members)
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_a_definition_in_s3_is_described_as_it_was_written(service: Service) -> None:
    client, bucket = service.client(), service.harness.bucket
    text = define(fail("End", "from S3"))
    service.client("s3").put_object(Bucket=bucket, Key="pipeline.json", Body=text)
    location = {"Bucket": bucket, "ObjectKey": "pipeline.json"}
    client.create_pipeline(
        PipelineName="in-s3", PipelineDefinitionS3Location=location, ClientRequestToken="t" * 32, RoleArn=ROLE
    )
    assert client.describe_pipeline(PipelineName="in-s3")["PipelineDefinition"] == text
    arn = client.start_pipeline_execution(PipelineName="in-s3")["PipelineExecutionArn"]
    assert follow(service, arn)["End"]["FailureReason"] == "from S3"


@pytest.mark.parametrize(("key", "said"), [("missing", "does not exist"), ("broken", "holds no JSON")])
def test_a_definition_in_s3_that_cannot_be_read_is_refused(service: Service, key: str, said: str) -> None:
    bucket = service.harness.bucket
    service.client("s3").put_object(Bucket=bucket, Key="broken", Body=b"{\xff")
    location = {"Bucket": bucket, "ObjectKey": key}
    with pytest.raises(ClientError, match=said) as caught:
        service.client().create_pipeline(
            PipelineName=key, PipelineDefinitionS3Location=location, ClientRequestToken=key.ljust(32, "-"), RoleArn=ROLE
        )
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_the_pipelines_parallelism_holds_where_start_gives_none(service: Service) -> None:
    client = service.client()
    limit = {"MaxParallelExecutionSteps": 1}
    create(service, "narrow", define(condition("If")), ParallelismConfiguration=limit)
    arn = client.start_pipeline_execution(PipelineName="narrow")["PipelineExecutionArn"]
    follow(service, arn)
    assert client.describe_pipeline_execution(PipelineExecutionArn=arn)["ParallelismConfiguration"] == limit
    wide = {"MaxParallelExecutionSteps": 5}
    arn = client.start_pipeline_execution(PipelineName="narrow", ParallelismConfiguration=wide)["PipelineExecutionArn"]
    follow(service, arn)
    assert client.describe_pipeline_execution(PipelineExecutionArn=arn)["ParallelismConfiguration"] == wide


@pytest.mark.slow
def test_the_second_best_training_job_of_a_tuning_step_has_a_name(service: Service) -> None:
    training = service.harness.request()
    del training["TrainingJobName"]
    training["AlgorithmSpecification"] = {
        "TrainingImage": SCORED,
        "TrainingInputMode": "File",
        "MetricDefinitions": [{"Name": "score", "Regex": "score=([0-9.]+)"}],
    }
    tune = {
        "Name": "Tune",
        "Type": "Tuning",
        "Arguments": {
            "HyperParameterTuningJobConfig": {
                "Strategy": "Grid",
                "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "score"},
                "ResourceLimits": {"MaxParallelTrainingJobs": 2},
                "ParameterRanges": {"CategoricalParameterRanges": [{"Name": "x", "Values": ["1", "3", "2"]}]},
            },
            "TrainingJobDefinition": training,
        },
    }
    path = "Steps.Tune.TrainingJobSummaries[1].TrainingJobName"
    uri = {"Std:Join": {"On": "/", "Values": ["s3:/", "bucket", {"Get": path}, "output/model.tar.gz"]}}
    steps = run(service, "tuned", tune, fail("End", uri))
    assert steps["Tune"]["StepStatus"] == "Succeeded", steps
    name = steps["End"]["FailureReason"].split("/")[3]
    job = service.client().describe_training_job(TrainingJobName=name)
    assert job["HyperParameters"]["x"] == "2"


@pytest.fixture
def queue(service: Service) -> str:
    """Return the URL of a new queue."""
    url: str = service.client("sqs").create_queue(QueueName=f"callbacks-{uuid.uuid4().hex}")["QueueUrl"]
    return url


def call_back(name: str, queue: str, *outputs: str, **members: Any) -> dict[str, Any]:
    named = [{"OutputName": output, "OutputType": "String"} for output in outputs]
    return {"Name": name, "Type": "Callback", "SqsQueueUrl": queue, "OutputParameters": named, **members}


def receive(service: Service, queue: str) -> dict[str, Any]:
    """Wait for the next message of a callback step."""
    (message,) = service.client("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"]
    body: dict[str, Any] = json.loads(message["Body"])
    return body


def start(service: Service, name: str, *steps: dict[str, Any]) -> str:
    create(service, name, define(*steps))
    arn: str = service.client().start_pipeline_execution(PipelineName=name)["PipelineExecutionArn"]
    return arn


def test_a_callback_step_waits_for_its_outputs(service: Service, queue: str) -> None:
    client = service.client()
    get = {"Get": "Steps.Ask.OutputParameters['answer']"}
    arn = start(service, "ask", call_back("Ask", queue, "answer", Arguments={"question": 6}), fail("End", get))
    body = receive(service, queue)
    assert body.pop("token").isalnum()
    assert body == {
        "pipelineExecutionArn": arn,
        "stepName": "Ask",
        "arguments": {"question": 6},
        "status": "Executing",
    }
    (step,) = client.list_pipeline_execution_steps(PipelineExecutionArn=arn)["PipelineExecutionSteps"]
    token = step["Metadata"]["Callback"]["CallbackToken"]
    outputs = [{"Name": "answer", "Value": "42"}]
    with pytest.raises(ClientError, match="Missing or too much: answer"):
        client.send_pipeline_execution_step_success(CallbackToken=token)
    answer = client.send_pipeline_execution_step_success(CallbackToken=token, OutputParameters=outputs)
    assert answer["PipelineExecutionArn"] == arn
    steps = follow(service, arn)
    assert steps["Ask"]["StepStatus"] == "Succeeded"
    assert steps["Ask"]["Metadata"]["Callback"]["OutputParameters"] == outputs
    assert steps["End"]["FailureReason"] == "42"
    with pytest.raises(client.exceptions.ResourceNotFound):
        client.send_pipeline_execution_step_success(CallbackToken=token, OutputParameters=outputs)


def test_a_callback_step_fails_with_its_clients_reason_and_is_retried(service: Service, queue: str) -> None:
    client = service.client()
    arn = start(service, "again", condition("If"), call_back("Ask", queue))
    first = receive(service, queue)["token"]
    with pytest.raises(client.exceptions.ConflictException):
        client.retry_pipeline_execution(PipelineExecutionArn=arn, ClientRequestToken="r" * 32)
    client.send_pipeline_execution_step_failure(CallbackToken=first, FailureReason="no one is in")
    assert follow(service, arn)["Ask"]["FailureReason"] == "no one is in"
    before = follow(service, arn)["If"]
    for _ in range(2):  # the same token, the same retry
        answer = client.retry_pipeline_execution(PipelineExecutionArn=arn, ClientRequestToken="r" * 32)
        assert answer["PipelineExecutionArn"] == arn
    second = receive(service, queue)["token"]
    assert second != first
    client.send_pipeline_execution_step_success(CallbackToken=second)
    steps = follow(service, arn)
    assert steps["If"] == before, "what succeeded is not run again"
    assert (steps["Ask"]["StepStatus"], steps["Ask"]["AttemptCount"]) == ("Succeeded", 2)
    assert client.describe_pipeline_execution(PipelineExecutionArn=arn)["PipelineExecutionStatus"] == "Succeeded"
    with pytest.raises(client.exceptions.ConflictException):
        client.retry_pipeline_execution(PipelineExecutionArn=arn, ClientRequestToken="s" * 32)


def test_a_stopped_callback_step_asks_its_client_to_end(service: Service, queue: str) -> None:
    client = service.client()
    arn = start(service, "stopped", call_back("Ask", queue))
    token = receive(service, queue)["token"]
    client.stop_pipeline_execution(PipelineExecutionArn=arn, ClientRequestToken="t" * 32)
    body = receive(service, queue)
    assert (body["token"], body["status"]) == (token, "Stopping")
    client.send_pipeline_execution_step_failure(CallbackToken=token)
    assert follow(service, arn)["Ask"]["StepStatus"] == "Failed"
    assert client.describe_pipeline_execution(PipelineExecutionArn=arn)["PipelineExecutionStatus"] == "Stopped"


def test_a_callback_step_without_its_queue_fails(service: Service, queue: str) -> None:
    steps = follow(service, start(service, "no-queue", call_back("Ask", f"{queue}-not")))
    assert steps["Ask"]["StepStatus"] == "Failed"
    assert f"{queue}-not" in steps["Ask"]["FailureReason"]


def test_selected_steps_use_the_results_of_an_earlier_execution(service: Service, queue: str) -> None:
    client = service.client()
    get = {"Get": "Steps.Ask.OutputParameters['answer']"}
    source = start(service, "select", call_back("Ask", queue, "answer"), fail("End", get))
    outputs = [{"Name": "answer", "Value": "once"}]
    client.send_pipeline_execution_step_success(
        CallbackToken=receive(service, queue)["token"], OutputParameters=outputs
    )
    follow(service, source)
    selected: dict[str, Any] = {"SelectedSteps": [{"StepName": "End"}]}
    with pytest.raises(ClientError, match="uses results of Ask, which is not selected"):
        client.start_pipeline_execution(PipelineName="select", SelectiveExecutionConfig=selected)
    selected["SourcePipelineExecutionArn"] = source
    answer = client.start_pipeline_execution(PipelineName="select", SelectiveExecutionConfig=selected)
    steps = follow(service, answer["PipelineExecutionArn"])
    assert steps["End"]["FailureReason"] == "once"
    assert steps["Ask"]["SelectiveExecutionResult"] == {"SourcePipelineExecutionArn": source}
    described = client.describe_pipeline_execution(PipelineExecutionArn=answer["PipelineExecutionArn"])
    assert described["SelectiveExecutionConfig"] == selected
    selected["SelectedSteps"] = [{"StepName": "Gone"}]
    with pytest.raises(ClientError, match="has Gone, which the pipeline does not have"):
        client.start_pipeline_execution(PipelineName="select", SelectiveExecutionConfig=selected)


def test_a_waiting_callback_step_does_not_keep_the_emulator_from_ending(service: Service, queue: str) -> None:
    arn = start(service, "closing", call_back("Ask", queue))
    token = receive(service, queue)["token"]
    run = service.harness.jobs.services.threads.find(arn)
    assert run is not None
    run.shut_down(0)
    assert follow(service, arn)["Ask"]["StepStatus"] == "Stopped"
    with pytest.raises(ClientError, match=f"No callback step with the token {token}"):
        service.client().send_pipeline_execution_step_failure(CallbackToken=token)


def test_a_running_function_step_does_not_keep_the_emulator_from_ending(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, ends = Event(), Event()

    class Functions:
        def invoke(self, **_members: object) -> dict[str, object]:
            called.set()
            ends.wait(400)
            return {}

    real = pipeline_run._connect
    monkeypatch.setattr(pipeline_run, "_connect", lambda *given: Functions() if given[-1] == "lambda" else real(*given))
    step = {"Name": "Call", "Type": "Lambda", "FunctionArn": "arn:aws:lambda:us-east-1:123456789012:function:slow"}
    arn = start(service, "calling", step)
    assert called.wait(180)
    run = service.harness.jobs.services.threads.find(arn)
    assert run is not None
    run.shut_down(0)
    assert follow(service, arn)["Call"]["StepStatus"] == "Stopped"
    ends.set()


def test_a_function_that_runs_for_long_is_called_once(service: Service, queue: str) -> None:
    arn = start(service, "patient", call_back("Ask", queue))
    receive(service, queue)
    run = service.harness.jobs.services.threads.find(arn)
    assert isinstance(run, PipelineRun)
    patience = run.connect("lambda").meta.config
    assert patience.read_timeout > 900, "the longest time of a function"
    assert patience.retries["total_max_attempts"] == 1
    run.shut_down(0)
    follow(service, arn)
