"""Tests of whole training job runs: real processes and real S3."""

import io
import json
import re
import socket
import tarfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.namespace_grant import NamespaceGrant
from emulator.exceptions import ValidationException
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.waiting import wait_until

TRAINING_LOG = "/aws/sagemaker/TrainingJobs"


def stages(description: dict[str, Any]) -> list[str]:
    return [each["Status"] for each in description["SecondaryStatusTransitions"]]


def wait_until_logged(harness: JobHarness, line: str) -> None:
    """The log's group is made with its first line."""

    def is_there() -> bool:
        with suppress(KeyError):
            return line in harness.log("/aws/sagemaker/TrainingJobs", "job")
        return False

    wait_until(is_there, harness.describe)


def wait_until_ready(harness: JobHarness) -> None:
    """The script has printed that its handlers are in place."""
    harness.wait_for_stage("Training")
    wait_until(lambda: harness.log(TRAINING_LOG, "job/")[-1:] == ["ready"], harness.describe)


def unpack(harness: JobHarness, key: str) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(harness.s3.get(harness.bucket, key))) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar if entry.isreg()}  # type: ignore[union-attr]


def test_job_that_succeeds(harness: JobHarness) -> None:
    harness.s3.put(harness.bucket, "data/train/a.csv", b"1,2")
    harness.s3.put(harness.bucket, "data/train/sub/b.csv", b"3,4")
    script = """
data = ml / "input/data/training"
print("loss=0.5;", sorted(str(p.relative_to(data)) for p in data.rglob("*.csv")))
print("loss=0.25;")
(ml / "model/weights.bin").write_bytes(b"w" * 1000)
(ml / "output/data/plot.txt").write_text("plot")
(ml / "output/data/environment.json").write_text(json.dumps(dict(os.environ)))
(ml / "output/data/hyperparameters.json").write_text((ml / "input/config/hyperparameters.json").read_text())
assert not (ml / "input/config/debughookconfig.json").exists()
"""
    request = harness.request(
        script=script,
        HyperParameters={"epochs": "3"},
        Environment={"MINE": "yes", "AWS_ENDPOINT_URL": "http://elsewhere"},
        Tags=[{"Key": "team", "Value": "a"}],
        InputDataConfig=[
            {
                "ChannelName": "training",
                "DataSource": {
                    "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{harness.bucket}/data/train"}
                },
            }
        ],
    )
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=(.*?);"}]
    done = harness.run(request)

    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Completed", "Completed")
    assert stages(done) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert done["ModelArtifacts"] == {"S3ModelArtifacts": f"s3://{harness.bucket}/out/job/output/model.tar.gz"}
    assert done["TrainingTimeInSeconds"] == done["BillableTimeInSeconds"] >= 1
    assert [(each["MetricName"], each["Value"]) for each in done["FinalMetricDataList"]] == [("loss", 0.25)]
    assert "Tags" not in done
    del request["Tags"]
    # What was asked for, and the defaults that Describe adds to it.
    request["OutputDataConfig"] |= {"KmsKeyId": "", "CompressionType": "GZIP"}
    request["InputDataConfig"][0] |= {"CompressionType": "None", "RecordWrapperType": "None"}
    assert {key: done[key] for key in request} == request

    assert unpack(harness, "out/job/output/model.tar.gz") == {"weights.bin": b"w" * 1000}
    output = unpack(harness, "out/job/output/output.tar.gz")
    assert json.loads(output["hyperparameters.json"]) == {"epochs": "3"}
    environment = json.loads(output["environment.json"])
    assert environment["TRAINING_JOB_NAME"] == "job"
    assert environment["TRAINING_JOB_ARN"] == done["TrainingJobArn"]
    assert environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1", "a request cannot send a container elsewhere"
    assert environment["MINE"] == "yes"
    assert harness.log(TRAINING_LOG, "job/algo-1-") == ["loss=0.5; ['a.csv', 'sub/b.csv']", "loss=0.25;"]
    harness.jobs.close()
    statuses = [(e["detail"]["TrainingJobStatus"], e["detail"]["SecondaryStatus"]) for e in harness.publisher.events]
    assert statuses == [("InProgress", stage) for stage in stages(done)[:-1]] + [("Completed", "Completed")]
    assert harness.publisher.events[0]["detail"]["Tags"] == {"team": "a"}
    assert harness.jobs.tags.list_all(done["TrainingJobArn"]) == [{"Key": "team", "Value": "a"}]
    assert harness.store.messages.list_outbox() == []
    assert list((harness.settings.state_dir / "jobs").iterdir()) == []


