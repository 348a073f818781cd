"""Tests of moto's state after a kill -9 and a restart, by boto3."""

import io
import json
import logging
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.moto_services import durable
from emulator.moto_services.backend_files import BackendFiles
from emulator.moto_services.backend_pickle import find_backend
from emulator.moto_services.cloudwatch.logs import LogGroups
from emulator.moto_services.eventbridge.rules import Target, deliver_to_queue
from emulator.moto_services.functions.backend import get_function
from emulator.moto_services.store import MotoStore
from tests.boto3_client import make_client
from tests.integration.emulator.shared_listener import build_moto_application, serving
from tests.waiting import wait_until

ACCOUNT, REGION = "123456789012", "us-east-1"
QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:kept"


class Clients:
    """A client of each service, made when first asked for."""

    def __init__(self, endpoint_url: str) -> None:
        self._endpoint_url = endpoint_url

    def __getattr__(self, name: str) -> Any:
        return make_client(self._endpoint_url, name.strip("_").replace("_", "-"), REGION)


@contextmanager
def running(folder: Path) -> Iterator[Clients]:
    """moto on ``folder``, as it is in the emulator."""
    store = MotoStore(folder)
    try:
        with serving(build_moto_application()) as endpoint_url:
            yield Clients(endpoint_url)
    finally:
        store.close()


def build_zip() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return 1")
    return content.getvalue()


