"""Offline demo: training, capture, rule evaluation, events, and a stopped job.

Starts an emulator, puts real handwritten digits into S3, deploys the stop handler, and runs two training jobs: one
whose gradients really vanish and the same job made healthy. Prints what happens as the events arrive, then a table.

Exit code 0 only if the sick job was stopped by the handler with IssuesFound and the healthy one completed with
NoIssuesFound for every rule.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import ConnectionClosedError, EndpointConnectionError
from rich.console import Console
from rich.table import Table

from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.demo.training_job import BUCKET, HEALTHY, SICK, build_request, has_ended, stage_inputs
from sdk_compat.emulator_process import EmulatorProcess, EmulatorStartError

console = Console(highlight=False, soft_wrap=True)
TIME_LIMIT_SECONDS = 600
# Imported while the demo prepares its jobs.
# Of the rules' image two, because each job has two rules.
_WARM = "pytorch-training,sagemaker-debugger-rules,sagemaker-debugger-rules,lambda"
_END_SECONDS = 60
# The exit code of a program that Ctrl-C ended.
_INTERRUPTED = 130
LOG_SECONDS = 10  # a function's log lines appear a moment after they are printed


@dataclass
class Observed:
    """The state of one job as reported by its events.

    Attributes:
        description: the detail of the newest event.
        events: the number of events received.
    """

    description: dict[str, Any] = field(default_factory=dict)
    events: int = 0


def main() -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", default="auto", help="container back end")
    parser.add_argument("--output", type=Path, default=Path(".demo"), help="folder for state and tensors")
    parser.add_argument("--stay", action="store_true", help="leave the emulator running until Ctrl-C")
    args = parser.parse_args()

    clear_output(args.output)
    try:
        with EmulatorProcess(args.output / "state", runtime=args.runtime, warm=_WARM) as emulator:
            console.print(f"[dim]{emulator.first_line}[/dim]")
            try:
                exit_code = run_demo(emulator.endpoint_url, args.output)
            except (EndpointConnectionError, ConnectionClosedError):
                # A traceback of the client would not show that the emulator has ended.
                code = emulator.process.wait(timeout=_END_SECONDS)
                raise SystemExit(describe_end(emulator, code)) from None
            if args.stay:
                wait_for_interrupt(emulator)
            return exit_code
    except EmulatorStartError as error:
        raise SystemExit(f"The emulator did not start: {error}") from error
    except KeyboardInterrupt:
        console.print("\nInterrupted.")
        return _INTERRUPTED


def clear_output(output: Path) -> None:
    """Create the folder, or remove what an earlier demo wrote to it.

    Raises:
        SystemExit: the folder has other files, which may be the user's only copies.
    """
    output.mkdir(parents=True, exist_ok=True)
    names = {each.name for each in output.iterdir()}
    written = {"state.log", "state", "tensors"} if "state" in names else {"state.log"}
    if others := sorted(names - written):
        raise SystemExit(
            f"{output} has files that no demo wrote, such as {others[0]}: give another folder with --output."
        )
    for each in ("state", "tensors"):
        shutil.rmtree(output / each, ignore_errors=True)


def wait_for_interrupt(emulator: EmulatorProcess) -> None:
    """Keep the emulator and its console running until Ctrl-C.

    Raises:
        SystemExit: the emulator ended by itself.
    """
    console.print(f"\nThe console stays open at {emulator.endpoint_url}/console until Ctrl-C.")
    with suppress(KeyboardInterrupt):
        code = emulator.process.wait()
        raise SystemExit(describe_end(emulator, code))


def describe_end(emulator: EmulatorProcess, code: int) -> str:
    """Build the message that the emulator ended by itself, with the last lines of its log."""
    last = "".join(f"\n  {line}" for line in emulator.log_text().splitlines()[-5:])
    return f"The emulator ended (exit code {code}); its log is {emulator.log_path}.{last}"


def run_demo(endpoint: str, output: Path) -> int:
    """Run both jobs on the emulator at ``endpoint`` and return the exit code."""
    client = EmulatorSession(endpoint).client
    sagemaker, s3 = client("sagemaker"), client("s3")
    console.print("Putting 1,797 handwritten digits and the training script into S3 ...")
    stage_inputs(s3)
    queue_url = watch_events(client("sqs"), client("events"))
    # The handler is part of the emulator, whose command deploys it.
    deploy = [sys.executable, "-P", "-m", "emulator", "stop-handler", "deploy", "--endpoint-url", endpoint]
    subprocess.run(deploy, check=True)

    started = time.monotonic()
    observed = {"digits-sick": Observed(), "digits-healthy": Observed()}
    sagemaker.create_training_job(**build_request("digits-sick", SICK))
    healthy = build_request("digits-healthy", HEALTHY)

    console.print(f"\nSee it in a browser: [bold]{endpoint}/console[/bold]")
    console.print(
        "  digits-sick's rule VanishingGradient turns to IssuesFound while the page is open; its plot is below it."
    )
    console.print("  Tensors of digits-healthy, heat map: the gradients of each layer over the steps.")
    console.print("  Choose both jobs and Compare: their losses, and the hyperparameters that differ.")
    console.print("\n[bold]Timeline[/bold] (each line is an EventBridge event)")
    for detail in receive_events(client("sqs"), queue_url, deadline=started + TIME_LIMIT_SECONDS):
        job = observed.get(detail["TrainingJobName"])
        if job is None:
            continue
        print_change(time.monotonic() - started, job.description, detail)
        job.events += 1
        job.description = detail
        # One after the other: on two cores, the imports of the second would delay what the first shows.
        if healthy and has_ended(detail):
            sagemaker.create_training_job(**healthy)
            healthy = {}
        if all(has_ended(each.description) for each in observed.values()):
            break

    if healthy:
        console.print(f"\n[red]digits-sick and its rules have not ended within {TIME_LIMIT_SECONDS:g} s.[/red]")
        return 1
    for name in observed:
        download_tensors(s3, name, output / "tensors" / name)
    print_table(sagemaker, observed, output)
    return judge(sagemaker, by_handler=handler_stopped(client("logs"), "digits-sick"))


def watch_events(sqs: Any, events: Any) -> str:
    """Create an SQS queue that receives all training job events, and return its URL."""
    queue_url: str = sqs.create_queue(QueueName="digits-demo-events")["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]
    pattern = {"source": ["aws.sagemaker"], "detail-type": ["SageMaker Training Job State Change"]}
    events.put_rule(Name="digits-demo-events", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="digits-demo-events", Targets=[{"Id": "queue", "Arn": attributes["QueueArn"]}])
    return queue_url


def receive_events(sqs: Any, queue_url: str, deadline: float) -> Iterator[dict[str, Any]]:
    """Yield the detail of each event until ``deadline`` (monotonic seconds)."""
    while time.monotonic() < deadline:
        messages = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        for message in messages.get("Messages", []):
            sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
            yield json.loads(message["Body"])["detail"]


def print_change(seconds: float, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Print what has changed since the previous event: the job's secondary status and the statuses of its rules."""
    name = now["TrainingJobName"]
    if now["SecondaryStatus"] != before.get("SecondaryStatus"):
        message = now.get("SecondaryStatusTransitions", [{}])[-1].get("StatusMessage", "").partition(". ")[0]
        console.print(f"  {seconds:6.1f} s  {name:<15} {now['SecondaryStatus']:<12} [dim]{message}[/dim]")
    rules_before = {
        rule["RuleConfigurationName"]: rule["RuleEvaluationStatus"]
        for rule in before.get("DebugRuleEvaluationStatuses", [])
    }
    colours = {"IssuesFound": "red", "NoIssuesFound": "green", "Error": "red"}
    for rule in now.get("DebugRuleEvaluationStatuses", []):
        status, rule_name = rule["RuleEvaluationStatus"], rule["RuleConfigurationName"]
        if status != rules_before.get(rule_name):
            colour = colours.get(status, "default")
            console.print(f"  {seconds:6.1f} s  {name:<15}   rule {rule_name}: [{colour}]{status}[/{colour}]")