def test_tensors_reach_s3_while_training_runs(harness: JobHarness) -> None:
    script = """
tensors = ml / "output/tensors"
config = json.loads(open(os.environ["SMDEBUG_CONFIG_FILE_PATH"]).read())
assert config["LocalPath"] == str(tensors), config
def save(path, text):
    path = tensors / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name + ".tmp").write_text(text)
    path.with_name(path.name + ".tmp").rename(path)
(tensors / "claim.smd").touch()
save("events/000000000000/000000000000_worker_0.tfevents", "event")
save("index/000000000/000000000000_worker_0.json", "index")
while not (ml / "go").exists():
    time.sleep(0.01)
save("events/000000000010/000000000010_worker_0.tfevents", "event")
save("index/000000000/000000000010_worker_0.json", "index")
"""
    harness.jobs.training.create(REGION, harness.request(script=script, DebugHookConfig=harness.hook()))
    prefix = "tensors/job/debug-output/"
    wait_until(lambda: f"{prefix}index/000000000/000000000000_worker_0.json" in harness.stored(), harness.describe)
    harness.wait_for_stage("Training")
    assert f"{prefix}training_job_end.ts" not in harness.stored()
    (folder,) = (harness.settings.state_dir / "jobs").iterdir()
    (folder / "algo-1" / "go").touch()
    assert harness.wait()["TrainingJobStatus"] == "Completed"
    assert harness.stored(prefix) == [
        f"{prefix}events/000000000000/000000000000_worker_0.tfevents",
        f"{prefix}events/000000000010/000000000010_worker_0.tfevents",
        f"{prefix}index/000000000/000000000000_worker_0.json",
        f"{prefix}index/000000000/000000000010_worker_0.json",
        f"{prefix}training_job_end.ts",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise RuntimeError('upside down')", "RuntimeError: upside down, exit code: 1"),
        ("(ml / 'output/failure').write_text('said ' * 500); sys.exit(3)", ", exit code: 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by signal SIGKILL"),
        pytest.param("os.kill(os.getpid(), signal.SIGSEGV)", "ended by signal SIGSEGV", marks=pytest.mark.nightly),
        (
            "os.symlink('/etc/passwd', ml / 'output/failure'); sys.exit(2)",
            "AlgorithmError: The training container printed nothing before it failed., exit code: 2",
        ),
        ("os.mkfifo(ml / 'output/failure'); sys.exit(2)", "printed nothing"),
    ],
)
def test_failing_script_is_an_algorithm_error(harness: JobHarness, script: str, reason: str) -> None:
    done = harness.run(harness.request(script=script, DebugHookConfig=harness.hook()))
    assert stages(done) == ["Starting", "Downloading", "Training", "Uploading", "Failed"]
    assert done["FailureReason"].startswith("AlgorithmError: ")
    assert reason in done["FailureReason"]
    assert len(done["FailureReason"]) <= 1024
    assert "ModelArtifacts" not in done
    assert harness.stored() == ["tensors/job/debug-output/training_job_end.ts"]


REACH = """
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 5)
except OSError as error:
    print("not reached", flush=True)
"""


def test_an_isolated_job_reaches_nothing_and_its_tensors_and_model_reach_s3(harness: JobHarness) -> None:
    if not harness.runtime.grant.network:
        pytest.skip("the kernel grants no namespaces")
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = REACH.format(port=server.getsockname()[1])
        script += "(ml / 'model/m').touch()\n(ml / 'output/tensors/claim.smd').touch()\n"
        script += "time.sleep(600)"
        request = harness.request(script=script, EnableNetworkIsolation=True, DebugHookConfig=harness.hook())
        request["DebugRuleConfigurations"] = [harness.rule("Passes", "pass")]
        harness.jobs.training.create(REGION, request)
        harness.wait_for_stage("Training")
        wait_until(lambda: "not reached" in harness.log(TRAINING_LOG, "job/"), harness.describe)
        # A stopped job leaves its rules little time, which may be too little to start in.
        rules = "DebugRuleEvaluationStatuses"
        wait_until(lambda: harness.describe()[rules][0]["RuleEvaluationStatus"] != "InProgress", harness.describe)
        harness.jobs.training.stop(REGION, "job")
        done = harness.wait()
    assert (done["TrainingJobStatus"], done["EnableNetworkIsolation"]) == ("Stopped", True)
    assert "tensors/job/debug-output/training_job_end.ts" in harness.stored()
    assert "out/job/output/model.tar.gz" in harness.stored()
    assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"


