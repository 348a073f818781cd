"""Tests of a state folder that an older version wrote.

`data/` holds the folder of commit 7be430f: a finished XGBoost job with tensors and a rule, an object, an event rule, a
role and a function. It stays as it is: a version that cannot read it has to migrate it, or to refuse it in one
sentence.
"""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from smdebug.trials import create_trial
from tests.running_emulator import RunningEmulator

OLDER = Path(__file__).with_name("data") / "written-by-0.1.0.dev-7be430f.tar.xz"


@pytest.fixture(scope="module")
def emulator(
    tmp_path_factory: pytest.TempPathFactory, start_emulator: Callable[..., RunningEmulator]
) -> RunningEmulator:
    state_dir = tmp_path_factory.mktemp("older") / "state"
    with tarfile.open(OLDER) as tar:
        tar.extractall(state_dir, filter="data")
    return start_emulator("process", state_dir=state_dir, warm=False)


def test_its_job_is_as_it_ended(emulator: RunningEmulator) -> None:
    found = emulator.client("sagemaker").describe_training_job(TrainingJobName="kept-job")
    assert found["TrainingJobStatus"] == "Completed"
    (rule,) = found["DebugRuleEvaluationStatuses"]
    assert (rule["RuleConfigurationName"], rule["RuleEvaluationStatus"]) == ("falls", "NoIssuesFound")
    tags = emulator.client("sagemaker").list_tags(ResourceArn=found["TrainingJobArn"])["Tags"]
    assert tags == [{"Key": "team", "Value": "old"}]


def test_its_objects_and_tensors_are_read(emulator: RunningEmulator, tmp_path: Path) -> None:
    s3 = emulator.client("s3")
    kept = s3.get_object(Bucket="frameworks-example", Key="kept/object")
    assert (kept["Body"].read(), kept["Metadata"]) == (b"kept", {"a": "b"})
    prefix = "tensors/kept-job/debug-output/"
    for each in s3.list_objects_v2(Bucket="frameworks-example", Prefix=prefix)["Contents"]:
        path = tmp_path / each["Key"].removeprefix(prefix)
        path.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file("frameworks-example", each["Key"], str(path))
    assert create_trial(str(tmp_path)).steps() == [0, 1, 2, 3, 4]


def test_its_rules_roles_functions_and_logs_are_there(emulator: RunningEmulator) -> None:
    assert [each["Name"] for each in emulator.client("events").list_rules()["Rules"]] == ["kept-rule"]
    assert emulator.client("iam").get_role(RoleName="kept")["Role"]["Arn"].endswith(":role/kept")
    done = emulator.client("lambda").invoke(FunctionName="kept-function", Payload=b'{"a": 1}')
    assert json.loads(done["Payload"].read()) == {"old": {"a": 1}}
    logs = emulator.client("logs")
    streams = logs.describe_log_streams(logGroupName="/aws/sagemaker/TrainingJobs")["logStreams"]
    assert [each["logStreamName"].partition("/")[0] for each in streams] == ["kept-job"]
