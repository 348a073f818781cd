"""Small training job with a hook, stopped by its rule or completed."""

import json
from collections.abc import Mapping
from typing import Any

from sdk_compat.demo.training_job import ROLE_ARN

BUCKET = "soak"
IMAGE = "sagemaker-debugger-rules:latest"
STEPS = 12
LINES = STEPS + 2
# Written for numpy alone: what fails here is the service, and hundreds of these are cheap.
_SCRIPT = """
import json, os, pathlib, sys, time
import boto3, numpy
from smdebug.capture.hook import BaseHook
from smdebug.writing.run_writer import Worker

class Hook(BaseHook):
    def get_worker(self):
        return Worker.of_rank(0, 1)

base = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
sick = json.loads(given["kind"]) == "sick"
print("line 0", flush=True)
row = boto3.client("s3").get_object(Bucket="soak", Key="data/row")["Body"].read()
channel = (base / "input/data/train/row").read_bytes()
assert row == channel == b"a row", (row, channel)
hook = Hook.create_from_json_file()
for step in range(3000 if sick else STEPS):
    hook._increment_step()
    hook.save_tensor("gradient/weight", numpy.full((4, 4), 1e-12 if sick else 0.5), "gradients")
    hook.save_tensor("loss", numpy.array(1.0 / (step + 1)), "losses")
    if not sick:
        print("line", step + 1, flush=True)
    time.sleep(0.05)
hook.close()
if sick:
    sys.exit("nothing stopped it")
print("line", STEPS + 1, flush=True)
(base / "model/weights").write_text("weights")
""".replace("STEPS", str(STEPS))
# An entry point's words are short.
_RUN = (
    "import json, os; given = json.load(open(os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml') + "
    "'/input/config/hyperparameters.json')); exec(json.loads(given['script']))"
)


def build_job(name: str, *, sick: bool, environment: Mapping[str, str] | None = None, **members: Any) -> dict[str, Any]:
    """Build CreateTrainingJob's members.

    Args:
        name: of the job.
        sick: whether its gradients vanish: it trains until something stops it.
        environment: of its container.
        members: further ones.
    """
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data/"}
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python", "-c", _RUN],
        },
        "HyperParameters": {"script": json.dumps(_SCRIPT), "kind": json.dumps("sick" if sick else "healthy")},
        "InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": source}}],
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "DebugHookConfig": {
            "S3OutputPath": f"s3://{BUCKET}/tensors",
            "CollectionConfigurations": [
                {"CollectionName": each, "CollectionParameters": {"save_interval": "1", "include_regex": regex}}
                for each, regex in (("gradients", "^gradient"), ("losses", "^loss"))
            ],
        },
        "DebugRuleConfigurations": [
            {
                "RuleConfigurationName": "VanishingGradient",
                "RuleEvaluatorImage": IMAGE,
                "RuleParameters": {"rule_to_invoke": "VanishingGradient", "threshold": "0.001"},
            }
        ],
        "Environment": dict(environment or {}),
        **members,
    }


def stage_data(s3: Any) -> None:
    """Make the bucket, with what the job reads in it."""
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="data/row", Body=b"a row")


def find_wrong_end(
    job: Mapping[str, Any], log: list[str], *, sick: bool, stored: set[str], whole_log: bool = True
) -> str | None:
    """Say what is wrong with a job that has ended, None where it ended as it has to.

    Args:
        job: as it is described.
        log: what its container printed.
        sick: see ``build_job``.
        stored: the keys of its objects, without the prefixes of output and tensors.
        whole_log: whether every line is there; none is there twice in any case.
    """
    expected = ("Stopped", "IssuesFound") if sick else ("Completed", "NoIssuesFound")
    ended = job["TrainingJobStatus"], job["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"]
    if ended != expected:
        return f"ended {ended}, not {expected}: {job.get('FailureReason')}; {job['DebugRuleEvaluationStatuses']}"
    if "debug-output/training_job_end.ts" not in stored:
        return f"S3 was not told of its end: {sorted(stored)}"
    if sick:
        return None
    if "output/model.tar.gz" not in stored:
        return f"its model is missing: {sorted(stored)}"
    steps = sum(key.startswith("debug-output/index/") for key in stored)
    if steps != STEPS:
        return f"{steps} of {STEPS} steps are in S3"
    # A job that began again printed its first lines twice.
    lines = [line for line in log if line.startswith("line ")]
    began_again = any(each["Status"] == "Restarting" for each in job["SecondaryStatusTransitions"])
    expected_lines = [f"line {number}" for number in range(LINES)]
    if not whole_log:
        expected_lines = [line for line in expected_lines if line in lines]
    if not began_again and lines != expected_lines:
        return f"its log is {lines}"
    return None
