"""Tests of SageMaker's operations by boto3."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.gateway.sagemaker import SageMaker
from emulator.jobs.model.warnings import WARNINGS_HEADER
from emulator.jobs.store.listing import parse_list_query
from emulator.moto_services.wsgi import has_sagemaker_resource
from tests.integration.emulator.gateway.client_errors import error_of
from tests.integration.emulator.gateway.listening_gateway import Gateway
from tests.unit.emulator.gateway.test_protocol import REQUEST


def test_create_and_describe(sagemaker: Any) -> None:
    created = sagemaker.create_training_job(**REQUEST, Tags=[{"Key": "a", "Value": "b"}])
    assert created["TrainingJobArn"] == "arn:aws:sagemaker:us-east-1:123456789012:training-job/job-1"
    assert len(created["ResponseMetadata"]["RequestId"]) == 36
    described = sagemaker.describe_training_job(TrainingJobName="job-1")
    assert {name: described[name] for name in REQUEST} == REQUEST
    assert described["CreationTime"] == datetime(2023, 11, 14, 22, 13, 20, 500000, tzinfo=UTC)
    assert "FailureReason" not in described
    assert "Internal" not in described


def test_a_client_is_warned_of_an_sdk_that_was_never_tried(gateway: Gateway, sagemaker: Any) -> None:
    created = sagemaker.create_training_job(**REQUEST)
    assert gateway.jobs.training.client_note is None
    assert WARNINGS_HEADER not in created["ResponseMetadata"]["HTTPHeaders"]
    name = " lib/AWS-SageMaker-Python-SDK#2.1.0"
    sagemaker.meta.events.register(
        "request-created.sagemaker", lambda request, **_: request.headers.add_header("User-Agent", name)
    )
    created = sagemaker.create_training_job(**REQUEST | {"TrainingJobName": "job-2"})
    (warning,) = json.loads(created["ResponseMetadata"]["HTTPHeaders"][WARNINGS_HEADER])
    assert warning["code"] == "ClientNotTried"
    assert "AWS-SageMaker-Python-SDK 2.1.0 was not tested" in warning["text"]
    assert set(created) == {"TrainingJobArn", "ResponseMetadata"}


def test_the_region_is_that_of_the_signature(gateway: Gateway, sagemaker: Any) -> None:
    sagemaker.create_training_job(**REQUEST)
    elsewhere = gateway.client("sagemaker", "eu-central-1")
    assert ":eu-central-1:" in elsewhere.create_training_job(**REQUEST)["TrainingJobArn"]
    assert len(elsewhere.list_training_jobs()["TrainingJobSummaries"]) == 1


def test_a_taken_name(sagemaker: Any) -> None:
    sagemaker.create_training_job(**REQUEST)
    with pytest.raises(sagemaker.exceptions.ResourceInUse) as caught:
        sagemaker.create_training_job(**REQUEST)
    assert error_of(caught)[::2] == ("ResourceInUse", 400)


def test_an_unknown_job(sagemaker: Any) -> None:
    with pytest.raises(ClientError) as caught:
        sagemaker.describe_training_job(TrainingJobName="nobody")
    assert error_of(caught) == ("ValidationException", "Requested resource not found.", 400)


def test_lists_pass_their_filters_on(gateway: Gateway, sagemaker: Any) -> None:
    sagemaker.create_training_job(**REQUEST)
    after = datetime(2025, 1, 1, tzinfo=UTC)
    answer = sagemaker.list_training_jobs(
        NameContains="job", StatusEquals="InProgress", CreationTimeAfter=after, SortBy="Name", NextToken="t"
    )
    assert gateway.jobs.training.listed == {
        "NameContains": "job",
        "StatusEquals": "InProgress",
        "CreationTimeAfter": after,
        "SortBy": "Name",
        "NextToken": "t",
    }
    assert answer["NextToken"] == "more"
    assert answer["TrainingJobSummaries"][0]["TrainingJobName"] == "job-1"
    assert "RoleArn" not in answer["TrainingJobSummaries"][0]


@pytest.mark.parametrize(("given", "seen"), [({}, 10), ({"MaxResults": 100}, 100), ({"MaxResults": 1}, 1)])
def test_page_sizes(gateway: Gateway, sagemaker: Any, given: dict[str, int], seen: int) -> None:
    assert "NextToken" not in sagemaker.list_processing_jobs(**given)
    assert parse_list_query(gateway.jobs.processing.listed).max_results == seen


def test_a_page_of_more_than_100_is_refused(sagemaker: Any) -> None:
    with pytest.raises(ClientError) as caught:
        sagemaker.list_training_jobs(MaxResults=101)
    assert error_of(caught)[1] == (
        "1 validation error detected: Value '101' at 'maxResults' failed to satisfy constraint: "
        "Member must have value less than or equal to 100"
    )


@pytest.mark.slow
def test_search_finds_training_jobs_here_and_experiments_in_moto(gateway: Gateway, sagemaker: Any) -> None:
    sagemaker.create_training_job(**REQUEST)
    answer = sagemaker.search(Resource="TrainingJob", SearchExpression={"Filters": [{"Name": "x", "Value": "y"}]})
    assert gateway.jobs.training.listed["SearchExpression"] == {"Filters": [{"Name": "x", "Value": "y"}]}
    assert answer["Results"][0]["TrainingJob"]["TrainingJobName"] == "job-1"
    assert (answer["NextToken"], answer["TotalHits"]) == ("more", {"Value": 7, "Relation": "EqualTo"})
    sagemaker.create_experiment(ExperimentName="searched")
    (found,) = sagemaker.search(Resource="Experiment")["Results"]
    sagemaker.delete_experiment(ExperimentName="searched")
    assert found["Experiment"]["ExperimentName"] == "searched"
    with pytest.raises(ClientError, match="Search of PipelineExecution is not emulated: list them instead"):
        sagemaker.search(Resource="PipelineExecution")
    hint = {"PropertyNameQuery": {"PropertyNameHint": "HyperParameters"}}
    names = sagemaker.get_search_suggestions(Resource="TrainingJob", SuggestionQuery=hint)["PropertyNameSuggestions"]
    assert names == [{"PropertyName": "HyperParameters.epochs"}]


def test_stop(gateway: Gateway, sagemaker: Any) -> None:
    sagemaker.create_training_job(**REQUEST)
    sagemaker.stop_training_job(TrainingJobName="job-1")
    sagemaker.stop_processing_job(ProcessingJobName="job-1")
    assert gateway.jobs.training.stopped == ["job-1", "job-1"]


def test_delete(sagemaker: Any) -> None:
    sagemaker.create_training_job(**REQUEST)
    sagemaker.delete_training_job(TrainingJobName="job-1")
    with pytest.raises(sagemaker.exceptions.ResourceNotFound):
        sagemaker.delete_training_job(TrainingJobName="job-1")


def test_update(sagemaker: Any) -> None:
    arn = sagemaker.create_training_job(**REQUEST)["TrainingJobArn"]
    remote = {"EnableRemoteDebug": True}
    assert sagemaker.update_training_job(TrainingJobName="job-1", RemoteDebugConfig=remote)["TrainingJobArn"] == arn
    rule = {"RuleConfigurationName": "P", "RuleEvaluatorImage": "rules:latest"}
    profiler = {"ProfilingIntervalInMilliseconds": 100, "ProfilingParameters": {"RotateMaxFileSizeInBytes": "1"}}
    sagemaker.update_training_job(TrainingJobName="job-1", ProfilerConfig=profiler, ProfilerRuleConfigurations=[rule])
    sagemaker.update_training_job(TrainingJobName="job-1", ProfilerConfig={"DisableProfiler": True})
    described = sagemaker.describe_training_job(TrainingJobName="job-1")
    assert described["ProfilerConfig"] == {**profiler, "DisableProfiler": True}
    assert described["ProfilerRuleConfigurations"] == [rule]
    enabled = {"DisableProfiler": False}
    for changes, said in (
        ({"ProfilerConfig": {"ProfilingIntervalInMilliseconds": 300}}, "must be one of 100, 200, 500"),
        ({"ProfilerRuleConfigurations": [{**rule, "RuleConfigurationName": "Q"}]}, "whose profiler is enabled"),
        ({"ProfilerConfig": enabled, "ProfilerRuleConfigurations": [rule]}, "Used more than once: P"),
        ({"ProfilerConfig": enabled, "ProfilerRuleConfigurations": [rule] * 21}, "less than or equal to 20"),
    ):
        with pytest.raises(ClientError, match=said) as caught:
            sagemaker.update_training_job(TrainingJobName="job-1", **changes)
        assert error_of(caught)[0] == "ValidationException"
    assert sagemaker.describe_training_job(TrainingJobName="job-1")["ProfilerConfig"] == described["ProfilerConfig"]


@pytest.mark.parametrize(
    ("status", "secondary_status"),
    [("InProgress", "Starting"), ("InProgress", "Uploading"), ("Stopping", "Stopping"), ("Completed", "Completed")],
)
def test_remote_debugging_is_changed_only_while_a_job_runs(
    gateway: Gateway, sagemaker: Any, status: str, secondary_status: str
) -> None:
    sagemaker.create_training_job(**REQUEST)
    job = gateway.jobs.training.jobs["us-east-1", "job-1"]
    job.status, job.secondary_status = status, secondary_status
    with pytest.raises(ClientError) as caught:
        sagemaker.update_training_job(TrainingJobName="job-1", RemoteDebugConfig={"EnableRemoteDebug": True})
    code, message, _ = error_of(caught)
    assert code == "ValidationException"
    assert message == (
        f"The request was rejected because the training job is in status {status}. You can update the remote debugging "
        f"configuration when the SecondaryStatus of the job is Downloading or Training; it is {secondary_status}."
    )
    assert "RemoteDebugConfig" not in sagemaker.describe_training_job(TrainingJobName="job-1")


def test_an_update_of_nothing_is_refused(sagemaker: Any) -> None:
    sagemaker.create_training_job(**REQUEST)
    with pytest.raises(ClientError) as caught:
        sagemaker.update_training_job(TrainingJobName="job-1")
    assert error_of(caught)[1] == "Invalid UpdateTrainingJobRequest, the request cannot be empty"


def test_tags(sagemaker: Any) -> None:
    arn = sagemaker.create_training_job(**REQUEST, Tags=[{"Key": "a", "Value": "1"}])["TrainingJobArn"]
    assert len(sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "b", "Value": "2"}])["Tags"]) == 2
    assert [tag["Key"] for tag in sagemaker.list_tags(ResourceArn=arn)["Tags"]] == ["a", "b"]
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["a", "never there"])
    assert [tag["Key"] for tag in sagemaker.list_tags(ResourceArn=arn)["Tags"]] == ["b"]


def test_tags_of_what_moto_has(sagemaker: Any) -> None:
    container = {"Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/i:1"}
    role = "arn:aws:iam::123456789012:role/r"
    arn = sagemaker.create_model(ModelName="m", PrimaryContainer=container, ExecutionRoleArn=role)["ModelArn"]
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["a"])
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "b", "Value": "2"}]


@pytest.mark.parametrize(
    "resource",
    ["training-job/nobody", "model/nobody", "endpoint/nobody", "no-such-kind/x", "pipeline/p/execution/e", "image"],
)
def test_tags_of_what_nobody_has(sagemaker: Any, resource: str) -> None:
    arn = f"arn:aws:sagemaker:us-east-1:123456789012:{resource}"
    for ask in (
        lambda: sagemaker.list_tags(ResourceArn=arn),
        lambda: sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}]),
        lambda: sagemaker.delete_tags(ResourceArn=arn, TagKeys=["a"]),
    ):
        with pytest.raises(sagemaker.exceptions.ResourceNotFound):
            ask()


def test_an_unsigned_request(gateway: Gateway) -> None:
    answer = gateway.send_operation("ListTrainingJobs", b"{}", signed=False)
    assert answer.status == 403
    assert answer.headers["x-amzn-errortype"] == "MissingAuthenticationTokenException"
    said = json.loads(answer.body)["message"]
    assert said.startswith("Missing Authentication Token: sign the request ")
    assert "smdebug-emulator env" in said


def test_a_region_nobody_has(gateway: Gateway) -> None:
    answer = gateway.send_operation("ListTrainingJobs", b"{}", region="moon-dark-1")
    said = json.loads(answer.body)
    assert said["__type"] == "InvalidSignatureException"
    assert "not 'moon-dark-1': set AWS_DEFAULT_REGION, or the client's region, to one of AWS's" in said["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1]",
        b"\x00" * 10,
        b'{"A":' * 900 + b"1" + b"}" * 900,
        b'{"A":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"A":"\xed\xa0\x80"}',
    ],
)
def test_bad_json(gateway: Gateway, body: bytes) -> None:
    answer = gateway.send_operation("ListTrainingJobs", body)
    assert answer.status == 400
    assert answer.headers["x-amzn-errortype"] == "SerializationException"
    assert answer.headers["x-amzn-requestid"]


def test_a_body_that_is_too_long_is_not_read(gateway: Gateway) -> None:
    answer = gateway.send_operation("ListTrainingJobs", b'{"NameContains":"' + b"a" * 8 * 1024**2 + b'"}')
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (413, "RequestEntityTooLargeException")
    assert len(answer.body) < 1000


def test_a_long_value_is_cut_where_an_error_repeats_it(gateway: Gateway) -> None:
    long = "a" * 1024**2
    for request in ({"NameContains": long}, {"StatusEquals": long}, {"CreationTimeAfter": 10**4000}):
        answer = gateway.send_operation("ListTrainingJobs", json.dumps(request).encode())
        assert answer.status == 400
        assert len(answer.body) < 10_000
    job = json.dumps(REQUEST | {"HyperParameters": {long: 1}})
    assert len(gateway.send_operation("CreateTrainingJob", job.encode()).body) < 10_000


@pytest.mark.parametrize(
    ("operation", "number", "bound"),
    [("ListTrainingJobs", 10**25, 100), ("ListTags", 10**25, 2**31 - 1), ("ListTags", 1e25, 2**31 - 1)],
)
def test_a_number_beyond_its_type_is_refused(gateway: Gateway, operation: str, number: float, bound: int) -> None:
    arn = "arn:aws:sagemaker:us-east-1:123456789012:training-job/x"
    answer = gateway.send_operation(operation, json.dumps({"ResourceArn": arn, "MaxResults": number}).encode())
    assert answer.headers["x-amzn-errortype"] == "ValidationException"
    assert json.loads(answer.body)["message"].endswith(f"less than or equal to {bound}")


def test_a_whole_number_may_have_a_point(gateway: Gateway) -> None:
    assert gateway.send_operation("ListTrainingJobs", b'{"MaxResults": 5.0}').status == 200
    assert repr(gateway.jobs.training.listed["MaxResults"]) == "5"


def test_a_fault_of_ours_is_an_internal_failure_with_its_traceback_in_the_log(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    answer = gateway.send_operation(
        "CreateTrainingJob", json.dumps({**REQUEST, "TrainingJobName": "job-that-breaks"}).encode()
    )
    assert answer.status == 500
    assert answer.headers["x-amzn-errortype"] == "InternalFailure"
    assert b"on fire" not in answer.body
    assert "the store is on fire" in caplog.text


@pytest.mark.parametrize(("name", "text"), [("FlyToTheMoon", "no operation"), ("CreateHub", "does not have")])
def test_operations_that_nobody_answers(gateway: Gateway, name: str, text: str) -> None:
    answer = gateway.send_operation(name, b"{}")
    assert answer.status == 400
    assert answer.headers["x-amzn-errortype"] == "UnknownOperationException"
    assert text in json.loads(answer.body)["message"]


def test_operations_of_moto_are_answered_by_moto(sagemaker: Any) -> None:
    sagemaker.create_experiment(ExperimentName="moto-has-this")
    names = [each["ExperimentName"] for each in sagemaker.list_experiments()["ExperimentSummaries"]]
    assert names == ["moto-has-this"]


def test_what_moto_answers_is_held_to_the_model_first(gateway: Gateway, sagemaker: Any) -> None:
    with pytest.raises(ClientError) as caught:
        sagemaker.create_experiment(ExperimentName="no spaces")
    assert error_of(caught)[0] == "ValidationException"
    assert "at 'experimentName' failed to satisfy constraint: Member must satisfy regular" in error_of(caught)[1]
    answer = gateway.send_operation("DescribeModel", b"{")
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (400, "SerializationException")
    assert gateway.send_operation("ListModels", b"{}", signed=False).status == 403


def test_an_operation_that_the_model_lacks_stops_the_start(gateway: Gateway) -> None:
    jobs: Any = gateway.jobs
    with pytest.raises(ValueError, match="FlyToTheMoon"):
        SageMaker(lambda _: jobs, has_sagemaker_resource, {"FlyToTheMoon": lambda _request, _context: {}})
