"""Tests of rules with actions, custom rules and failing rules.

The training beside them saves a few numbers.
"""

import json
import os
import time
from typing import Any

import pytest

from tests.commands import run_command
from tests.running_emulator import RunningEmulator
from tests.waiting import ENDED, wait_until

BUCKET = "rules-end-to-end"
IMAGE = "pytorch-training:2.13.0-cpu-py311"
BUILT_IN, CUSTOM = "sagemaker-debugger-rules:latest", "sagemaker-debugger-rule-evaluator:latest"

# Saves a gradient and a loss at each step; where it is told to, it waits to be stopped after the last one.
TRAINING = """
import json, os, sys, time
import numpy as np
from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.mode_keys import ModeKeys
from smdebug.writing.file_writer import FileWriter
folder = json.load(open(os.environ["SMDEBUG_CONFIG_FILE_PATH"]))["LocalPath"]
manager = CollectionManager()
manager.add(Collection("gradients", include_regex="^gradient"))
manager.add(Collection("losses", include_regex="loss"))
manager.set_num_workers(1)
manager.export(folder, "worker_0_collections.json")
for step, (gradient, loss) in enumerate([(1.0, 1.0), (1.0, 2.0), (1.0, 3.0), (1e-9, 4.0)]):
    with FileWriter(folder, "worker_0", step, mode=ModeKeys.TRAIN) as writer:
        writer.write_tensor(np.full(4, gradient, np.float32), "gradient/fc.weight", mode=ModeKeys.TRAIN, mode_step=step)
        writer.write_tensor(np.float32(loss), "loss", mode=ModeKeys.TRAIN, mode_step=step)
print("saved", flush=True)
time.sleep(float(os.environ["WAIT"]))
"""
# An entry point holds short words only, so the script comes by a channel; without mounts /opt/ml is elsewhere.
ENTRY_POINT = [
    "python",
    "-c",
    "import os, runpy; runpy.run_path(os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml') + '/input/data/code/run.py')",
]

OWN_RULE = """
import threading
from smdebug.rules import Rule

class LossTooHigh(Rule):
    def __init__(self, base_trial, limit: float = 1.0):
        super().__init__(base_trial)
        self.limit = limit

    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss").value(step).item()
        self.watch("loss", step, loss, self.limit, tensor="loss")
        return loss > self.limit

class Waits(LossTooHigh):
    def invoke_at_step(self, step):
        threading.Event().wait()

class Exits(LossTooHigh):
    def invoke_at_step(self, step):
        print("out of patience", flush=True)
        raise SystemExit(3)

class Raises(LossTooHigh):
    def invoke_at_step(self, step):
        raise ZeroDivisionError("the limit is nothing")

"""


@pytest.fixture(scope="module")
def alone(alone: RunningEmulator) -> RunningEmulator:
    """With the script that its jobs run."""
    alone.client("s3").create_bucket(Bucket=BUCKET)
    alone.client("s3").put_object(Bucket=BUCKET, Key="code/run.py", Body=TRAINING.encode())
    return alone


def describe(emulator: RunningEmulator, name: str) -> dict[str, Any]:
    found: dict[str, Any] = emulator.client("sagemaker").describe_training_job(TrainingJobName=name)
    return found


def read_rules(emulator: RunningEmulator, name: str) -> dict[str, tuple[str, str]]:
    return {
        rule["RuleConfigurationName"]: (rule["RuleEvaluationStatus"], rule.get("StatusDetails", ""))
        for rule in describe(emulator, name)["DebugRuleEvaluationStatuses"]
    }


def wait_for(emulator: RunningEmulator, name: str, *, but: frozenset[str] = frozenset()) -> dict[str, tuple[str, str]]:
    """Wait until the job and all its rules have ended, but for some of these."""

    def ended() -> bool:
        running = {
            rule for rule, (status, _) in read_rules(emulator, name).items() if status in {"InProgress", "Stopping"}
        }
        return describe(emulator, name)["TrainingJobStatus"] in ENDED and running <= but

    wait_until(ended, f"{name}: {read_rules(emulator, name)}")
    return read_rules(emulator, name)


def read_output(emulator: RunningEmulator, job: str, rule: str) -> dict[str, bytes]:
    prefix = f"output/{job}/rule-output/{rule}/"
    s3 = emulator.client("s3")

    def keys() -> list[str]:
        return [each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())]

    wait_until(lambda: len(keys()) >= 2, f"the files of {rule}")
    return {key.removeprefix(prefix): s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys()}