def download_tensors(s3: Any, job: str, folder: Path) -> None:
    """Download a job's tensors from S3."""
    prefix = f"tensors/{job}/debug-output/"
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix):
        for item in page.get("Contents", []):
            path = folder / item["Key"].removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(BUCKET, item["Key"], str(path))


def handler_stopped(logs: Any, job: str) -> bool:
    """Return whether the Lambda function's log shows that it stopped ``job``."""
    deadline = time.monotonic() + LOG_SECONDS
    while True:
        groups = logs.describe_log_groups(logGroupNamePrefix="/aws/lambda/")["logGroups"]
        for group in groups:
            query = {"logGroupName": group["logGroupName"], "filterPattern": f'"Stopped {job}"'}
            if logs.filter_log_events(**query)["events"]:
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)


def print_table(sagemaker: Any, observed: dict[str, Observed], output: Path) -> None:
    """Print the results of the jobs and their rules, and the locations of the tensors."""
    # Without lines and with one space between columns, the table fits into 80 columns.
    table = Table(title="Results", title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in ("Job", "Status", "Secondary", "Rule", "Verdict", "Step", "Events"):
        table.add_column(column, no_wrap=True)
    places = []
    for name, job in observed.items():
        described = sagemaker.describe_training_job(TrainingJobName=name)
        rules = described.get("DebugRuleEvaluationStatuses", [])
        table.add_row(
            name,
            described["TrainingJobStatus"],
            described["SecondaryStatus"],
            "\n".join(rule["RuleConfigurationName"] for rule in rules),
            "\n".join(rule["RuleEvaluationStatus"] for rule in rules),
            "\n".join(find_step(rule) for rule in rules),
            str(job.events),
        )
        uri = f"{described['DebugHookConfig']['S3OutputPath']}/{name}/debug-output"
        places += [f"  {uri}", f"  [dim]copied to[/dim] {output / 'tensors' / name}"]
    console.print()
    console.print(table)
    console.print("Tensors:", *places, sep="\n")
    console.print()


def find_step(rule: dict[str, Any]) -> str:
    """Return the step that a rule's StatusDetails names, or a dash."""
    found = re.search(r"at step (\d+)", rule.get("StatusDetails", ""))
    return found.group(1) if found else "-"


def judge(sagemaker: Any, *, by_handler: bool) -> int:
    """Print whether all results are as expected, and return the exit code."""
    sick = sagemaker.describe_training_job(TrainingJobName="digits-sick")
    healthy = sagemaker.describe_training_job(TrainingJobName="digits-healthy")
    rules = {r["RuleConfigurationName"]: r["RuleEvaluationStatus"] for r in sick["DebugRuleEvaluationStatuses"]}
    checks = {
        "the sick job was Stopped": sick["TrainingJobStatus"] == "Stopped",
        "VanishingGradient found it": rules["VanishingGradient"] == "IssuesFound",
        "the stop handler stopped it": by_handler,
        "the healthy job Completed": healthy["TrainingJobStatus"] == "Completed",
        "no rule found anything in it": all(
            rule["RuleEvaluationStatus"] == "NoIssuesFound" for rule in healthy["DebugRuleEvaluationStatuses"]
        ),
    }
    for text, true in checks.items():
        console.print(f"  [{'green' if true else 'red'}]{'yes' if true else 'NO '}[/]  {text}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
