"""Tests of sent events and messages, kept in the store."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from click.testing import CliRunner
from moto import mock_aws

from emulator.cli.commands import main
from emulator.events.sent_messages import SNS, SentMessage, format_sent, read_sent, record_message
from emulator.exceptions import StartupError
from emulator.jobs.store import transaction as transaction_module
from emulator.jobs.store.store import JobStore
from emulator.moto_services.sns import PublishedMessage, capture_published
from emulator.state.job_stores import name_store
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    opened = JobStore(tmp_path / "jobs.sqlite")
    yield opened
    opened.close()


def show(folder: Path, *arguments: str) -> list[str]:
    done = CliRunner().invoke(main, ["events", "--state-dir", str(folder), *arguments])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


@pytest.mark.slow
def test_events_of_a_job_are_shown_newest_last(harness: JobHarness) -> None:
    harness.run(
        harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=[harness.rule("Fires", "fire")])
    )
    harness.jobs.close()  # what is stored is published right after
    folder = harness.settings.state_dir
    lines = show(folder)
    assert len(lines) == len(harness.publisher.events)
    assert "EventBridge  training job job  InProgress/Starting  Fires InProgress" in lines[0]
    assert any("training job job  Completed/Completed" in line for line in lines)
    (fired,) = [line for line in lines if "Completed  RuleEvaluationConditionMet: Evaluation of the rule X" in line]
    assert "processing job job-Fires-" in fired
    assert show(folder, "--limit", "2") == lines[-2:]
    found = [json.loads(line) for line in show(folder, "--json")]
    assert [each["Content"] for each in found] == harness.publisher.events
    assert [each["Sequence"] for each in found] == sorted(each["Sequence"] for each in found)
    assert {(each["Service"], each["Region"]) for each in found} == {("EventBridge", REGION)}


@pytest.mark.parametrize("said_by", ["option", "variable"])
def test_each_account_has_what_was_sent_for_it(tmp_path: Path, said_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for account in ("123456789012", "222222222222"):
        opened = JobStore(tmp_path / name_store(account))
        message: dict[str, Any] = {
            "Destination": "arn:x:topic",
            "Endpoints": [],
            "Subject": None,
            "Message": f"of {account}",
        }
        opened.messages.add_sent(SNS, REGION, message, 0)
        opened.close()
    assert "of 123456789012" in " ".join(show(tmp_path))
    if said_by == "variable":
        monkeypatch.setenv("SMDEBUG_EMULATOR_ACCOUNT_ID", "222222222222")
    (line,) = show(tmp_path, *(["--account", "222222222222"] if said_by == "option" else []))
    assert line.endswith("of 222222222222")


def test_what_sns_accepts_is_kept_with_those_it_is_for(store: JobStore, tmp_path: Path) -> None:
    with mock_aws():
        sns: Any = boto3.client("sns", REGION, aws_access_key_id="x", aws_secret_access_key="x")
        topic = sns.create_topic(Name="SMDebugRules")["TopicArn"]
        for address in ("a@b.example", "c@d.example"):
            sns.subscribe(
                TopicArn=topic,
                Protocol="email",
                Endpoint=address,
                Attributes={"FilterPolicy": json.dumps({"email": [address]})},
            )
        with capture_published(lambda message: record_message(store.messages.add_sent, message)):
            attributes = {"email": {"DataType": "String", "StringValue": "a@b.example"}}
            sns.publish(TopicArn=topic, Subject="It fired", Message="at\nstep 3", MessageAttributes=attributes)
            sns.publish(PhoneNumber="+15550100", Message="hello")
        sns.publish(TopicArn=topic, Message="seen by nobody")
    first, second = read_sent(tmp_path / "jobs.sqlite")
    assert first.content["Endpoints"] == [["email", "a@b.example"]]
    assert format_sent(first).endswith("SNS          SMDebugRules → email a@b.example  It fired  at step 3")
    assert (second.content["Destination"], second.content["Endpoints"]) == ("+15550100", [])
    assert read_sent(tmp_path / "jobs.sqlite", after=first.sequence) == [second]


def test_the_oldest_are_forgotten(store: JobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_module, "KEPT_MESSAGES", 5)
    monkeypatch.setattr(transaction_module, "_FORGET_EVERY", 4)
    for number in range(12):
        store.messages.add_sent(SNS, REGION, {"number": number}, number)
    assert [each.content["number"] for each in read_sent(tmp_path / "jobs.sqlite")] == [7, 8, 9, 10, 11]


def follow(state_dir: Path, monkeypatch: pytest.MonkeyPatch, *events: Callable[[], object]) -> list[str]:
    """Follow what is sent; one event happens before each look, and Ctrl-C comes after the last. Return the numbers."""
    left = iter(events)

    def pause(_seconds: float) -> None:
        happen = next(left, None)
        if happen is None:
            raise KeyboardInterrupt
        happen()

    monkeypatch.setattr("emulator.cli.data.events.time.sleep", pause)
    return [line.rpartition("message ")[2].strip() for line in show(state_dir, "--follow")]


def test_following(store: JobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes while it is followed is shown; Ctrl-C ends it."""

    def publish(number: int) -> None:
        record_message(
            store.messages.add_sent, PublishedMessage(REGION, "id", "arn:topic", f"message {number}", "", ())
        )

    publish(0)
    shown = follow(tmp_path, monkeypatch, lambda: publish(1), lambda: None, lambda: publish(2))
    assert shown == ["0", "1", "2"]


