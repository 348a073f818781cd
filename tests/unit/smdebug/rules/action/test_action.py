"""Tests of rule actions, against moto's SNS and a minimal SageMaker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from smdebug.exceptions import RuleEvaluationConditionMet, SMDebugValueError
from smdebug.rules import Rule
from smdebug.rules.action import Actions, MessageAction, StopTrainingAction
from smdebug.rules.action import message_action as message_module
from smdebug.rules.action import stop_training_action as stop_module
from smdebug.rules.action.action import check_actions
from smdebug.trials import create_trial
from tests.unit.smdebug.runs import RunMaker


class Jobs:
    """SageMaker with some jobs in progress, one a page."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.stopped: list[str] = []

    def get_paginator(self, operation: str) -> Any:
        assert operation == "list_training_jobs"
        return self

    def paginate(
        self,
        NameContains: str,  # noqa: N803 - the wire's names
        StatusEquals: str,  # noqa: N803
        MaxResults: int,  # noqa: N803
    ) -> Iterator[dict[str, Any]]:
        assert StatusEquals == "InProgress"
        for name in self.names:
            if NameContains.lower() in name.lower():
                yield {"TrainingJobSummaries": [{"TrainingJobName": name}]}

    def stop_training_job(self, TrainingJobName: str) -> None:  # noqa: N803
        self.stopped.append(TrainingJobName)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    made = Jobs()
    monkeypatch.setattr(stop_module, "build_client", lambda _service: made)
    return made


@pytest.fixture
def sns(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield boto3.client("sns", "us-east-1")


def stop(prefix: str) -> str:
    return json.dumps({"name": "stoptraining", "training_job_prefix": prefix})


def test_the_one_job_that_fits_is_stopped(jobs: Jobs) -> None:
    jobs.names = ["other-Resnet", "Resnet-1", "vgg"]
    Actions(stop("Resnet"), "R").invoke("why")
    assert jobs.stopped == ["Resnet-1"]


def test_a_prefix_is_not_lower_cased(jobs: Jobs) -> None:
    jobs.names = ["resnet-1", "Resnet-2"]
    Actions(stop("Resnet"), "R").invoke()
    assert jobs.stopped == ["Resnet-2"]


def test_nothing_is_stopped_when_several_jobs_fit(jobs: Jobs, said: pytest.LogCaptureFixture) -> None:
    jobs.names = ["job-1", "job-2"]
    Actions(stop("job"), "R").invoke()
    assert jobs.stopped == []
    assert any("job-1, job-2" in record.message for record in said.records)


def test_a_job_that_starts_later_is_found_when_the_rule_fires(jobs: Jobs, said: pytest.LogCaptureFixture) -> None:
    action = StopTrainingAction("R", "job")
    action.invoke()
    assert jobs.stopped == []
    jobs.names = ["job-1"]
    action.invoke()
    assert jobs.stopped == ["job-1"]


def test_an_address_keeps_its_capitals_and_is_subscribed_once(sns: Any) -> None:
    text = json.dumps({"name": "Email", "endpoint": "Some.Body@Example.com"})
    Actions(text, "R").invoke("step 3")
    Actions(text, "R").invoke("step 4")
    (topic,) = sns.list_topics()["Topics"]
    assert topic["TopicArn"].endswith(":SMDebugRules")
    (subscription,) = sns.list_subscriptions()["Subscriptions"]
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "Some.Body@Example.com")
    attributes = sns.get_subscription_attributes(SubscriptionArn=subscription["SubscriptionArn"])["Attributes"]
    assert json.loads(attributes["FilterPolicy"]) == {"email": ["Some.Body@Example.com"]}


def test_what_is_published_names_the_rule(sns: Any) -> None:
    action = MessageAction("VanishingGradient", "sms", "+15555550100")
    action.invoke("at step 3")
    sent = action._last_send_mesg_response
    assert sent["MessageId"]
    assert (action._topic_name, action._protocol, action._rule_name) == ("SMDebugRules", "sms", "VanishingGradient")
    assert action._last_subscription_response is not None
    assert MessageAction("R", "sms", "+15555550100")._last_subscription_response is None


