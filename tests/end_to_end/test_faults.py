"""Tests of injected faults: clients see them, and jobs survive those of S3.

Nothing of a fault remains when it is switched off.
"""

import io
import json
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError, ResponseStreamingError
from click.testing import CliRunner

from emulator.cli.commands import main
from emulator.stop_handler.deployment import deploy_stop_handler
from tests.end_to_end.finished_jobs import read_log, wait_until_ended
from tests.running_emulator import RunningEmulator
from tests.soak.small_job import build_job, stage_data
from tests.waiting import wait_until

LEAVES_A_MODEL = ("python", "-c", "open('/opt/ml/model/m', 'w').write('model')")
ROLE = "arn:aws:iam::123456789012:role/r"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    with RunningEmulator(tmp_path_factory.mktemp("faults") / "state", runtime="process", warm=False) as running:
        running.client("s3").create_bucket(Bucket="faults")
        yield running


def ask(emulator: RunningEmulator, method: str, asked: Any = None) -> Any:
    return requests.request(method, f"{emulator.endpoint_url}/_emulator/faults", json=asked, timeout=400)


def set_faults(emulator: RunningEmulator, **asked: dict[str, Any]) -> None:
    assert ask(emulator, "PUT", asked).status_code == 200


def count_struck(emulator: RunningEmulator, scope: str) -> dict[str, int]:
    struck: dict[str, int] = ask(emulator, "GET").json()[scope]["struck"]
    return struck


def create_job(emulator: RunningEmulator, name: str, entrypoint: Sequence[str] = LEAVES_A_MODEL, **members: Any) -> str:
    emulator.client("sagemaker").create_training_job(
        TrainingJobName=name,
        RoleArn=ROLE,
        AlgorithmSpecification={
            "TrainingImage": "smdebug-emulator/pytorch-training:latest",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": list(entrypoint),
        },
        OutputDataConfig={"S3OutputPath": "s3://faults/output"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        **{"StoppingCondition": {"MaxRuntimeInSeconds": 600}, **members},
    )
    return name


def wait_for_end(emulator: RunningEmulator, name: str) -> Any:
    sagemaker = emulator.client("sagemaker")

    def find_ended() -> Any:
        described = sagemaker.describe_training_job(TrainingJobName=name)
        return described if described["TrainingJobStatus"] in ("Completed", "Failed", "Stopped") else None

    return wait_until(find_ended)


def test_requests_to_s3_fail_are_slow_and_are_cut(emulator: RunningEmulator) -> None:
    s3 = emulator.client("s3")
    s3.put_object(Bucket="faults", Key="k", Body=b"0123456789" * 300_000)
    assert ask(emulator, "PUT", {"s3": {"error": 1, "times": 4}}).status_code == 200
    with pytest.raises(ClientError) as caught:
        s3.get_object(Bucket="faults", Key="k")
    assert caught.value.response["Error"]["Code"] == "SlowDown"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    # Other services, and the emulator's own pages, are not harmed.
    emulator.client("sagemaker").list_training_jobs()
    assert ask(emulator, "GET").json()["s3"]["struck"]["error"] >= 1
    ask(emulator, "PUT", {"s3": {"truncate": 1, "times": 1, "delay": "150ms"}})
    began = time.monotonic()
    with pytest.raises(ResponseStreamingError):
        s3.get_object(Bucket="faults", Key="k")["Body"].read()
    assert time.monotonic() - began >= 0.15
    assert ask(emulator, "DELETE").json() == {}
    assert len(s3.get_object(Bucket="faults", Key="k")["Body"].read()) == 3_000_000


def test_jobs_outlast_faults_of_s3_and_meet_a_lack_of_capacity(emulator: RunningEmulator) -> None:
    ask(emulator, "PUT", {"s3": {"error": 0.3}})
    names = [create_job(emulator, f"outlasts-{number}") for number in range(3)]
    for name in names:
        done = wait_for_end(emulator, name)
        assert done["TrainingJobStatus"] == "Completed", done
    ask(emulator, "PUT", {"jobs": {"capacity": 1, "times": 1}})
    failed = wait_for_end(emulator, create_job(emulator, "no-capacity"))
    assert failed["FailureReason"].startswith("CapacityError: Unable to provision requested ML compute capacity.")
    assert wait_for_end(emulator, create_job(emulator, "capacity"))["TrainingJobStatus"] == "Completed"
    ask(emulator, "DELETE")


def test_what_is_sent_to_s3_ends_too_early_and_is_slow(emulator: RunningEmulator) -> None:
    s3 = emulator.client("s3")
    set_faults(emulator, s3={"truncate": 1, "times": 2})  # the client tries twice
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket="faults", Key="cut", Body=b"0123456789" * 300_000)
    assert caught.value.response["Error"]["Code"] == "RequestTimeout"
    assert s3.list_objects_v2(Bucket="faults", Prefix="cut")["KeyCount"] == 0, "nothing of it is stored"
    set_faults(emulator, s3={"truncate": 1, "times": 1, "delay": "150ms"})
    began = time.monotonic()
    s3.put_object(Bucket="faults", Key="cut", Body=b"0123456789" * 300_000)
    assert time.monotonic() - began >= 0.3, "both attempts were slow"
    assert count_struck(emulator, "s3") == {"truncate": 1}
    ask(emulator, "DELETE")
    assert s3.head_object(Bucket="faults", Key="cut")["ContentLength"] == 3_000_000


