"""Tests of attaching the SageMaker SDK (version 2) to running and ended jobs.

Both of its classes are tried.
"""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from container_runtime.process.namespace_grant import probe_namespaces
from sdk_compat.demo.training_job import BUCKET, HEALTHY, SICK, stage_inputs
from sdk_compat.environment import prepare_environment
from tests.running_emulator import RunningEmulator

# By day: what attach() reads of a job is in test_sagemaker_estimator.py and test_boto3_and_aws_cli.py, which also has
# metrics of a run; metrics of a log are in integration/emulator/jobs/runs/test_metrics.py.
pytestmark = [pytest.mark.any_back_end, pytest.mark.nightly]

SOURCE = Path(__file__).parents[2] / "sdk_compat" / "demo"
CLASSES = ("Estimator", "PyTorch")

SCRIPT = """
import json, sys
from sagemaker.analytics import TrainingJobAnalytics
from sagemaker.debugger import DebuggerHookConfig, ProfilerRule, Rule, rule_configs
from sagemaker.estimator import Estimator
from sagemaker.experiments.run import Run
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session

bucket, source, prefix, sick, healthy, isolated = sys.argv[1:]


def fit(name, hyperparameters, **options):
    PyTorch(
        entry_point="train.py",
        source_dir=source,
        role="arn:aws:iam::123456789012:role/Training",
        instance_count=1,
        instance_type="ml.m5.large",
        framework_version="2.8.0",
        py_version="py312",
        hyperparameters=json.loads(hyperparameters),
        output_path=f"s3://{bucket}/output",
        debugger_hook_config=DebuggerHookConfig(s3_output_path=f"s3://{bucket}/tensors"),
        rules=[
            Rule.sagemaker(rule_configs.loss_not_decreasing(), rule_parameters={"collection_names": "losses"}),
            ProfilerRule.sagemaker(rule_configs.ProfilerReport(), name="Report"),
        ],
        metric_definitions=[{"Name": "train:loss", "Regex": "train_loss=(.*?);"}],
        tags=[{"Key": "team", "Value": "digits"}],
        **options,
    ).fit({"training": f"s3://{bucket}/data/"}, job_name=name, wait=False)
    return name


def wait_until_ended(session, job):
    waiter = session.sagemaker_client.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName=job, WaiterConfig={"Delay": 1, "MaxAttempts": 500})


def attach(kind, name, wait=True, stop=False):
    seen = []

    def note_and_wait(session, job):
        # Here attach() has made its estimator, and waits for the end of the job.
        seen.append(session.describe_training_job(job)["TrainingJobStatus"])
        if stop:
            # Until it is over: the SDK takes a job that is Stopping for one that failed.
            session.stop_training_job(job)
            wait_until_ended(session, job)
        return wait_for_job(session, job, poll=1) if wait else session.describe_training_job(job)

    Session.wait_for_job = note_and_wait
    attached = kind.attach(name)
    description = attached.latest_training_job.describe()
    found = {
        "seen": seen,
        "status": description["TrainingJobStatus"],
        "profiling": [description["ProfilingStatus"], description["ProfilerConfig"]["ProfilingIntervalInMilliseconds"]],
        "output": [attached.output_path, attached.output_kms_key],
        "tags": attached.tags,
        "isolation": attached.enable_network_isolation(),
        "checkpoints": description.get("CheckpointConfig", {}).get("S3Uri", ""),
        "framework": getattr(attached, "framework_version", None),
        "rules": {
            rule["RuleConfigurationName"]: rule["RuleEvaluationStatus"]
            for rule in attached.latest_training_job.rule_job_summary()
        },
        "path": attached.latest_job_debugger_artifacts_path(),
    }
    # The SDK does not take the hook's configuration over from the job.
    attached.debugger_hook_config = DebuggerHookConfig(s3_output_path=description["DebugHookConfig"]["S3OutputPath"])
    found["configured_path"] = attached.latest_job_debugger_artifacts_path()
    print("FOUND", json.dumps({"class": kind.__name__, "job": name, **found}))


wait_for_job = Session.wait_for_job
checkpoints = f"s3://{bucket}/checkpoints/{prefix}"
options = {"checkpoint_s3_uri": checkpoints, "enable_network_isolation": isolated == "True"}
ended = fit(f"{prefix}-ended", healthy, **options)
running = fit(f"{prefix}-running", sick)
attach(Estimator, running, wait=False)
attach(PyTorch, running, stop=True)
wait_until_ended(Session(), ended)
for kind in (Estimator, PyTorch):
    attach(kind, ended)

analytics = TrainingJobAnalytics(ended).dataframe()
with Run(experiment_name=prefix, run_name="run", sagemaker_session=Session()) as run:
    run.log_metric("f1", 0.5, step=3)
    run.log_metric("f1", 0.75)
    run.log_roc_curve([0, 1, 1, 0], [0.2, 0.8, 0.6, 0.4], title="curve")
sagemaker = Session().sagemaker_client
component = sagemaker.describe_trial_component(TrialComponentName=run._trial_component.trial_component_name)
metrics = {
    "columns": list(analytics.columns),
    "names": sorted(set(analytics["metric_name"])),
    "values": list(analytics["value"]),
    "final": [each["MetricName"] for each in Session().describe_training_job(ended)["FinalMetricDataList"]],
    "run": [[each["MetricName"], each["Last"], each["Count"]] for each in component["Metrics"]],
    "charts": [
        [each["AssociationType"], each["DestinationName"], each["DestinationType"]]
        for each in sagemaker.list_associations(SourceArn=component["TrialComponentArn"])["AssociationSummaries"]
    ],
}
print("METRICS", json.dumps(metrics))
"""