def test_several_actions_and_one_that_fails(
    jobs: Jobs, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(service: str) -> None:
        raise RuntimeError("no SNS today")

    monkeypatch.setattr(message_module, "build_client", refuse)
    jobs.names = ["job-1"]
    text = f'[{{"name": "email", "endpoint": "a@b"}}, {stop("job")}]'
    Actions(text, "R").invoke()
    assert jobs.stopped == ["job-1"]
    assert any("no SNS today" in record.message for record in said.records)


def test_an_error_of_sagemaker_is_logged(
    jobs: Jobs, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.names = ["job-1"]

    def refuse(**_: Any) -> None:
        raise RuntimeError("throttled")

    monkeypatch.setattr(jobs, "stop_training_job", refuse)
    Actions(stop("job"), "R").invoke()
    assert any("throttled" in record.message for record in said.records)


@pytest.mark.parametrize("text", [None, "", "   ", "[]"])
def test_no_action(text: str | None, jobs: Jobs, sns: Any, said: pytest.LogCaptureFixture) -> None:
    jobs.names = ["job-1"]
    Actions(text, "R").invoke()
    assert (jobs.stopped, sns.list_topics()["Topics"], said.records) == ([], [], [])


@pytest.mark.parametrize(
    ("text", "said_of_it"),
    [
        ('"email"', "JSON object"),
        ('{"name": "fax", "endpoint": "1"}', "there is no action 'fax'"),
        ('{"name": "sms"}', "needs endpoint"),
        ('{"name": "stoptraining"}', "needs training_job_prefix"),
    ],
)
def test_what_is_not_an_action_is_reported_and_left_out(
    text: str, said_of_it: str, said: pytest.LogCaptureFixture
) -> None:
    Actions(text, "R").invoke()
    assert any(said_of_it in record.message for record in said.records)


def test_text_that_is_not_json() -> None:
    with pytest.raises(json.JSONDecodeError):
        Actions("{", "R")


class Fires(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return step == 1


def test_a_rule_carries_out_its_actions_when_its_condition_is_met(jobs: Jobs, tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("w", {0: 1.0, 1: 2.0})
    run.end()
    jobs.names = ["job-1"]
    rule = Fires(create_trial(str(tmp_path)), stop("job"))
    rule.invoke(0)
    assert jobs.stopped == []
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(1)
    assert jobs.stopped == ["job-1"]


def test_actions_as_the_sdk_writes_them(jobs: Jobs, sns: Any) -> None:
    from smdebug_rulesconfig.actions.actions import SMS, ActionList, Email, StopTraining

    jobs.names = ["resnet-1"]
    text = ActionList(StopTraining("resnet"), Email("a@b.com"), SMS("+15550100")).serialize()
    assert '\\"name\\"' in text
    check_actions(text)
    Actions(text, "R").invoke("because")
    assert jobs.stopped == ["resnet-1"]
    (topic,) = sns.list_topics()["Topics"]
    subscribed = sns.list_subscriptions_by_topic(TopicArn=topic["TopicArn"])["Subscriptions"]
    assert [(each["Protocol"], each["Endpoint"]) for each in subscribed] == [("email", "a@b.com"), ("sms", "+15550100")]


def test_parameters_in_an_object_of_their_own(jobs: Jobs) -> None:
    jobs.names = ["resnet-1"]
    Actions('[{"name": "stoptraining", "parameters": {"training_job_prefix": "resnet"}}]', "R").invoke()
    assert jobs.stopped == ["resnet-1"]


def test_text_that_is_not_json_in_either_form() -> None:
    for text in ("{", '[{\\"name\\": }]'):
        with pytest.raises(SMDebugValueError, match="are not JSON"):
            check_actions(text)
