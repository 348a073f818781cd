import json
from datetime import UTC, datetime
from typing import Any

import pytest

from emulator.exceptions import InternalFailure, SerializationException, ValidationException
from emulator.gateway.protocol import Operation, encode_error, find_operation, load_operation
from emulator.gateway.request_schema import build_schema

REQUEST: dict[str, Any] = {
    "TrainingJobName": "job-1",
    "AlgorithmSpecification": {"TrainingImage": "pytorch-training:2.3", "TrainingInputMode": "File"},
    "RoleArn": "arn:aws:iam::123456789012:role/trainer",
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
    "StoppingCondition": {"MaxRuntimeInSeconds": 60},
}
PATTERN = "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"


def decode(operation: str = "CreateTrainingJob", **changes: Any) -> dict[str, Any]:
    return load_operation(operation).decode(json.dumps({**REQUEST, **changes}).encode())


def refusal(**changes: Any) -> str:
    with pytest.raises(ValidationException) as caught:
        decode(**changes)
    return caught.value.message


def test_a_good_request_comes_back_as_it_was_sent() -> None:
    assert decode() == REQUEST


def test_unknown_members_are_kept() -> None:
    assert decode(InventedLater={"A": [1]})["InventedLater"] == {"A": [1]}


def test_null_members_are_absent() -> None:
    assert "HyperParameters" not in decode(HyperParameters=None)


def test_one_violation_reads_as_aws_writes_it() -> None:
    assert refusal(TrainingJobName="-x_") == (
        "1 validation error detected: Value '-x_' at 'trainingJobName' failed to satisfy constraint: "
        f"Member must satisfy regular expression pattern: {PATTERN}"
    )


def test_all_violations_are_reported_at_once_in_the_models_order() -> None:
    message = refusal(
        StoppingCondition={"MaxRuntimeInSeconds": 0},
        TrainingJobName="x" * 64,
        OutputDataConfig={},
    )
    assert message.startswith("4 validation errors detected: ")
    assert message.split(": ", 1)[1].split("; ") == [
        (
            f"Value '{'x' * 64}' at 'trainingJobName' failed to satisfy constraint: "
            "Member must have length less than or equal to 63"
        ),
        (
            f"Value '{'x' * 64}' at 'trainingJobName' failed to satisfy constraint: "
            f"Member must satisfy regular expression pattern: {PATTERN}"
        ),
        "Value null at 'outputDataConfig.s3OutputPath' failed to satisfy constraint: Member must not be null",
        (
            "Value '0' at 'stoppingCondition.maxRuntimeInSeconds' failed to satisfy constraint: "
            "Member must have value greater than or equal to 1"
        ),
    ]


LENGTHS = "Member must have length less than or equal to {}, Member must have length greater than or equal to 0"
FAILED = "failed to satisfy constraint"


@pytest.mark.parametrize(
    ("changes", "violation"),
    [
        (
            {"RoleArn": None},
            "Value null at 'roleArn' failed to satisfy constraint: Member must not be null",
        ),
        (
            {"AlgorithmSpecification": {"TrainingInputMode": "Files"}},
            (
                "Value 'Files' at 'algorithmSpecification.trainingInputMode' failed to satisfy constraint: "
                "Member must satisfy enum value set: [Pipe, File, FastFile]"
            ),
        ),
        (
            {
                "DebugRuleConfigurations": [
                    {"RuleConfigurationName": "a", "RuleEvaluatorImage": "i"},
                    {"RuleEvaluatorImage": "i"},
                ]
            },
            (
                "Value null at 'debugRuleConfigurations.2.member.ruleConfigurationName' failed to satisfy constraint: "
                "Member must not be null"
            ),
        ),
        (
            {"HyperParameters": {"k": "v" * 2501}},
            (
                f"Value '{{k={'v' * 2501}}}' at 'hyperParameters' {FAILED}: Map value must satisfy constraint: "
                f"[{LENGTHS.format(2500)}, Member must satisfy regular expression pattern: .*]"
            ),
        ),
        (
            {"Environment": {"1A": "x"}},
            (
                f"Value '{{1A=x}}' at 'environment' {FAILED}: Map keys must satisfy constraint: "
                f"[{LENGTHS.format(512)}, Member must satisfy regular expression pattern: [a-zA-Z_][a-zA-Z0-9_]*]"
            ),
        ),
        (
            {"VpcConfig": {"SecurityGroupIds": ["sg 1", "sg-2"], "Subnets": ["s"]}},
            (
                f"Value '[sg 1, sg-2]' at 'vpcConfig.securityGroupIds' {FAILED}: Member must satisfy constraint: "
                f"[{LENGTHS.format(32)}, Member must satisfy regular expression pattern: [-0-9a-zA-Z]+]"
            ),
        ),
        (
            {"VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": []}},
            (
                "Value '[]' at 'vpcConfig.subnets' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1"
            ),
        ),
        (
            {"HyperParameters": {str(i): "" for i in range(101)}},
            "' at 'hyperParameters' failed to satisfy constraint: Member must have length less than or equal to 100",
        ),
        (
            {"Tags": [None]},
            "Value null at 'tags.1.member' failed to satisfy constraint: Member must not be null",
        ),
        (
            {"Tags": [{"Key": "a;b", "Value": ""}]},
            (
                "Value 'a;b' at 'tags.1.member.key' failed to satisfy constraint: "
                r"Member must satisfy regular expression pattern: ([\p{L}\p{Z}\p{N}_.:/=+\-@]*)"
            ),
        ),
    ],
)
def test_each_kind_of_violation(changes: dict[str, Any], violation: str) -> None:
    message = refusal(**changes)
    assert message.startswith("1 validation error detected: ")
    assert message.endswith(violation)