def can_isolate(emulator: RunningEmulator) -> bool:
    """Whether this back end can keep a job from the network: a local process needs a namespace of the kernel's."""
    return emulator.read_runtime() == "docker" or probe_namespaces().network


@pytest.fixture(scope="module")
def attached(emulator: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """What the script found, by class and the state of the job; one run of it, because the SDK is slow to import."""
    stage_inputs(emulator.client("s3"))
    folder = tmp_path_factory.mktemp("sdk")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= prepare_environment(emulator.endpoint_url, environment, folder=folder)
    prefix = f"attach-{uuid.uuid4().hex[:8]}"
    arguments = [BUCKET, str(SOURCE), prefix, json.dumps(SICK), json.dumps(HEALTHY), str(can_isolate(emulator))]
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, *arguments]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=560, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + emulator.log_text()
    lines = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    found = [json.loads(line) for line in lines]
    metrics = next(line.removeprefix("METRICS ") for line in done.stdout.splitlines() if line.startswith("METRICS "))
    return {("metrics", ""): json.loads(metrics)} | {
        (each["class"], "ended" if each["job"].endswith("-ended") else "running"): each for each in found
    }


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("state", ["running", "ended"])
def test_an_attached_estimator_is_the_job(
    emulator: RunningEmulator, attached: dict[tuple[str, str], Any], kind: str, state: str
) -> None:
    found = attached[kind, state]
    # The first to attach to the running job leaves it running, the second stops it.
    statuses = {"Estimator": "InProgress", "PyTorch": "Stopped"} if state == "running" else {}
    assert found["seen"] == ["InProgress" if state == "running" else "Completed"]
    assert found["status"] == statuses.get(kind, "Completed")
    assert found["output"] == [f"s3://{BUCKET}/output", ""]
    assert found["isolation"] is (state == "ended" and can_isolate(emulator))
    assert found["checkpoints"].startswith(f"s3://{BUCKET}/checkpoints/attach-") is (state == "ended")
    assert found["tags"] == [{"Key": "team", "Value": "digits"}]
    assert found["framework"] == ("2.8.0" if kind == "PyTorch" else None)
    assert found["profiling"] == ["Enabled", 500]
    assert found["rules"].keys() == {"LossNotDecreasing", "Report"}
    assert found["rules"]["Report"] in ("InProgress", "NoIssuesFound", "Stopping", "Stopped")
    assert found["path"] is None
    assert found["configured_path"] == f"s3://{BUCKET}/tensors/{found['job']}/debug-output"
    if state == "ended":
        prefix = f"tensors/{found['job']}/debug-output/"
        assert emulator.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)["KeyCount"] > 0


def test_metrics_of_the_log_and_of_a_run_are_read_by_the_sdk(attached: dict[tuple[str, str], Any]) -> None:
    metrics = attached["metrics", ""]
    assert metrics["columns"] == ["timestamp", "metric_name", "value"]
    assert metrics["names"] == ["train:loss"]
    assert all(0 < value < 10 for value in metrics["values"])
    assert metrics["final"] == ["train:loss"]
    assert metrics["charts"] == [["Produced", "curve", "ROCCurve"]]
    assert metrics["run"] == [["f1", 0.75, 2]], "the second has no step of its own and counts on"