def make_resources(aws: Clients) -> dict[str, Any]:
    """One of everything that users of the emulator often make; what has to be known of it afterwards."""
    known: dict[str, Any] = {}
    role = aws.iam.create_role(RoleName="kept", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    known["queue"] = aws.sqs.create_queue(QueueName="kept", tags={"a": "b"})["QueueUrl"]
    aws.sqs.send_message(QueueUrl=known["queue"], MessageBody="waiting")
    known["topic"] = aws.sns.create_topic(Name="kept")["TopicArn"]
    aws.sns.subscribe(TopicArn=known["topic"], Protocol="sqs", Endpoint=QUEUE_ARN)
    aws.events.create_event_bus(Name="kept")
    aws.events.put_rule(Name="kept", EventBusName="kept", EventPattern='{"source": ["kept"]}')
    aws.events.put_targets(Rule="kept", EventBusName="kept", Targets=[{"Id": "1", "Arn": QUEUE_ARN}])
    aws.logs.create_log_group(logGroupName="kept")
    aws.logs.create_log_stream(logGroupName="kept", logStreamName="kept")
    event: dict[str, Any] = {"timestamp": int(time.time() * 1000), "message": "a line"}
    aws.logs.put_log_events(logGroupName="kept", logStreamName="kept", logEvents=[event])
    LogGroups(ACCOUNT, REGION).put("kept", "kept", [(event["timestamp"] + 1, "a line of a job")])
    code = {"ZipFile": build_zip()}
    aws.__getattr__("lambda").create_function(
        FunctionName="kept", Runtime="python3.11", Role=role, Handler="index.handler", Code=code, Publish=True
    )
    aws.__getattr__("lambda").create_alias(FunctionName="kept", Name="live", FunctionVersion="1")
    alarm = {"Namespace": "N", "MetricName": "M", "Period": 60, "Statistic": "Sum", "EvaluationPeriods": 1}
    aws.cloudwatch.put_metric_alarm(AlarmName="kept", ComparisonOperator="GreaterThanThreshold", Threshold=1, **alarm)
    aws.cloudwatch.put_metric_data(Namespace="N", MetricData=[{"MetricName": "M", "Value": 1}])
    aws.sagemaker.create_model(ModelName="kept", PrimaryContainer={"Image": "i"}, ExecutionRoleArn=role)
    variant = {"VariantName": "v", "ModelName": "kept", "InitialInstanceCount": 1, "InstanceType": "ml.m5.large"}
    aws.sagemaker.create_endpoint_config(EndpointConfigName="kept", ProductionVariants=[variant])
    aws.sagemaker.create_endpoint(EndpointName="kept", EndpointConfigName="kept")
    key = aws.kms.create_key()["KeyMetadata"]["KeyId"]
    known["cipher"] = aws.kms.encrypt(KeyId=key, Plaintext=b"plain")["CiphertextBlob"]
    known["signer"] = aws.kms.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
    signing = {"KeyId": known["signer"], "Message": b"m", "SigningAlgorithm": "RSASSA_PSS_SHA_256"}
    known["signature"] = aws.kms.sign(**signing)["Signature"]
    aws.ecr.create_repository(repositoryName="kept")
    return known


@pytest.mark.slow
def test_everything_moto_holds_survives_a_kill(tmp_path: Path) -> None:
    with running(tmp_path / "first") as aws:
        known = make_resources(aws)
        # What the disk has at this moment is what a kill -9 would leave.
        shutil.copytree(tmp_path / "first", tmp_path / "second")
    with running(tmp_path / "second") as aws:
        assert aws.iam.get_role(RoleName="kept")["Role"]["RoleName"] == "kept"
        queue = known["queue"].rpartition("/")[2]
        assert aws.sqs.receive_message(QueueUrl=queue)["Messages"][0]["Body"] == "waiting"
        aws.sns.publish(TopicArn=known["topic"], Message="to the subscriber")
        assert "to the subscriber" in aws.sqs.receive_message(QueueUrl=queue)["Messages"][0]["Body"]
        (target,) = aws.events.list_targets_by_rule(Rule="kept", EventBusName="kept")["Targets"]
        assert target == {"Id": "1", "Arn": QUEUE_ARN}
        stream = {"logGroupName": "kept", "logStreamName": "kept"}
        lines = [e["message"] for e in aws.logs.get_log_events(**stream, startFromHead=True)["events"]]
        assert lines == ["a line", "a line of a job"]
        aws.logs.put_log_events(**stream, logEvents=[{"timestamp": int(time.time() * 1000), "message": "more"}])
        assert get_function(ACCOUNT, REGION, "kept", "live").code_zip
        (alarm,) = aws.cloudwatch.describe_alarms()["MetricAlarms"]
        assert alarm["AlarmName"] == "kept"
        assert aws.cloudwatch.list_metrics(Namespace="N")["Metrics"][0]["MetricName"] == "M"
        assert aws.sagemaker.describe_endpoint(EndpointName="kept")["EndpointConfigName"] == "kept"
        assert aws.kms.decrypt(CiphertextBlob=known["cipher"])["Plaintext"] == b"plain"
        signed = {"Signature": known["signature"], "Message": b"m", "SigningAlgorithm": "RSASSA_PSS_SHA_256"}
        assert aws.kms.verify(KeyId=known["signer"], **signed)["SignatureValid"]
        assert aws.ecr.describe_repositories()["repositories"][0]["repositoryName"] == "kept"
        assert [url.rpartition("/")[2] for url in aws.sqs.list_queues()["QueueUrls"]] == ["kept"]
    with running(tmp_path / "second") as aws:  # closed in order this time
        lines = [e["message"] for e in aws.logs.get_log_events(**stream, startFromHead=True)["events"]]
        assert lines == ["a line", "a line of a job", "more"]
        aws.logs.delete_log_group(logGroupName="kept")
        LogGroups(ACCOUNT, REGION).put("kept", "kept", [(1, "of another stream")])
    with running(tmp_path / "second") as aws:
        (event,) = aws.logs.get_log_events(**stream, startFromHead=True)["events"]
        assert event["message"] == "of another stream"


@pytest.mark.nightly  # they are kept as the others are; what makes them dear is what moto imports for them
def test_services_that_are_rarely_used_survive_a_kill(tmp_path: Path) -> None:
    resources = {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "of-the-stack"}},
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "of-the-stack"}},
    }
    with running(tmp_path / "first") as aws:
        aws.ssm.put_parameter(Name="/kept", Value="1", Type="String")
        aws.cognito_idp.create_user_pool(PoolName="kept")
        aws.xray.put_trace_segments(TraceSegmentDocuments=["{}"])
        aws.apigateway.create_rest_api(name="kept")
        aws.cloudformation.create_stack(StackName="kept", TemplateBody=json.dumps({"Resources": resources}))
        shutil.copytree(tmp_path / "first", tmp_path / "second")
    with running(tmp_path / "second") as aws:
        assert aws.ssm.get_parameter(Name="/kept")["Parameter"]["Value"] == "1"
        aws.ssm.put_parameter(Name="/new", Value="2", Type="String")
        assert aws.cognito_idp.list_user_pools(MaxResults=1)["UserPools"][0]["Name"] == "kept"
        assert aws.apigateway.get_rest_apis()["items"][0]["name"] == "kept"
        assert aws.s3.list_buckets()["Buckets"][0]["Name"] == "of-the-stack"
        aws.cloudformation.delete_stack(StackName="kept")
        assert aws.s3.list_buckets()["Buckets"] == []
        assert "QueueUrls" not in aws.sqs.list_queues()