def test_following_goes_on_while_the_store_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an import does it, which counts from 1 again."""
    path = tmp_path / "jobs.sqlite"

    def write(*texts: str) -> None:
        store = JobStore(path)
        for text in texts:
            record_message(store.messages.add_sent, PublishedMessage(REGION, "id", "arn:topic", text, "", ()))
        store.close()

    write("message 0", "message 1")
    shown = follow(tmp_path, monkeypatch, path.unlink, lambda: None, lambda: write("message 2"))
    assert shown == ["0", "1", "2"]


def test_following_ends_where_the_store_does_not_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.sqlite"
    JobStore(path).close()
    monkeypatch.setattr("emulator.cli.data.events._REPLACEMENT_SECONDS", 0)
    monkeypatch.setattr("emulator.cli.data.events.time.sleep", lambda _: path.unlink(missing_ok=True))
    done = CliRunner().invoke(main, ["events", "--follow", "--state-dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "cannot be read as a job store" in done.output


def test_the_only_account_of_a_stopped_emulator_need_not_be_named(tmp_path: Path) -> None:
    of_other = JobStore(tmp_path / "jobs-222222222222.sqlite")
    record_message(
        of_other.messages.add_sent, PublishedMessage(REGION, "id", "arn:topic", "of the other account", "", ())
    )
    of_other.close()
    (line,) = show(tmp_path)
    assert "of the other account" in line


def test_without_a_store(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["events", "--state-dir", str(tmp_path / "none")])
    assert done.exit_code == 1
    assert "No emulator is running on the state folder" in done.output
    assert "smdebug-emulator start" in done.output
    (tmp_path / "jobs.sqlite").write_text("no database")
    done = CliRunner().invoke(main, ["events", "--state-dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "cannot be read as a job store" in done.output
    other = CliRunner().invoke(main, ["events", "--state-dir", str(tmp_path), "--account", "222222222222"])
    assert other.exit_code == 1
    assert other.output.startswith("Nothing was sent for the account 222222222222 from the state folder")
    with pytest.raises(StartupError):
        read_sent(tmp_path / "none.sqlite")


def test_of_what_a_rule_said_the_line_has_what_happened() -> None:
    detail = {
        "ProcessingJobName": "job-Rule-1",
        "ProcessingJobStatus": "Completed",
        "ExitMessage": "It fired.\nWhat to do",
    }
    shown = format_sent(SentMessage(1, 0, "EventBridge", "us-east-1", {"detail": detail}))
    assert shown.endswith("processing job job-Rule-1  Completed  It fired.")


@pytest.mark.parametrize(
    ("detail", "line"),
    [
        (
            {"HyperParameterTuningJobName": "tuned", "HyperParameterTuningJobStatus": "Completed"},
            "tuning job tuned  Completed",
        ),
        (
            {
                "pipelineExecutionArn": "arn:aws:sagemaker:us-east-1:123456789012:pipeline/steps/execution/abc",
                "currentPipelineExecutionStatus": "Succeeded",
            },
            "pipeline steps/execution/abc  Succeeded",
        ),
    ],
)
def test_events_of_tuning_jobs_and_pipelines_have_lines(detail: dict[str, Any], line: str) -> None:
    assert format_sent(SentMessage(1, 0, "EventBridge", "us-east-1", {"detail": detail})).endswith(line)
