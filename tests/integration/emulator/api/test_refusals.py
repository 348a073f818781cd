"""Requests that the emulator's own API refuses, with a sentence on what to send."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from sdk_compat.demo.training_job import RULES_IMAGE, build_rule, build_training_job
from tests.boto3_client import make_client
from tests.forked_emulator import ForkedEmulator
from tests.waiting import has_ended, wait_until

BUCKET = "refusals"
CUSTOM_RULE = (
    "Overfit is a custom rule: its code runs in containers only. Create a job with the new parameters, or run it on "
    "the trial in a script of your own."
)
RETRY = "jobs/us-east-1/{}/rules/Overfit/retry"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedEmulator]:
    """An emulator with a job that saves nothing and failed at once, and one with a rule that runs on."""
    with ForkedEmulator(tmp_path_factory.mktemp("refusals") / "state", runtime="process") as started:
        make_client(started.endpoint_url, "s3").create_bucket(Bucket=BUCKET)
        sagemaker = make_client(started.endpoint_url, "sagemaker")
        bare = build_job("bare", "nobody-built:1")
        del bare["DebugHookConfig"], bare["DebugRuleConfigurations"]
        sagemaker.create_training_job(**bare)
        sagemaker.create_training_job(**build_job("failed", "nobody-built:1", rules=[build_rule("Overfit")]))
        endless = build_job("endless", RULES_IMAGE, rules=[build_rule("Overfit")])
        endless["AlgorithmSpecification"]["ContainerEntrypoint"] = ["sleep", "600"]
        sagemaker.create_training_job(**endless)
        for name in ("bare", "failed"):
            wait_until(lambda: has_ended(sagemaker.describe_training_job(TrainingJobName=name)))  # noqa: B023
        yield started


def build_job(name: str, image: str, **members: Any) -> dict[str, Any]:
    return build_training_job(
        name, image=image, hyperparameters={}, channels=(), collections={}, bucket=BUCKET, **members
    )


def ask(emulator: ForkedEmulator, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answer = urllib3.request(method, f"{emulator.endpoint_url}/_emulator/{path}", body=json.dumps(body), retries=False)
    return answer.status, answer.json()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "prune?keepBytes=lots", None, 400, "keepBytes is 'lots': give a whole number."),
        ("POST", "prune?dryRun=yes", None, 400, "dryRun is 'yes': use 0 or 1."),
        ("POST", "reset?keep=yes", None, 400, "keep is 'yes': use 0 or 1."),
        (
            "POST",
            "reset?jobNamePrefix=",
            None,
            400,
            "jobNamePrefix is empty: give a prefix, or leave it out to forget everything.",
        ),
        (
            "PUT",
            "faults",
            {"s3": 0.5},
            400,
            'Give an object of scopes, such as {"s3": {"error": 0.1, "delay": "200ms"}}.',
        ),
        (
            "GET",
            "jobs/us-east-1/bare/tensors",
            None,
            404,
            "bare saves no tensors: it was created without a DebugHookConfig.",
        ),
        (
            "GET",
            "jobs/us-east-1/bare/profile",
            None,
            404,
            "bare is not profiled: it was created without a ProfilerConfig.",
        ),
        ("POST", RETRY.format("bare"), {"parameters": {}}, 404, "bare has no rule Overfit."),
        ("POST", RETRY.format("failed"), ["patience"], 400, 'Send JSON such as {"parameters": {"threshold": "0.01"}}.'),
        (
            "POST",
            RETRY.format("failed"),
            {"parameters": {"source_s3_uri": "s3://b/rule.py"}},
            400,
            CUSTOM_RULE,
        ),
        (
            "POST",
            RETRY.format("endless"),
            {"parameters": {}},
            400,
            "endless has not ended: wait for its end, then try the rule again.",
        ),
        (
            "GET",
            "pipeline-executions/us-east-1/none",
            None,
            404,
            "There is no pipeline execution none in us-east-1.",
        ),
    ],
)
def test_what_to_send_instead_is_said(
    method: str, path: str, body: Any, status: int, said: str, emulator: ForkedEmulator
) -> None:
    answered, content = ask(emulator, method, path, body)
    assert (answered, content["error"]) == (status, said)


@pytest.mark.slow
def test_what_is_refused_changes_nothing(emulator: ForkedEmulator) -> None:
    status, faults = ask(emulator, "PUT", "faults", {"sqs": {"delay": "1ms"}})
    assert (status, faults["sqs"]["delay"]) == (200, 0.001)
    assert ask(emulator, "PUT", "faults", {"sqs": {"error": 2}})[0] == 400
    assert ask(emulator, "GET", "faults") == (200, faults)
    assert ask(emulator, "DELETE", "faults") == (200, {})
    assert ask(emulator, "GET", "faults") == (200, {})
    for path in ("reset?keep=yes", "reset?jobNamePrefix=", "prune?dryRun=yes"):
        ask(emulator, "POST", path)
    assert ask(emulator, "GET", "jobs/us-east-1/bare")[0] == 200
