"""Job harness on real local processes and a real S3.

The training is a few lines of Python.
"""

import json
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from emulator.jobs import Jobs, build_services
from emulator.jobs.runs.admission import Admission
from emulator.jobs.runs.containers.logs import LogWriter
from emulator.jobs.store.store import JobStore
from emulator.moto_services.cloudwatch.logs import LogGroups
from emulator.moto_services.s3.objects import ObjectStore
from emulator.settings import Settings
from emulator.state.disk import DiskBudget
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.waiting import has_ended, wait_until

ACCOUNT = "123456789012"
REGION = "us-east-1"


# A rule container: reads its configuration, does what the parameter `behaviour` says.
RULE_PROGRAM = """
import json, os, pathlib, signal, sys, time
c = json.load(open(os.environ["SMDEBUG_RULE_CONFIG_PATH"]))
p = c["RuleParameters"]
print("evaluating", c["RuleConfigurationName"], flush=True)
def write(text):
    path = pathlib.Path(c["VerdictPath"])
    path.with_suffix(".tmp").write_text(text)
    path.with_suffix(".tmp").rename(path)
def verdict(status, details):
    write(json.dumps({"RuleEvaluationStatus": status, "StatusDetails": details, "Step": 3}))
pathlib.Path(c["OutputPath"], "report.txt").write_text(json.dumps(c))
behaviour = p["behaviour"]
if behaviour == "fire":
    verdict("IssuesFound", "RuleEvaluationConditionMet: Evaluation of the rule X at step 3 resulted in ...")
elif behaviour == "pass":
    verdict("NoIssuesFound", "")
elif behaviour == "die":
    print("the last thing it said", flush=True); sys.exit(7)
elif behaviour == "nonsense":
    write("{not json")
elif behaviour == "link":
    for path in (c["VerdictPath"], c["OutputPath"]):
        if os.path.isdir(path):
            os.rename(path, path + "-moved")
        os.symlink(p["target"], path)
elif behaviour == "wait":
    time.sleep(600)
elif behaviour == "pass when let go":
    while not pathlib.Path(c["VerdictPath"]).with_name("go").exists():
        time.sleep(0.01)
    verdict("NoIssuesFound", "")
"""


@dataclass
class JobHarness:
    """The harness under test and what it works with."""

    jobs: Jobs
    store: JobStore
    runtime: LocalProcesses
    publisher: RecordingPublisher
    s3: ObjectStore
    logs: LogGroups
    settings: Settings
    bucket: str
    extra: dict[str, Any] = field(default_factory=dict)

    def request(self, name: str = "job", script: str = "print('hello')", **members: Any) -> dict[str, Any]:
        """A request whose container runs ``script``."""
        request: dict[str, Any] = {
            "TrainingJobName": name,
            "AlgorithmSpecification": {
                "TrainingImage": "tiny:1",
                "TrainingInputMode": "File",
                "ContainerEntrypoint": [sys.executable, "-I", "-S", "-c", _PRELUDE + script],
            },
            "RoleArn": "arn:aws:iam::123456789012:role/x",
            "OutputDataConfig": {"S3OutputPath": f"s3://{self.bucket}/out"},
            "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        }
        return request | members

    def hook(self) -> dict[str, Any]:
        return {"S3OutputPath": f"s3://{self.bucket}/tensors"}

    def rule(self, name: str, behaviour: str, **members: Any) -> dict[str, Any]:
        return {
            "RuleConfigurationName": name,
            "RuleEvaluatorImage": "rules:latest",
            "RuleParameters": {"behaviour": behaviour},
        } | members

    def describe(self, name: str = "job") -> dict[str, Any]:
        return self.jobs.training.describe(self.jobs.training.get(REGION, name))

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        self.jobs.training.create(REGION, request)
        return self.wait(request["TrainingJobName"])

    def wait(self, name: str = "job") -> dict[str, Any]:
        """Wait until the job and its rules have ended."""
        wait_until(lambda: has_ended(self.describe(name)), lambda: self.describe(name))
        return self.describe(name)

    def wait_for_stage(self, stage: str, name: str = "job") -> None:
        wait_until(lambda: self.describe(name)["SecondaryStatus"] == stage, lambda: self.describe(name))

    def stored(self, prefix: str = "") -> list[str]:
        return [entry.key for entry in self.s3.list(self.bucket, prefix)]

    def log(self, group: str, job: str) -> list[str]:
        from moto.logs.models import logs_backends

        streams = logs_backends[ACCOUNT][REGION].groups[group].streams
        return [event.message for name, stream in streams.items() if name.startswith(job) for event in stream.events]

    def metric(
        self, name: str, dimensions: dict[str, str], namespace: str = "/aws/sagemaker/TrainingJobs"
    ) -> list[float]:
        """The values of a metric, in the order in which they came."""
        from moto.cloudwatch.models import cloudwatch_backends

        data: list[Any] = list(cloudwatch_backends[ACCOUNT][REGION].metric_data)
        return [
            datum.value
            for datum in data
            if (datum.namespace, datum.name) == (namespace, name)
            and {each.name: each.value for each in datum.dimensions} == dimensions
        ]


_PRELUDE = """
import os, pathlib, signal, sys, time, json
ml = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
"""


@contextmanager
def open_job_harness(
    tmp_path: Path, publisher: RecordingPublisher | None = None, bucket: str | None = None, **settings: Any
) -> Iterator[JobHarness]:
    images = tmp_path / "images"
    for name, entrypoint in (
        ("tiny", []),
        ("rules", ["python", "-I", "-S", "-c", RULE_PROGRAM]),
    ):
        (images / name).mkdir(parents=True, exist_ok=True)
        (images / name / "image.toml").write_text(f'name = "{name}"\nentrypoint = {json.dumps(entrypoint)}\n')
    chosen = Settings(state_dir=tmp_path / "state", **({"stop_grace_seconds": 2.0, "job_niceness": 0} | settings))
    s3, logs = ObjectStore(ACCOUNT, REGION), LogGroups(ACCOUNT, REGION)
    if bucket is None:
        bucket = f"bucket-{uuid.uuid4().hex}"
        s3.create_bucket(bucket)
    store = JobStore(tmp_path / "state" / "jobs.sqlite")
    runtime = LocalProcesses(tmp_path / "processes", ImageCatalogue(images, strict=chosen.strict_versions))
    publisher = publisher or RecordingPublisher()
    services = build_services(
        chosen,
        store,
        runtime,
        publisher,
        "http://127.0.0.1:1",
        rule_stop_grace_seconds=0.3,
        admission=Admission(chosen.max_jobs, DiskBudget(tmp_path, 0)),
    )
    # The tests change how these two answer.
    jobs = Jobs(replace(services, object_store_for=lambda _region: s3, log_writer=LogWriter(lambda _region: logs)))
    try:
        yield JobHarness(jobs, store, runtime, publisher, s3, logs, chosen, bucket)
    finally:
        jobs.close()
        assert runtime.find({}) == []
        store.close()
