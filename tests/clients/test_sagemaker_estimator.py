"""Tests of the SageMaker SDK (version 2): estimators with all of its rules.

Three jobs use most of the estimators' options. Only the first has a requirements.txt, whose installation takes
seconds.
"""

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running_emulator import RunningEmulator
from tests.small_wheel import write_wheel

pytestmark = pytest.mark.any_back_end

BUCKET = "sagemaker-us-east-1-123456789012"
IMAGE = "pytorch-training:2.13.0-cpu-py311"
HYPERPARAMETERS = {"epochs": 1, "rate": 0.5, "name": "a b", "on": True, "sizes": [1, 2], "deep": {"a": {"b": 1}}}
TRAIN = """
import json, os, pathlib
from beside import BESIDE
from strict_limits import LIMIT
settings = json.loads(os.environ["SM_HPS"])
rows = {
    name: sorted(path.name for path in pathlib.Path(os.environ[f"SM_CHANNEL_{name.upper()}"]).rglob("*.csv"))
    for name in json.loads(os.environ["SM_CHANNELS"])
}
pipes = {
    name: pathlib.Path(os.environ[f"SM_CHANNEL_{name.upper()}"] + "_0").read_bytes().hex()
    for name in ("piped", "augmented") if name in rows
}
got = {"hyperparameters": settings, "rows": rows, "pipes": pipes, "beside": BESIDE, "said": os.environ["SAID"],
       "required": LIMIT}
print("GOT " + json.dumps(got))
"""
# By night rules judge a training. By day they have what one would save, without the seconds of a framework's import.
TORCH = """
import torch
network, loss = torch.nn.Linear(3, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for step in range(3):
    optimizer.zero_grad()
    loss(network(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    optimizer.step()
"""
WRITES = """
from smdebug.config.collection_manager import CollectionManager
from smdebug.writing.file_writer import FileWriter
folder = json.load(open(os.environ["SMDEBUG_CONFIG_FILE_PATH"]))["LocalPath"]
collections = CollectionManager()
collections.get("losses").tensor_names.add("loss")
collections.set_num_workers(1)
collections.export(folder, "worker_0_collections.json")
for step in range(3):
    with FileWriter(folder, "worker_0", step) as writer:
        writer.write_tensor(1.0 / (step + 1), "loss")
"""
# The other jobs are stopped.
GOES_ON = """
import time
while True:
    time.sleep(0.1)
"""
CUSTOM = """
from smdebug.rules.rule import Rule

class Mine(Rule):
    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = int(limit)

    def invoke_at_step(self, step):
        return step >= self.limit
"""
SCRIPT = """
import gzip, inspect, json, sys, tarfile, time
from pathlib import Path
import boto3
from sagemaker.debugger import (
    CollectionConfig, DebuggerHookConfig, FrameworkProfile, ProfilerRule, Rule, TensorBoardOutputConfig,
)
from sagemaker.debugger import rule_configs
from sagemaker.estimator import Estimator
from sagemaker.inputs import ShuffleConfig, TrainingInput
from sagemaker.instance_group import InstanceGroup
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session

train, goes_on, custom, image, hyperparameters, chosen = sys.argv[1:]
hyperparameters = json.loads(hyperparameters)
session = Session()
bucket = session.default_bucket()
for name, text in (
    ("source/train.py", train), ("libraries/beside.py", "BESIDE = 'a dependency'"),
    ("data/a.csv", "1"), ("data/b.csv", "2"), ("mine.py", custom), ("train.py", goes_on),
):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)
data = session.upload_data("data", bucket=bucket, key_prefix="data")
common = {
    "role": "arn:aws:iam::123456789012:role/Training",
    "instance_count": 1,
    "instance_type": "ml.m5.large",
    "environment": {"SAID": "by the environment"},
}
known = {name: make() for name, make in inspect.getmembers(rule_configs, inspect.isfunction) if name.islower()
         and name not in ("get_collection", "is_valid_action_object") and name in (json.loads(chosen) or [name])}
# A job has 20 rules at most: those before this one and those after it are two jobs'.
names, acting = list(known), "tree_depth"
place = names.index(acting)
rules = [Rule.sagemaker(known[name]) for name in names[:place]]
rules.append(
    Rule.sagemaker(known[acting], name="Acts", actions=rule_configs.ActionList(rule_configs.StopTraining("nobodys-")))
)
rules.append(
    Rule.custom(
        "Mine", "sagemaker-debugger-rule-evaluator:latest", "ml.t3.medium", 30, source="mine.py",
        rule_to_invoke="Mine", rule_parameters={"limit": "0"},
        collections_to_save=[CollectionConfig("mine", {"include_regex": "loss", "save_interval": "1"})],
    )
)
rules.append(ProfilerRule.sagemaker(rule_configs.ProfilerReport(), name="Report"))
whole = PyTorch(
    entry_point="train.py", source_dir="source", dependencies=["libraries/beside.py"],
    framework_version="2.8.0", py_version="py312", hyperparameters=hyperparameters, rules=rules,
    debugger_hook_config=DebuggerHookConfig(s3_output_path=f"s3://{bucket}/tensors"),
    tensorboard_output_config=TensorBoardOutputConfig(f"s3://{bucket}/boards"),
    checkpoint_s3_uri=f"s3://{bucket}/checkpoints", **common,
)
Path("pipes").mkdir()
Path("pipes/c.csv.gz").write_bytes(gzip.compress(b"3,4"))
Path("listed.manifest").write_text(json.dumps([{"prefix": f"{data}/"}, "a.csv"]))
Path("augmented.manifest").write_text(json.dumps({"source-ref": f"{data}/b.csv", "label": 5}))
uploaded = {name: session.upload_data(name, key_prefix="more") for name in ("listed.manifest", "augmented.manifest")}
inputs = {
    "listed": TrainingInput(uploaded["listed.manifest"], s3_data_type="ManifestFile"),
    "piped": TrainingInput(session.upload_data("pipes", key_prefix="pipes"), input_mode="Pipe", compression="Gzip"),
    "augmented": TrainingInput(
        uploaded["augmented.manifest"], s3_data_type="AugmentedManifestFile", input_mode="Pipe",
        attribute_names=["source-ref", "label"], record_wrapping="RecordIO",
    ),
    "plain": data,
    "training": TrainingInput(
        data, distribution="ShardedByS3Key", content_type="text/csv", s3_data_type="S3Prefix", input_mode="FastFile",
        compression="None", record_wrapping="None", shuffle_config=ShuffleConfig(7),
    ),
}
whole.fit(inputs, job_name="whole", logs="All")
client = session.sagemaker_client


def describe(name):
    description = client.describe_training_job(TrainingJobName=name)
    return json.loads(json.dumps(description, default=str))


def wait(name):
    client.get_waiter("training_job_completed_or_stopped").wait(
        TrainingJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 500}
    )


with tarfile.open("sourcedir.tar.gz", "w:gz") as tar:
    tar.add("train.py")
bundle = session.upload_data("sourcedir.tar.gz", key_prefix="bundled")
rest = Estimator(
    image_uri=image, entry_point="train.py", source_dir=bundle,
    rules=[Rule.sagemaker(known[name]) for name in names[place + 1:]],
    **common,
)
rest.fit(data, job_name="rest", wait=False)
unwatched = PyTorch(
    entry_point="train.py", source_dir=bundle, framework_version="2.8.0", py_version="py312",
    debugger_hook_config=False, disable_profiler=True,
    instance_groups=[InstanceGroup("one", "ml.m5.large", 1)],
    **{name: value for name, value in common.items() if not name.startswith("instance_")},
)
unwatched.fit(TrainingInput(data, instance_groups=["one"]), job_name="unwatched", wait=False)

profiled = {}


def note(step, call):
    try:
        call()
    except ValueError as error:
        profiled[step] = {"refused": str(error)}
    else:
        described = describe("rest")
        members = ("ProfilingStatus", "ProfilerConfig", "ProfilerRuleConfigurations", "ProfilerRuleEvaluationStatuses")
        profiled[step] = {member: described.get(member) for member in members}


note("as sent", lambda: None)
note("enabled twice", rest.enable_default_profiling)
note("disabled", rest.disable_profiling)
note("disabled twice", rest.disable_profiling)
note("enabled", rest.enable_default_profiling)
low = ProfilerRule.sagemaker(rule_configs.LowGPUUtilization(), name="Low")
traces = FrameworkProfile(start_step=2, num_steps=3)
note("updated", lambda: rest.update_profiler(
    rules=[low], system_monitor_interval_millis=100, framework_profile_params=traces,
))
note("without traces", lambda: rest.update_profiler(disable_framework_metrics=True))
for estimator in (rest, unwatched):
    estimator.latest_training_job.stop()
for name in ("rest", "unwatched"):
    wait(name)
kinds = ("DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses")
while any(rule["RuleEvaluationStatus"] == "InProgress" for kind in kinds for rule in describe("whole")[kind]):
    time.sleep(0.5)
whole.logs()
there = Session(boto3.Session(region_name="cn-north-1"))
elsewhere = PyTorch(
    image_uri="nobody-built:1", entry_point="train.py", source_dir="source", sagemaker_session=there,
    **{**common, "role": "arn:aws-cn:iam::123456789012:role/Training"},
)
elsewhere.fit(job_name="fitted-elsewhere", wait=False)
listed = there.sagemaker_client.list_training_jobs(NameContains="fitted-elsewhere")["TrainingJobSummaries"]
sent = there.describe_training_job("fitted-elsewhere")
elsewhere = [sent["TrainingJobArn"], sent["OutputDataConfig"]["S3OutputPath"],
             json.loads(sent["HyperParameters"]["sagemaker_submit_directory"]),
             [each["TrainingJobName"] for each in listed]]
found = {
    "elsewhere": elsewhere,
    "known": [config["DebugRuleConfiguration"]["RuleParameters"]["rule_to_invoke"] for config in known.values()],
    "jobs": {name: describe(name) for name in ("whole", "rest", "unwatched")},
    "summary": [rule["RuleConfigurationName"] for rule in whole.latest_training_job.rule_job_summary()],
    "profiled": profiled,
    "tensors": whole.latest_job_debugger_artifacts_path(),
    "boards": whole.latest_job_tensorboard_artifacts_path(),
    "checkpoints": whole.checkpoint_s3_uri,
}
print("\\nFOUND", json.dumps(found))
"""