def show_events(emulator: RunningEmulator, *arguments: str) -> list[str]:
    return run_command("events", "--state-dir", str(emulator.state_dir), *arguments).stdout.splitlines()


@pytest.mark.any_back_end
def test_rules_with_actions_and_a_custom_rule(alone: RunningEmulator) -> None:
    """The rule that fires stops the job and tells two people; the other judges all that was saved until then.

    How SDKs send actions and a custom rule is in ``clients/``.
    """
    job = f"rules-{os.getpid()}"
    alone.client("s3").put_object(Bucket=BUCKET, Key="own/own_rule.py", Body=OWN_RULE.encode())
    actions = [
        {"name": "stoptraining", "training_job_prefix": job},
        {"name": "email", "endpoint": "ops@example.com"},
        {"name": "sms", "endpoint": "+15550100"},
    ]
    rules_of_job = [built_in("VanishingGradient", action_json=json.dumps(actions)), custom("LossTooHigh", limit="2.5")]
    request = build_request(job, rules_of_job)
    request["Environment"] = {"WAIT": "600"}
    alone.client("sagemaker").create_training_job(**request)
    rules = wait_for(alone, job)
    assert describe(alone, job)["TrainingJobStatus"] == "Stopped"
    assert {name: status for name, (status, _) in rules.items()} == dict.fromkeys(
        ("VanishingGradient", "LossTooHigh"), "IssuesFound"
    )
    assert "gradient/fc.weight at step 3 (mode TRAIN, mode step 3), worker_0" in rules["VanishingGradient"][1]

    (group,) = {
        group["logGroupName"]
        for group in alone.client("logs").describe_log_groups(logGroupNamePrefix="/aws/sagemaker/Proc")["logGroups"]
    }
    wanted = [f"stops training job {job}", "sent email to ops@example.com", "sent sms to +15550100"]

    def is_said() -> bool:
        found = alone.client("logs").filter_log_events(logGroupName=group, filterPattern='"Rule VanishingGradient"')
        said = "\n".join(event["message"] for event in found["events"])
        return all(text in said for text in wanted)

    # The last lines of a rule's log may come after its verdict.
    wait_until(is_said, f"{wanted} in the rule's log")
    lines = show_events(alone)
    sent = [line for line in lines if "SNS" in line]
    assert [line.partition("→ ")[2].partition("  ")[0] for line in sent] == ["email ops@example.com", "sms +15550100"]
    assert all(
        "SMDebugRule:VanishingGradient fired" in line and "gradient/fc.weight at step 3" in line for line in sent
    )
    assert any(f"training job {job}  Stopped/Stopped" in line for line in lines)
    assert json.loads(show_events(alone, "--json", "--limit", "1")[0])["Service"] == "EventBridge"

    files = read_output(alone, job, "VanishingGradient")
    assert set(files) == {"report.json", "plot.svg"}
    report = json.loads(files["report.json"])
    assert report["Finding"]["Threshold"] == 1e-7
    assert report["Series"][0]["Steps"] == [0, 1, 2, 3]
    own = json.loads(read_output(alone, job, "LossTooHigh")["report.json"])
    assert (own["Finding"], own["Series"][0]["Values"]) == (None, [1.0, 2.0, 3.0])
    listed = alone.client("sagemaker").list_processing_jobs(NameContains=job[:20])["ProcessingJobSummaries"]
    assert [each["ProcessingJobStatus"] for each in listed] == ["Completed"] * 2


def build_request(name: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    algorithm = {"TrainingImage": IMAGE, "TrainingInputMode": "File", "ContainerEntrypoint": ENTRY_POINT}
    code = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/code/"}}
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/Training",
        "AlgorithmSpecification": algorithm,
        "InputDataConfig": [{"ChannelName": "code", "DataSource": code}],
        "Environment": {"WAIT": "0"},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "DebugHookConfig": {"S3OutputPath": f"s3://{BUCKET}/tensors"},
        "DebugRuleConfigurations": rules,
    }