def test_a_damaged_file_is_of_its_service_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path) as aws:
        aws.sqs.create_queue(QueueName="lost")
        aws.sns.create_topic(Name="kept")
    path = tmp_path / "moto" / "sqs" / ACCOUNT / f"{REGION}.1.state"
    path.write_bytes(path.read_bytes()[:-3])
    with running(tmp_path) as aws, caplog.at_level(logging.ERROR):
        assert aws.sns.list_topics()["Topics"]
        assert "QueueUrls" not in aws.sqs.list_queues()
        errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert [error.getMessage().partition(":")[0] for error in errors] == [
            f"What moto kept of sqs of the account {ACCOUNT} in {REGION} cannot be read (DamagedFileError"
        ]
        aws.sqs.create_queue(QueueName="new")
    assert path.exists()
    assert path.with_suffix(".damaged").exists()


def test_reading_writes_nothing_and_changing_only_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = BackendFiles.write

    def note_and_write(files: BackendFiles, place: Any, content: bytes) -> None:
        written.append(place.service)
        write(files, place, content)

    monkeypatch.setattr(BackendFiles, "write", note_and_write)
    with running(tmp_path) as aws:
        queue = aws.sqs.create_queue(QueueName="q")["QueueUrl"]
        aws.sns.create_topic(Name="t")
        assert written == ["sqs", "sns"]
        aws.sqs.list_queues()
        aws.sqs.get_queue_attributes(QueueUrl=queue)
        aws.sns.list_topics()
        aws.events.list_rules()
        aws.events.put_events(Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}"}])
        aws.iam.list_roles()
        aws.sts.get_caller_identity()
        assert written == ["sqs", "sns"]
    # The end writes what was changed outside of requests.
    assert written == ["sqs", "sns"]


def test_what_services_deliver_is_kept_before_they_go_on(tmp_path: Path) -> None:
    with running(tmp_path / "first") as aws:
        aws.sqs.create_queue(QueueName="kept")
        deliver_to_queue(Target("rule", ACCOUNT, REGION, "default", "1", QUEUE_ARN), "delivered")
        shutil.copytree(tmp_path / "first", tmp_path / "second")
    with running(tmp_path / "second") as aws:
        assert aws.sqs.receive_message(QueueUrl="kept")["Messages"][0]["Body"] == "delivered"


def test_a_replacement_begins_with_the_first_use_of_its_service_and_ends_with_its_block(tmp_path: Path) -> None:
    from moto.kms.models import kms_backends
    from moto.sns.models import sns_backends

    steps: list[str] = []

    @contextmanager
    def replace(name: str) -> Iterator[None]:
        steps.append(f"{name} begins")
        yield
        steps.append(f"{name} ends")

    with closing(MotoStore(tmp_path)) as store:
        with store.replacing_in("sns", partial(replace, "first")):
            assert not steps
            assert sns_backends[ACCOUNT][REGION] is sns_backends[ACCOUNT][REGION]
            with store.replacing_in("sns", partial(replace, "at once")):
                assert steps == ["first begins", "at once begins"]
        assert steps[2:] == ["at once ends", "first ends"]
        with store.replacing_in("kms", partial(replace, "never used")):
            pass
        assert kms_backends[ACCOUNT][REGION]
        assert len(steps) == 4


def test_what_cannot_be_kept_is_reported_once_and_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from moto.sqs.models import sqs_backends

    with running(tmp_path) as aws, caplog.at_level(logging.WARNING):
        aws.sqs.create_queue(QueueName="q")
        monkeypatch.setattr(sqs_backends[ACCOUNT][REGION], "unkept", lambda: None, raising=False)
        aws.sqs.create_queue(QueueName="r")
        aws.sqs.create_queue(QueueName="s")
        assert len(aws.sqs.list_queues()["QueueUrls"]) == 3
        said = [r.getMessage() for r in caplog.records if "cannot be kept" in r.getMessage()]
        assert len(said) == 1
        monkeypatch.undo()


def test_a_close_ends_that_comes_while_stray_changes_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of its own writes what is used outside of requests; it must not miss that it is to end."""
    told = threading.Semaphore(0)

    class ClosedBeforeItIsCleared(threading.Event):
        def set(self) -> None:
            super().set()
            if threading.current_thread() is closer:
                told.release()

        def clear(self) -> None:
            if closer.ident is None:
                closer.start()
                assert all(told.acquire(timeout=400) for _event in range(2))
            super().clear()

    monkeypatch.setattr(durable, "threading", SimpleNamespace(**vars(threading) | {"Event": ClosedBeforeItIsCleared}))
    store = MotoStore(tmp_path)
    closer = threading.Thread(target=store.close, daemon=True)
    find_backend("sqs", ACCOUNT, REGION).create_queue("stray")
    wait_until(lambda: closer.ident is not None)
    closer.join(60)
    assert not closer.is_alive()
    with running(tmp_path) as aws:
        assert aws.sqs.list_queues()["QueueUrls"]