@pytest.mark.parametrize("instances", [1, 2])
def test_what_cannot_be_isolated_is_not_run(harness: JobHarness, instances: int) -> None:
    harness.runtime.grant = NamespaceGrant(mounts=False, network=False, refusal="Operation not permitted")
    request = harness.request(script="print('ran')", EnableNetworkIsolation=True)
    request["ResourceConfig"]["InstanceCount"] = instances
    done = harness.run(request)
    assert done["TrainingJobStatus"] == "Failed"
    assert done["FailureReason"].startswith("ClientError: ")
    assert "--runtime docker" in done["FailureReason"]
    assert instances > 1 or "Operation not permitted" in done["FailureReason"]


def test_stop_sends_sigterm_and_uploads_the_model(harness: JobHarness) -> None:
    script = """
def stop(*_):
    (ml / "model/last.txt").write_text("saved in time")
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(600)
"""
    harness.jobs.training.create(REGION, harness.request(script=script), "of the client")
    wait_until_ready(harness)
    assert harness.log(TRAINING_LOG, "job/")[0].startswith("smdebug-emulator: of the client. ")
    assert harness.jobs.training.stop(REGION, "job").status == "Stopping"
    harness.jobs.training.stop(REGION, "job")
    done = harness.wait()
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert stages(done) == ["Starting", "Downloading", "Training", "Stopping", "Stopped"]
    assert unpack(harness, "out/job/output/model.tar.gz") == {"last.txt": b"saved in time"}
    with pytest.raises(ValidationException) as refused:
        harness.jobs.training.stop(REGION, "job")
    assert refused.value.message == "The request was rejected because the training job is in status Stopped."


def test_a_stopped_job_is_stopped_also_where_its_results_are_refused(harness: JobHarness) -> None:
    script = """
for place in ("model", "output/data"):
    (ml / place).rmdir()
    (ml / place).symlink_to(ml / "input")
print("ready", flush=True)
time.sleep(600)
"""
    harness.jobs.training.create(REGION, harness.request(script=script))
    wait_until_ready(harness)
    harness.jobs.training.stop(REGION, "job")
    done = harness.wait()
    assert done["TrainingJobStatus"] == "Stopped"
    assert "ModelArtifacts" not in done
    assert harness.stored() == []
    assert harness.log(TRAINING_LOG, "job/")[-1] == (
        "smdebug-emulator: Not read, because only plain files and folders of the job's own are: "
        "'model' is a symbolic link; 'output/data' is a symbolic link."
    )


def test_a_failed_job_has_the_reason_of_its_script_also_where_its_output_is_refused(harness: JobHarness) -> None:
    script = """
(ml / "output/data").rmdir()
(ml / "output/data").symlink_to(ml / "input")
(ml / "output/failure").write_text("no convergence")
sys.exit(1)
"""
    done = harness.run(harness.request(script=script))
    assert (done["TrainingJobStatus"], done["FailureReason"].splitlines()[0]) == (
        "Failed",
        "AlgorithmError: no convergence, exit code: 1",
    )
    assert harness.log(TRAINING_LOG, "job/")[-1].endswith(": 'output/data' is a symbolic link.")


@pytest.mark.parametrize("compression", ["GZIP", pytest.param("NONE", marks=pytest.mark.nightly)])
def test_a_model_with_a_file_that_has_another_name_is_refused(harness: JobHarness, compression: str) -> None:
    # Where the kernel grants namespaces, a name outside of /opt/ml cannot be given at all.
    script = "(ml / 'secret').write_text('swordfish')\nos.link(ml / 'secret', ml / 'model/weights')"
    request = harness.request(script=script)
    request["OutputDataConfig"]["CompressionType"] = compression
    done = harness.run(request)
    assert done["TrainingJobStatus"] == "Failed"
    assert "'model/weights' has more than one name (hard links)" in done["FailureReason"]
    kept = re.search(r"What the container left is kept in (\S+)\.$", done["FailureReason"])
    assert kept is not None
    assert Path(kept[1], "algo-1/model/weights").exists()
    assert harness.stored() == []