# All rules are containers of one image, and each has unit tests: by day, and on Docker, a few run.
FEW = ["loss_not_decreasing", "tree_depth", "vanishing_gradient"]


@pytest.fixture(scope="module", params=["few", pytest.param("every", marks=pytest.mark.nightly)])
def found(
    request: pytest.FixtureRequest,
    client_environment: dict[str, str],
    served: RunningEmulator,
    tmp_path_factory: pytest.TempPathFactory,
) -> Any:
    """What the script found; one run of it, because the SDK is slow to import."""
    every = request.param == "every"
    if every and served.read_runtime() != "process":
        pytest.skip("one back end evaluates every rule")
    chosen = json.dumps([] if every else FEW)
    arguments = [TRAIN + (TORCH if every else WRITES), GOES_ON, CUSTOM, IMAGE, json.dumps(HYPERPARAMETERS), chosen]
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, *arguments]
    folder: Path = tmp_path_factory.mktemp("sdk")
    (folder / "source").mkdir()
    wheel = write_wheel(folder / "source", "strict_limits", "LIMIT = 1.5\n")
    (folder / "source" / "requirements.txt").write_text(f"./{wheel.name}\n")
    done = subprocess.run(
        command, env=client_environment, cwd=folder, capture_output=True, text=True, timeout=560, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + served.log_text()
    (line,) = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    got = [line.partition("GOT ")[2] for line in done.stdout.splitlines() if "GOT {" in line]
    return json.loads(line) | {"got": got}


def test_script_gets_hyperparameters_channels_and_dependencies(found: Any) -> None:
    first, again = (json.loads(line) for line in found["got"])
    assert first == again, "logs() prints what fit() printed"
    assert {name: first["hyperparameters"][name] for name in HYPERPARAMETERS} == HYPERPARAMETERS
    both, none = ["a.csv", "b.csv"], list[str]()
    assert first["rows"] == {"plain": both, "training": both, "listed": ["a.csv"], "piped": none, "augmented": none}
    pipes = {name: bytes.fromhex(read) for name, read in first["pipes"].items()}
    assert pipes["piped"] == b"3,4"
    # Records of RecordIO: the object's content, then the label, each behind the magic number and its length.
    magic = struct.pack("<I", 0xCED7230A)
    assert [record[4:5] for record in pipes["augmented"].split(magic)[1:]] == [b"2", b"5"]
    assert (first["beside"], first["said"]) == ("a dependency", "by the environment")
    assert first["required"] == 1.5, "a package of requirements.txt"
    (training,) = [each for each in found["jobs"]["whole"]["InputDataConfig"] if each["ChannelName"] == "training"]
    assert (training["InputMode"], training["ShuffleConfig"]) == ("FastFile", {"Seed": 7})
    assert training["DataSource"]["S3DataSource"]["S3DataDistributionType"] == "ShardedByS3Key"


def test_every_rule_of_the_sdk_is_configured_and_evaluated(found: Any) -> None:
    whole, rest, unwatched = (found["jobs"][name] for name in ("whole", "rest", "unwatched"))
    configured = whole["DebugRuleConfigurations"] + rest["DebugRuleConfigurations"]
    invoked = [rule["RuleParameters"]["rule_to_invoke"] for rule in configured]
    assert sorted(invoked) == sorted([*found["known"], "Mine"])
    assert len(whole["DebugRuleEvaluationStatuses"]) == len(whole["DebugRuleConfigurations"])
    assert set(found["summary"]) == {rule["RuleConfigurationName"] for rule in whole["DebugRuleConfigurations"]} | {
        "Report"
    }
    (acting,) = [rule for rule in configured if rule["RuleConfigurationName"] == "Acts"]
    assert '"stoptraining' in acting["RuleParameters"]["action_json"].replace("\\", "")
    verdicts = {
        each["RuleConfigurationName"]: each["RuleEvaluationStatus"] for each in whole["DebugRuleEvaluationStatuses"]
    }
    # The SDK writes an action's JSON with a backslash before each quote.
    assert verdicts["Acts"] in ("IssuesFound", "NoIssuesFound"), whole["DebugRuleEvaluationStatuses"]
    assert verdicts["Mine"] == "IssuesFound", whole["DebugRuleEvaluationStatuses"]
    (report,) = whole["ProfilerRuleEvaluationStatuses"]
    assert (report["RuleConfigurationName"], report["RuleEvaluationStatus"]) == ("Report", "NoIssuesFound"), report
    assert "DebugHookConfig" not in unwatched
    assert [group["InstanceGroupName"] for group in unwatched["ResourceConfig"]["InstanceGroups"]] == ["one"]
    assert unwatched["InputDataConfig"][0]["DataSource"]["S3DataSource"]["InstanceGroupNames"] == ["one"]
    assert "DebugRuleConfigurations" not in unwatched


def test_the_profiler_is_updated_while_the_job_runs(found: Any) -> None:
    profiled, path = found["profiled"], found["jobs"]["rest"]["ProfilerConfig"]["S3OutputPath"]
    on = {"S3OutputPath": path, "DisableProfiler": False, "ProfilingIntervalInMilliseconds": 500}
    assert (profiled["as sent"]["ProfilingStatus"], profiled["as sent"]["ProfilerConfig"]) == ("Enabled", on)
    assert "already enabled" in profiled["enabled twice"]["refused"]
    off = profiled["disabled"]
    assert (off["ProfilingStatus"], off["ProfilerConfig"]) == (
        "Disabled",
        {"S3OutputPath": path, "DisableProfiler": True},
    )
    assert "already disabled" in profiled["disabled twice"]["refused"]
    assert (profiled["enabled"]["ProfilingStatus"], profiled["enabled"]["ProfilerConfig"]) == ("Enabled", on)
    updated = profiled["updated"]
    parameters = updated["ProfilerConfig"].pop("ProfilingParameters")
    assert updated["ProfilerConfig"] == {**on, "ProfilingIntervalInMilliseconds": 100}
    assert "StartStep" in parameters["PythonProfilingConfig"]
    (rule,) = updated["ProfilerRuleConfigurations"]
    assert rule["RuleParameters"]["rule_to_invoke"] == "LowGPUUtilization"
    (status,) = updated["ProfilerRuleEvaluationStatuses"]
    assert (status["RuleConfigurationName"], status["RuleEvaluationStatus"]) == ("Low", "InProgress")
    assert ":processing-job/rest-low-" in status["RuleEvaluationJobArn"]
    assert profiled["without traces"]["ProfilerConfig"]["ProfilingParameters"] == {}
    assert found["jobs"]["unwatched"]["ProfilingStatus"] == "Disabled"


def test_a_session_of_another_region_has_its_bucket_arn_and_list(found: Any) -> None:
    arn, output, code, listed = found["elsewhere"]
    assert arn == "arn:aws-cn:sagemaker:cn-north-1:123456789012:training-job/fitted-elsewhere"
    bucket = "s3://sagemaker-cn-north-1-123456789012/"
    assert output.startswith(bucket)
    assert code.startswith(f"{bucket}fitted-elsewhere/source/")
    assert listed == ["fitted-elsewhere"]


def test_jobs_end_as_they_were_asked_to(found: Any) -> None:
    assert {name: job["TrainingJobStatus"] for name, job in found["jobs"].items()} == {
        "whole": "Completed",
        "rest": "Stopped",
        "unwatched": "Stopped",
    }
    assert found["tensors"] == f"s3://{BUCKET}/tensors/whole/debug-output"
    assert found["boards"] == f"s3://{BUCKET}/boards/whole/tensorboard-output"
    assert found["jobs"]["whole"]["CheckpointConfig"]["S3Uri"] == found["checkpoints"]