def test_patterns_are_anchored() -> None:
    assert "regular expression" in refusal(TrainingJobName="good name")
    assert "regular expression" in refusal(TrainingJobName="good\n")


def test_unicode_letters_are_letters_in_tags() -> None:
    assert decode(Tags=[{"Key": "größe", "Value": "日本"}])["Tags"][0]["Key"] == "größe"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"TrainingJobName": 1}, "NUMBER_VALUE can not be converted to a String (at 'trainingJobName')"),
        (
            {"StoppingCondition": {"MaxRuntimeInSeconds": "60"}},
            "STRING_VALUE can not be converted to an Integer (at 'stoppingCondition.maxRuntimeInSeconds')",
        ),
        ({"EnableNetworkIsolation": "true"}, "STRING_VALUE can not be converted to a Boolean"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": True}}, "TRUE_VALUE can not be converted to an Integer"),
        ({"TrainingJobName": {}}, "Start of structure or map found where not expected."),
        ({"TrainingJobName": []}, "Start of list found where not expected."),
        ({"Tags": {}}, "Start of structure or map found where not expected."),
    ],
)
def test_a_wrong_type_is_a_serialization_exception(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(SerializationException) as caught:
        decode(**changes)
    assert caught.value.message.startswith(text)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b'{"MaxResults": NaN}',
        b'{"MaxResults": 1e400}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_what_is_not_a_json_object_is_a_serialization_exception(body: bytes) -> None:
    with pytest.raises(SerializationException):
        load_operation("ListTrainingJobs").decode(body)


def test_an_empty_body_is_an_empty_request() -> None:
    assert load_operation("ListTrainingJobs").decode(b"") == {}


def test_a_request_in_which_nothing_can_be_wrong_builds_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_shape: object) -> None:
        raise AssertionError

    monkeypatch.setattr("emulator.gateway.protocol.build_validator", fail)
    assert Operation("ListTrainingJobs").decode(b"{}") == {}
    assert Operation("ListTrainingJobs").decode(b'{"NextToken": null}') == {}
    with pytest.raises(AssertionError):
        Operation("DescribeTrainingJob").decode(b"{}")
    with pytest.raises(AssertionError):
        Operation("ListTrainingJobs").decode(b'{"MaxResults": 0}')


def test_timestamps_become_aware_datetimes() -> None:
    decoded = load_operation("ListTrainingJobs").decode(b'{"CreationTimeAfter": 1700000000.25}')
    assert decoded["CreationTimeAfter"] == datetime(2023, 11, 14, 22, 13, 20, 250000, tzinfo=UTC)


def test_a_time_beyond_all_calendars_is_refused() -> None:
    with pytest.raises(SerializationException):
        load_operation("ListTrainingJobs").decode(b'{"CreationTimeAfter": 1e300}')


def test_answers_are_cut_to_the_output_shape() -> None:
    answer = load_operation("DescribeTrainingJob").encode(
        {
            "TrainingJobName": "j",
            "Invented": 1,
            "FailureReason": None,
            "CreationTime": datetime(2023, 11, 14, 22, 13, 20, 250400, tzinfo=UTC),
            "LastModifiedTime": 1700000000.5,
            "ResourceConfig": {"InstanceCount": 1, "Invented": 2},
            "HyperParameters": {"any": "key"},
            "SecondaryStatusTransitions": [{"Status": "Starting", "StartTime": 1.0, "Invented": 3}],
        }
    )
    assert json.loads(answer.body) == {
        "TrainingJobName": "j",
        "CreationTime": 1700000000.25,
        "LastModifiedTime": 1700000000.5,
        "ResourceConfig": {"InstanceCount": 1},
        "HyperParameters": {"any": "key"},
        "SecondaryStatusTransitions": [{"Status": "Starting", "StartTime": 1.0}],
    }


def test_an_operation_without_output_has_an_empty_body() -> None:
    assert load_operation("StopTrainingJob").encode({}).body == b""


def test_errors_have_the_wires_form() -> None:
    answer = encode_error(InternalFailure("why"))
    assert answer.status == 500
    assert answer.headers["x-amzn-errortype"] == "InternalFailure"
    assert json.loads(answer.body) == {"__type": "InternalFailure", "message": "why"}


def test_an_operation_that_the_model_lacks_is_an_error() -> None:
    with pytest.raises(ValueError, match="FlyToTheMoon"):
        load_operation("FlyToTheMoon")


def test_recursive_shapes_compile() -> None:
    model = find_operation("Search")
    assert model is not None
    assert model.input_shape is not None
    assert "SearchExpression" in build_schema(model.input_shape)["$defs"]


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_half_of_a_surrogate_pair_is_not_text(text: str) -> None:
    with pytest.raises(SerializationException, match="surrogates not allowed"):
        decode(Environment={"NAME": text})
    assert decode(HyperParameters={"a": "\U0001f600"})["HyperParameters"] == {"a": "\U0001f600"}