def test_a_function_times_out_ends_and_is_throttled(emulator: RunningEmulator) -> None:
    """For who waits each shows as on AWS; one that is invoked by an event runs all the same."""
    functions, s3 = emulator.client("lambda"), emulator.client("s3")
    source = (
        "import boto3\n"
        "def handle(event, context):\n"
        "    boto3.client('s3').put_object(Bucket='faults', Key='called/' + event['key'], Body=b'')\n"
        "    return 'called'\n"
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("code.py", source)
    role = emulator.client("iam").create_role(
        RoleName="faulty",
        AssumeRolePolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": "lambda.amazonaws.com"},
                        "Action": "sts:AssumeRole",
                    }
                ],
            }
        ),
    )["Role"]["Arn"]
    function = functions.create_function(
        FunctionName="faulty",
        Runtime="python3.11",
        Handler="code.handle",
        Role=role,
        Timeout=60,
        Code={"ZipFile": content.getvalue()},
    )

    def invoke(kind: str, key: str) -> Any:
        payload = json.dumps({"key": key}).encode()
        return functions.invoke(FunctionName="faulty", InvocationType=kind, Payload=payload)

    for fault, said in (("timeout", "Task timed out after 60.00 seconds"), ("error", "Runtime exited with error")):
        set_faults(emulator, **{"lambda": {fault: 1, "times": 1}})
        answer = invoke("RequestResponse", fault)
        assert answer["FunctionError"] == "Unhandled"
        assert said in json.load(answer["Payload"])["errorMessage"]
    set_faults(emulator, **{"lambda": {"throttle": 1, "times": 2}})  # the client tries twice
    with pytest.raises(functions.exceptions.TooManyRequestsException):
        invoke("RequestResponse", "throttle")
    assert json.load(invoke("RequestResponse", "none")["Payload"]) == "called"
    for fault, times in (("timeout", 2), ("throttle", 5)):
        set_faults(emulator, **{"lambda": {fault: 1, "times": times}})
        invoke("Event", f"later-{fault}")
        wait_until(lambda: s3.list_objects_v2(Bucket="faults", Prefix=f"called/later-{fault}")["KeyCount"], fault)  # noqa: B023
        assert count_struck(emulator, "lambda") == {fault: times}
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket="faults", Prefix="called/")["Contents"]]
    assert keys == ["called/later-throttle", "called/later-timeout", "called/none"]
    functions.delete_function(FunctionName=function["FunctionName"])