def test_script_that_ignores_sigterm_is_killed_after_the_grace(harness: JobHarness) -> None:
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)"
    harness.jobs.training.create(REGION, harness.request(script=script))
    wait_until_ready(harness)
    start = time.monotonic()
    harness.jobs.training.stop(REGION, "job")
    assert harness.wait()["TrainingJobStatus"] == "Stopped"
    assert time.monotonic() - start >= 1.9


def test_time_that_is_up_is_max_runtime_exceeded(harness: JobHarness) -> None:
    request = harness.request(script="time.sleep(600)", StoppingCondition={"MaxRuntimeInSeconds": 1})
    done = harness.run(request)
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert stages(done)[-2:] == ["Stopping", "MaxRuntimeExceeded"]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"OutputDataConfig": {"S3OutputPath": "s3://no-such-bucket-at-all/x"}}, "no-such-bucket-at-all"),
        ({"DebugHookConfig": {"S3OutputPath": "s3://no-such-bucket-at-all/x"}}, "DebugHookConfig.S3OutputPath"),
        ({"TensorBoardOutputConfig": {"S3OutputPath": "s3://no-such-bucket-at-all/x"}}, "TensorBoardOutputConfig.S3"),
        ({"DebugHookConfig": {"S3OutputPath": "s3://B/x"}}, "bucket's name has 3 to 63"),
        ({"CheckpointConfig": {"S3Uri": "s3://no-such-bucket-at-all/x"}}, "CheckpointConfig.S3Uri"),
        ({"CheckpointConfig": {"S3Uri": "s3://x/y", "LocalPath": "/opt/ml/../etc"}}, "CheckpointConfig.LocalPath"),
    ],
)
def test_request_that_cannot_run_is_a_client_error(harness: JobHarness, members: dict[str, Any], said: str) -> None:
    done = harness.run(harness.request(**members))
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Failed", "Failed")
    assert done["FailureReason"].startswith("ClientError: ")
    assert said in done["FailureReason"]
    assert "Training" not in stages(done)


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ({"TrainingImage": "nobody-built-this:1.0"}, "nobody-built-this:1.0"),
        ({"MetricDefinitions": [{"Name": "x", "Regex": "("}]}, "not a regular expression"),
        ({"ContainerEntrypoint": ["/no/such/program"]}, "/no/such/program"),
    ],
)
def test_algorithm_that_cannot_run_is_a_client_error(harness: JobHarness, algorithm: dict[str, Any], said: str) -> None:
    request = harness.request(DebugHookConfig=harness.hook())
    request["AlgorithmSpecification"] |= algorithm
    done = harness.run(request)
    assert done["TrainingJobStatus"] == "Failed"
    assert done["FailureReason"].startswith("ClientError: ")
    assert said in done["FailureReason"]
    # create_trial sees that no tensors come, and does not wait for them.
    assert harness.stored() == ["tensors/job/debug-output/training_job_end.ts"]


