"""Tests of a job, its rule and its stop handler where signatures are required.

Every request has to be signed and allowed.
"""

import json
import ssl
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.gateway.addresses import find_own_address
from sdk_compat.demo.training_job import (
    BUCKET,
    ROLE_ARN,
    build_channels,
    build_request,
    build_script_mode,
    has_ended,
    stage_inputs,
    stage_source,
)
from tests.end_to_end.finished_jobs import wait_for_handler_line
from tests.end_to_end.guarded import KEY, SECRET, Guarded
from tests.end_to_end.test_rules import ENTRY_POINT, TRAINING
from tests.running_emulator import BACK_ENDS
from tests.waiting import wait_until

PROBE = """
import boto3, os
from botocore.exceptions import ClientError
print("I am", boto3.client("sts").get_caller_identity()["Arn"])
for other in ("sick", "probe"):
    try:
        boto3.client("sagemaker").stop_training_job(TrainingJobName=other)
        print("stopped", other)
    except ClientError as error:
        print("not", other, error.response["Error"]["Code"])
print("asks", os.environ["AWS_ENDPOINT_URL"].partition(":")[0], os.path.exists(os.environ["AWS_CA_BUNDLE"]))
print("keys", sorted(value for name, value in os.environ.items() if "SECRET" in name) != [])
raise SystemExit(0)
"""


@pytest.fixture(scope="module", params=BACK_ENDS)
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One that other machines reach: over TLS, and signatures are required without being asked for."""
    emulator = Guarded(tmp_path_factory.mktemp("guarded") / "state", request.param, "--host", find_own_address())
    yield emulator
    emulator.stop()


@pytest.fixture
def guarded_here(tmp_path: Path) -> Iterator[Guarded]:
    """One for this machine alone."""
    emulator = Guarded(tmp_path / "state", "process", "--require-signature")
    yield emulator
    emulator.stop()


@pytest.mark.any_back_end
def test_a_job_its_rule_and_a_function_work_with_their_own_roles(guarded: Guarded, tmp_path: Path) -> None:
    """The function's role may stop the job; the role of another job may not, and has credentials of its own.

    Job, rule and function trust the emulator's certificate, and nothing that was asked went unencrypted.
    """
    assert guarded.endpoint_url.startswith("https://")
    assert guarded.record["endpoint_url"].startswith("https://127.0.0.1:")
    iam, sagemaker, s3 = (guarded.client(each) for each in ("iam", "sagemaker", "s3"))
    stage_inputs(s3)
    trust = {"Version": "2012-10-17", "Statement": []}
    iam.create_role(RoleName=ROLE_ARN.rpartition("/")[2], AssumeRolePolicyDocument=json.dumps(trust))
    allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"]}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_role_policy(RoleName=ROLE_ARN.rpartition("/")[2], PolicyName="data", PolicyDocument=document)
    guarded.run("stop-handler", "deploy")

    s3.put_object(Bucket=BUCKET, Key="code/run.py", Body=TRAINING.encode())
    request = build_request("sick", {})
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ENTRY_POINT
    request["InputDataConfig"] = build_channels({"code": f"s3://{BUCKET}/code/"})
    request["Environment"] = {"WAIT": "600"}
    del request["DebugRuleConfigurations"][1:]
    sagemaker.create_training_job(**request)
    (tmp_path / "probe.py").write_text(PROBE)
    request = build_request("probe", {})
    request["HyperParameters"] = build_script_mode(stage_source(s3, "probe", [tmp_path / "probe.py"]), "probe.py", {})
    del request["DebugHookConfig"], request["DebugRuleConfigurations"]
    sagemaker.create_training_job(**request)

    def find_ended(name: str) -> dict[str, Any] | None:
        description: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
        return description if has_ended(description) else None

    ended: dict[str, Any] = {
        name: wait_until(partial(find_ended, name), name, seconds=400) for name in ("probe", "sick")
    }
    assert ended["probe"]["TrainingJobStatus"] == "Completed", ended["probe"]
    printed = guarded.run("logs", "probe")
    role = ROLE_ARN.rpartition("/")[2]
    assert f"I am arn:aws:sts::123456789012:assumed-role/{role}/probe" in printed
    assert "asks https True" in printed
    assert "not sick AccessDenied" in printed
    assert "not probe AccessDenied" in printed
    assert guarded.record["secret"] not in printed

    sick = ended["sick"]
    assert sick["TrainingJobStatus"] == "Stopped", sick
    rules = {rule["RuleConfigurationName"]: rule for rule in sick["DebugRuleEvaluationStatuses"]}
    assert rules["VanishingGradient"]["RuleEvaluationStatus"] == "IssuesFound", rules
    wait_for_handler_line(guarded.client("logs"), "Stopped sick")
    assert "sick" in guarded.run("jobs")


@pytest.mark.any_back_end
def test_an_unsigned_request_is_refused(guarded: Guarded) -> None:
    check_that_unsigned_requests_are_refused(guarded)


@pytest.mark.nightly  # the files of signed requests and forms have such emulators
def test_an_unsigned_request_is_refused_by_processes_too(guarded_here: Guarded) -> None:
    check_that_unsigned_requests_are_refused(guarded_here)


def check_that_unsigned_requests_are_refused(guarded: Guarded) -> None:
    for name in ("emulator.json", "keys.json"):
        assert stat.S_IMODE((guarded.state_dir / name).stat().st_mode) == 0o600
    for key, secret, code in (
        (KEY, "another", "InvalidSignatureException"),
        ("AKIAOFNOBODY", SECRET, "UnrecognizedClientException"),
        ("123456789012", "123456789012", "InvalidSignatureException"),
        ("smdebug-emulator", "smdebug-emulator", "InvalidSignatureException"),
    ):
        with pytest.raises(ClientError) as refused:
            guarded.client("sagemaker", key, secret).list_training_jobs()
        assert refused.value.response["Error"]["Code"] == code
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        guarded.client("s3", secret="another").list_buckets()
    with pytest.raises(ClientError, match="InvalidClientTokenId"):
        guarded.client("sts", "AKIAOFNOBODY").get_caller_identity()

    trusted = ssl.create_default_context(cafile=guarded.bundle)
    for path in ("/_emulator/health", "/console", "/_emulator/jobs", f"/console?token={'x' * 40}"):
        asked = urllib.request.Request(guarded.endpoint_url + path, headers={"Accept": "text/html"})
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(asked, context=trusted)
        with answer.value as refusal:
            assert refusal.code in (401, 403), path

    opener = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(), urllib.request.HTTPSHandler(context=trusted)
    )
    opener.addheaders = [("Accept", "text/html")]
    with opener.open(guarded.console_link) as page:
        assert page.url == f"{guarded.endpoint_url}/console", "the token is in the cookie, not in the address"
    with opener.open(f"{guarded.endpoint_url}/_emulator/health") as health:
        assert json.load(health)["status"] == "running"