def test_events_fail_and_are_sent_again_or_end_in_the_queue_for_them(emulator: RunningEmulator) -> None:
    sqs, events = emulator.client("sqs"), emulator.client("events")
    queues = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("patient", "hasty", "dead")}
    events.put_rule(Name="mine", EventPattern=json.dumps({"source": ["mine"]}))
    arn = "arn:aws:sqs:us-east-1:123456789012:"
    hasty = {"RetryPolicy": {"MaximumRetryAttempts": 0}, "DeadLetterConfig": {"Arn": f"{arn}dead"}}
    patient = {"Id": "patient", "Arn": f"{arn}patient"}

    def send(target: dict[str, Any], times: int) -> None:
        events.put_targets(Rule="mine", Targets=[target])
        set_faults(emulator, events={"error": 1, "times": times})
        events.put_events(Entries=[{"Source": "mine", "DetailType": "x", "Detail": "{}"}])

    def receive(name: str) -> Any:
        return sqs.receive_message(
            QueueUrl=queues[name], MessageAttributeNames=["All"], WaitTimeSeconds=1, MaxNumberOfMessages=10
        ).get("Messages")

    send(patient, 3)
    assert len(wait_until(lambda: receive("patient"))) == 1
    assert count_struck(emulator, "events") == {"error": 3}
    events.remove_targets(Rule="mine", Ids=["patient"])
    send({"Id": "hasty", "Arn": f"{arn}hasty", **hasty}, 1)
    (letter,) = wait_until(lambda: receive("dead"))
    assert "a fault of events" in letter["MessageAttributes"]["ERROR_MESSAGE"]["StringValue"]
    assert not receive("hasty")
    ask(emulator, "DELETE")


# By day, the tests above have each of these faults by itself, and a job beside those of S3.
@pytest.mark.nightly
def test_a_sick_job_is_stopped_whatever_fails_on_the_way(emulator: RunningEmulator) -> None:
    """Deliveries fail, the stop handler is throttled and times out, S3 fails: the stop comes all the same."""
    stage_data(emulator.client("s3"))
    deploy_stop_handler(emulator.client, job_name_prefix="sick")
    sagemaker = emulator.client("sagemaker")
    everywhere = {"s3": {"error": 0.1}, "events": {"error": 0.3}}
    set_faults(emulator, **everywhere)
    sagemaker.create_training_job(**build_job("sick", sick=True))

    def has_begun() -> bool:
        stage = sagemaker.describe_training_job(TrainingJobName="sick")["SecondaryStatus"]
        return stage not in ("Starting", "Pending", "Downloading")

    wait_until(has_begun, "the job's training")
    # An event whose function fails three times is lost, as with AWS: it may fail twice.
    set_faults(emulator, **everywhere, **{"lambda": {"timeout": 0.5, "throttle": 0.5, "times": 2}})
    done = wait_until_ended(emulator, "sick")
    assert done["TrainingJobStatus"] == "Stopped", emulator.log_text()
    assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "IssuesFound"
    assert count_struck(emulator, "s3")["error"] > 0
    assert "Retrying" in emulator.log_text()
    ask(emulator, "DELETE")


def test_a_job_on_spot_instances_continues_from_its_checkpoint(emulator: RunningEmulator) -> None:
    """However often its instances are taken from it, and as soon as it has saved something."""
    script = (
        "import os,pathlib,time;p=pathlib.Path(os.environ.get('SAGEMAKER_BASE_DIR','/opt/ml'))/'checkpoints/epoch';"
        "f=p.exists();print('begins at',f and p.read_text(),flush=True);p.write_text('7');f or time.sleep(999)"
    )
    set_faults(emulator, jobs={"interrupt": 1, "delay": "3s"})
    create_job(
        emulator,
        "spot",
        entrypoint=["python", "-c", script],
        EnableManagedSpotTraining=True,
        CheckpointConfig={"S3Uri": "s3://faults/checkpoints"},
        StoppingCondition={"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 900},
    )
    done = wait_for_end(emulator, "spot")
    ask(emulator, "DELETE")
    assert done["TrainingJobStatus"] == "Completed", done
    stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
    assert stages[:4] == ["Starting", "Downloading", "Training", "Interrupted"]
    assert stages[-5:] == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    # An interrupted job is billed for the time in which it had instances.
    assert 3 <= done["BillableTimeInSeconds"] <= done["TrainingTimeInSeconds"]
    log = read_log(emulator, "spot")
    assert "begins at False" in log
    assert "begins at 7" in log


@pytest.mark.parametrize("asked", [[], {"s3": 1}, {"s3": {}}, {"s3": {"error": 7}}, {"s3": {"errors": 1}}, None])
def test_invalid_faults_are_refused(emulator: RunningEmulator, asked: Any) -> None:
    answer = ask(emulator, "PUT", asked)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


def test_the_command_line_refuses_what_is_none(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["start", "--state-dir", str(tmp_path), "--fault", "s3:error=5"])
    assert done.exit_code == 2
    assert "give a share from 0 to 1" in done.output