def test_a_job_trains_once_its_container_has_come_to_its_command(
    harness: JobHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, it installs what its image holds, which its log shows."""
    prepares = threading.Event()
    monkeypatch.setattr(LocalProcesses, "is_preparing", lambda _self, _id: not prepares.is_set())
    script = "import time; print('fetching', flush=True); time.sleep(600)"
    harness.jobs.training.create(REGION, harness.request(script=script))
    wait_until_logged(harness, "fetching")
    description = harness.describe()
    assert (description["SecondaryStatus"], description["TrainingJobStatus"]) == ("Downloading", "InProgress")
    prepares.set()
    harness.wait_for_stage("Training")
    harness.jobs.training.stop(REGION, "job")
    assert harness.wait()["TrainingJobStatus"] == "Stopped"


def test_a_job_is_stopped_while_its_container_prepares(harness: JobHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalProcesses, "is_preparing", lambda _self, _id: True)
    script = "import time; print('fetching', flush=True); time.sleep(600)"
    harness.jobs.training.create(REGION, harness.request(script=script))
    wait_until_logged(harness, "fetching")
    harness.jobs.training.stop(REGION, "job")
    done = harness.wait()
    assert stages(done) == ["Starting", "Downloading", "Stopping", "Stopped"]


def test_bucket_that_goes_away_fails_the_job_and_keeps_its_files(harness: JobHarness) -> None:
    script = "(ml / 'output/tensors/x').write_text('x')\nwhile not (ml / 'go').exists(): time.sleep(0.01)"
    other = harness.bucket + "-t"
    harness.s3.create_bucket(other)
    harness.jobs.training.create(
        REGION, harness.request(script=script, DebugHookConfig={"S3OutputPath": f"s3://{other}"})
    )
    wait_until(lambda: [each.key for each in harness.s3.list(other, "")] == ["job/debug-output/x"])
    harness.s3.delete(other, "job/debug-output/x")
    harness.s3._backend().delete_bucket(other)
    (folder,) = (harness.settings.state_dir / "jobs").iterdir()
    (folder / "algo-1" / "go").touch()
    done = harness.wait()
    assert done["TrainingJobStatus"] == "Failed"
    assert done["FailureReason"].startswith("ClientError: ")
    assert other in done["FailureReason"]
    assert str(folder) in done["FailureReason"]
    assert (folder / "algo-1/output/tensors/x").read_text() == "x"


def test_checkpoints_are_restored_and_synced_while_training_runs(harness: JobHarness) -> None:
    harness.s3.put(harness.bucket, "ckpt/epoch-1/w.bin", b"old")
    script = """
c = ml / "checkpoints"
assert (c / "epoch-1/w.bin").read_bytes() == b"old"
(c / "epoch-2").mkdir()
(c / "epoch-2/w.bin").write_bytes(b"new")
while not (ml / "go").exists(): time.sleep(0.01)
(c / "last.bin").write_bytes(b"last")
"""
    request = harness.request(script=script, CheckpointConfig={"S3Uri": f"s3://{harness.bucket}/ckpt"})
    harness.jobs.training.create(REGION, request)
    wait_until(lambda: "ckpt/epoch-2/w.bin" in harness.stored(), harness.describe)
    (folder,) = (harness.settings.state_dir / "jobs").iterdir()
    (folder / "algo-1" / "go").touch()
    assert harness.wait()["TrainingJobStatus"] == "Completed"
    assert harness.stored("ckpt") == ["ckpt/epoch-1/w.bin", "ckpt/epoch-2/w.bin", "ckpt/last.bin"]


def test_tensorboard_output_and_uncompressed_model(harness: JobHarness) -> None:
    script = "(ml / 'output/tensorboard/e.tfevents').write_text('e')\n(ml / 'model/m').write_text('m')"
    request = harness.request(
        script=script,
        TensorBoardOutputConfig={"S3OutputPath": f"s3://{harness.bucket}/tb"},
        OutputDataConfig={"S3OutputPath": f"s3://{harness.bucket}/out/", "CompressionType": "NONE"},
    )
    done = harness.run(request)
    assert done["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://{harness.bucket}/out/job/output/model/"
    assert harness.stored() == ["out/job/output/model/m", "tb/job/tensorboard-output/e.tfevents"]


def test_defect_in_one_job_fails_it_and_no_other(harness: JobHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    from emulator.jobs.runs import training_attempt
    from emulator.jobs.staging.channels import download_channels

    def break_one(request: dict[str, Any], *arguments: Any) -> None:
        if request["TrainingJobName"] == "sick":
            raise ZeroDivisionError("a defect")
        download_channels(request, *arguments)

    monkeypatch.setattr(training_attempt, "download_channels", break_one)
    harness.jobs.training.create(REGION, harness.request("sick"))
    assert harness.run(harness.request("healthy"))["TrainingJobStatus"] == "Completed"
    assert harness.wait("sick")["FailureReason"] == (
        "InternalServerError: ZeroDivisionError: a defect. The emulator's log has the traceback."
    )


def test_close_stops_running_jobs_and_their_rules(harness: JobHarness) -> None:
    request = harness.request(
        script="time.sleep(600)", DebugHookConfig=harness.hook(), DebugRuleConfigurations=[harness.rule("R", "wait")]
    )
    harness.jobs.training.create(REGION, request)
    wait_until(lambda: len(harness.runtime.find({})) == 2)
    harness.jobs.close()
    done = harness.describe()
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert [each["RuleEvaluationStatus"] for each in done["DebugRuleEvaluationStatuses"]] == ["Stopped"]
    assert harness.runtime.find({}) == []