def built_in(rule: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    return {
        "RuleConfigurationName": name or rule,
        "RuleEvaluatorImage": BUILT_IN,
        "RuleParameters": {"rule_to_invoke": rule, **parameters},
    }


def custom(rule: str, **more: str) -> dict[str, Any]:
    parameters = {"source_s3_uri": f"s3://{BUCKET}/own/", "rule_to_invoke": rule, **more}
    return {
        "RuleConfigurationName": rule,
        "RuleEvaluatorImage": CUSTOM,
        "InstanceType": "ml.t3.medium",
        "VolumeSizeInGB": 1,
        "RuleParameters": parameters,
    }


def build_rules_that_say_what_is_wrong(emulator: RunningEmulator) -> tuple[list[Any], dict[str, tuple[str, str]]]:
    """Rules whose mistake the evaluator names, one that judges by an earlier job, and what they say."""
    body = b"import nothing_like_this\nclass Broken: pass\n"
    emulator.client("s3").put_object(Bucket=BUCKET, Key="broken/rule.py", Body=body)
    broken = custom("Broken")
    broken["RuleParameters"]["source_s3_uri"] = f"s3://{BUCKET}/broken/rule.py"
    none = built_in("AllZero", tensor_regex="^none$")
    emulator.client("sagemaker").create_training_job(**build_request("earlier", [none]))
    assert wait_for(emulator, "earlier")["AllZero"][0] == "NoIssuesFound"
    rules = [
        built_in("NoSuchRule"),
        built_in("VanishingGradient", threshold="small"),
        built_in("SimilarAcrossRuns", other_trials="nobody"),
        built_in("SimilarAcrossRuns", "Similar", other_trials="earlier"),
        broken,
        custom("Missing"),
        custom("Raises"),
    ]
    return rules, {
        "NoSuchRule": ("Error", "There is no built-in rule 'NoSuchRule'. The built-in rules are: AllZero, "),
        "VanishingGradient": ("Error", "parameter threshold is 'small', expected a number of at least 0"),
        "SimilarAcrossRuns": ("Error", "The other trial 'nobody' does not exist"),
        "Similar": ("IssuesFound", "gradient/fc.weight at step 0 (mode TRAIN, mode step 0)"),
        "Broken": ("Error", "ModuleNotFoundError: No module named 'nothing_like_this'"),
        "Missing": ("Error", "The source has no class 'Missing'. The classes there are: Exits, LossTooHigh, Raises, "),
        "Raises": ("Error", "ZeroDivisionError: the limit is nothing"),
    }


# What the evaluator says of each mistake is in integration/smdebug/rules and unit/smdebug/rules.
@pytest.mark.any_back_end
@pytest.mark.parametrize("mistakes", [pytest.param(True, marks=pytest.mark.nightly), False], ids=["every", "few"])
def test_rules_that_go_wrong_harm_neither_each_other_nor_the_training(alone: RunningEmulator, mistakes: bool) -> None:
    job = f"wrong-{mistakes}"
    s3, sagemaker = alone.client("s3"), alone.client("sagemaker")
    s3.put_object(Bucket=BUCKET, Key="own/own_rule.py", Body=OWN_RULE.encode())
    # How these end is a container's; what the others say is in a file, in any container the same.
    rules = [custom("Exits"), custom("Waits")]
    expected = {
        "Exits": ("Error", "out of patience, exit code: 3"),
    }
    if mistakes and alone.read_runtime() == "process":
        more, said = build_rules_that_say_what_is_wrong(alone)
        rules, expected = rules + more, expected | said
    sagemaker.create_training_job(**build_request(job, rules))
    found = wait_for(alone, job, but=frozenset({"Waits"}))
    assert describe(alone, job)["TrainingJobStatus"] == "Completed"
    for name, (status, text) in expected.items():
        assert found[name][0] == status, (name, found[name])
        assert text in found[name][1], (name, found[name])

    if "Similar" in expected:
        assert set(read_output(alone, job, "Similar")) == {"report.json", "plot.svg"}

    assert found["Waits"][0] == "InProgress"
    (waiting,) = sagemaker.list_processing_jobs(NameContains=f"{job}-Waits")["ProcessingJobSummaries"]
    began = time.monotonic()
    sagemaker.stop_processing_job(ProcessingJobName=waiting["ProcessingJobName"])
    wait_until(lambda: read_rules(alone, job)["Waits"][0] == "Stopped", "the rule that waits")
    assert time.monotonic() - began < 100, "it is told to end, and not killed when its 120 s of grace are over"
    described = sagemaker.describe_processing_job(ProcessingJobName=waiting["ProcessingJobName"])
    assert described["ProcessingJobStatus"] == "Stopped"
