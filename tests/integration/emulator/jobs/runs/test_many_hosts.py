"""Tests of jobs on several hosts: separate containers, one common end."""

import io
import json
import os
import signal
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from container_runtime.process.namespace_grant import probe_namespaces
from container_runtime.runtime import NetworkExhaustedError
from emulator.jobs.runs.containers import host_containers
from emulator.jobs.runs.containers.host_containers import HostContainers
from tests.integration.emulator.jobs.job_harness import ACCOUNT, REGION, JobHarness
from tests.integration.emulator.jobs.runs.killed_harness import WAIT_FOR_GO, let_go, recover, run_and_kill
from tests.waiting import wait_until

TWO = {"ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 1}}
# Each host knows its rank as an AWS script does.
RANK = """
resources = json.loads((ml / "input/config/resourceconfig.json").read_text())
rank = resources["hosts"].index(resources["current_host"])
def save(name, text):
    path = ml / "output/tensors" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name + ".tmp").write_text(text)
    path.with_name(path.name + ".tmp").rename(path)
"""
# No host gets past this before all have come to it.
MEET = """
import socket
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server((address, port)) as server:
        server.accept()[0].close()
else:
    while True:
        try:
            socket.create_connection((address, port)).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def _no_older_logs() -> None:
    """Two jobs of one name that start in the same second would share their streams."""
    from moto.logs.models import logs_backends

    logs_backends[ACCOUNT][REGION].groups.clear()


def request_two(harness: JobHarness, script: str, name: str = "job", **members: Any) -> dict[str, Any]:
    return harness.request(name, script=RANK + script, **(TWO | members))


def read_streams(name: str = "job") -> dict[str, list[str]]:
    from moto.logs.models import logs_backends

    group = logs_backends[ACCOUNT][REGION].groups.get("/aws/sagemaker/TrainingJobs")
    streams = group.streams if group else {}
    return {
        stream.removeprefix(f"{name}/").rsplit("-", 1)[0]: [event.message for event in content.events]
        for stream, content in streams.items()
        if stream.startswith(f"{name}/")
    }


def assert_nothing_left(harness: JobHarness) -> None:
    """The clean-up comes right after the job's last status."""

    def list_left() -> list[Any]:
        folders = (harness.settings.state_dir / "jobs").glob("*")
        return [*harness.runtime.find({}), *harness.runtime.find_networks({}), *folders]

    wait_until(lambda: list_left() == [], list_left)


def test_hosts_meet_and_their_outputs_come_together(harness: JobHarness) -> None:
    script = """
print("rank", rank, flush=True)
save(f"events/000000000000/000000000000_worker_{rank}.tfevents", "event")
save(f"index/000000000/000000000000_worker_{rank}.json", "index")
(ml / "model" / f"part-{rank}").write_text(f"of {rank}")
(ml / "model" / "same").write_text(f"of {rank}")
(ml / "model" / "folder").mkdir()
(ml / "model" / "folder" / f"deep-{rank}").touch()
(ml / "output/data" / f"data-{rank}").touch()
(ml / "checkpoints" / f"checkpoint-{rank}").touch()
"""
    checkpoints = {"S3Uri": f"s3://{harness.bucket}/c"}
    done = harness.run(
        request_two(harness, MEET + script, DebugHookConfig=harness.hook(), CheckpointConfig=checkpoints)
    )
    assert done["TrainingJobStatus"] == "Completed", done
    assert read_streams() == {"algo-1": ["rank 0"], "algo-2": ["rank 1"]}
    assert harness.stored("tensors/") == [
        "tensors/job/debug-output/events/000000000000/000000000000_worker_0.tfevents",
        "tensors/job/debug-output/events/000000000000/000000000000_worker_1.tfevents",
        "tensors/job/debug-output/index/000000000/000000000000_worker_0.json",
        "tensors/job/debug-output/index/000000000/000000000000_worker_1.json",
        "tensors/job/debug-output/training_job_end.ts",
    ]
    assert harness.stored("c/") == ["c/checkpoint-0", "c/checkpoint-1"]
    with tarfile.open(fileobj=io.BytesIO(harness.s3.get(harness.bucket, "out/job/output/model.tar.gz"))) as tar:
        assert {"part-0", "part-1", "folder/deep-0", "folder/deep-1"} <= set(tar.getnames())
        same = tar.extractfile("same")
        assert same is not None
        assert same.read() == b"of 0", "the first host's file counts"
    with tarfile.open(fileobj=io.BytesIO(harness.s3.get(harness.bucket, "out/job/output/output.tar.gz"))) as tar:
        assert tar.getnames() == ["data-0", "data-1"]
    assert_nothing_left(harness)


def test_hosts_that_save_as_one_worker_are_named_once(harness: JobHarness) -> None:
    script = """
for step in range(3):
    save(f"events/{step:012d}/{step:012d}_worker_0.tfevents", f"event {rank}")
    save(f"index/000000000/{step:012d}_worker_0.json", f"index {rank}")
"""
    done = harness.run(request_two(harness, MEET + script, DebugHookConfig=harness.hook()))
    assert done["TrainingJobStatus"] == "Completed", done
    warned = harness.store.list_warnings(harness.jobs.training.get(REGION, "job").arn)
    assert [each.code for each in warned] == ["WorkerNotUnique"]
    assert "both save tensors as worker_0" in warned[0].text
    folder = "tensors/job/debug-output"
    for name in (f"{step:012d}_worker_0" for step in range(3)):
        event = harness.s3.get(harness.bucket, f"{folder}/events/{name[:12]}/{name}.tfevents")
        index = harness.s3.get(harness.bucket, f"{folder}/index/000000000/{name}.json")
        assert event.split()[1] == index.split()[1], "both are of one host"


def read_holder(tmp_path: Path) -> int:
    """The process that holds the network of a job's isolated hosts."""
    (path,) = (tmp_path / "processes-networks").glob("*.json")
    return int(json.loads(path.read_text())["holder"]["pid"])


@pytest.mark.skipif(not probe_namespaces().network, reason="the kernel grants no namespaces")
def test_isolated_hosts_outlast_what_holds_their_network(harness: JobHarness, tmp_path: Path) -> None:
    script = MEET + "(ml / 'ready').touch()" + WAIT_FOR_GO + "print(rank, [name for _, name in socket.if_nameindex()])"
    harness.jobs.training.create(REGION, request_two(harness, script, EnableNetworkIsolation=True))
    wait_until(lambda: len(list((harness.settings.state_dir / "jobs").glob("*/*/ready"))) == 2, harness.describe)
    holder = read_holder(tmp_path)
    os.kill(holder, signal.SIGKILL)
    let_go(harness)
    assert harness.wait()["TrainingJobStatus"] == "Completed", harness.describe()
    lines = [line for lines in read_streams().values() for line in lines]
    assert sorted(line[0] for line in lines) == ["0", "1"]
    assert all("'lo'" in line and "'e" not in line for line in lines), lines
    assert_nothing_left(harness)
    assert not Path(f"/proc/{holder}").exists(), "not even a zombie"


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(not probe_namespaces().network, reason="the kernel grants no namespaces")
def test_isolated_hosts_of_a_killed_emulator_are_reattached_without_what_held_their_network(tmp_path: Path) -> None:
    script = RANK + MEET + "(ml / 'ready').touch()" + WAIT_FOR_GO + "print('last', rank, flush=True)\n"
    members = TWO | {"EnableNetworkIsolation": True}
    bucket = run_and_kill(tmp_path, script, condition=is_training(2), members=members)
    holder = read_holder(tmp_path)
    os.kill(holder, signal.SIGKILL)
    with recover(tmp_path, bucket) as harness:
        harness.jobs.recover()
        let_go(harness)
        assert harness.wait()["TrainingJobStatus"] == "Completed", harness.describe()
        assert read_streams() == {"algo-1": ["last 0"], "algo-2": ["last 1"]}
        assert_nothing_left(harness)


@pytest.mark.nightly  # hosts' files come together above; test_training.py has a model without compression
def test_uncompressed_model_is_of_all_hosts(harness: JobHarness) -> None:
    script = "(ml / 'model' / 'same').write_text(str(rank)); (ml / 'model' / f'part-{rank}').touch()"
    output = {"S3OutputPath": f"s3://{harness.bucket}/out", "CompressionType": "NONE"}
    harness.run(request_two(harness, script, OutputDataConfig=output))
    prefix = "out/job/output/model/"
    assert harness.stored(prefix) == [prefix + "part-0", prefix + "part-1", prefix + "same"]
    assert harness.s3.get(harness.bucket, prefix + "same") == b"0"


def test_end_of_tensors_waits_for_the_last_host(harness: JobHarness) -> None:
    script = """
save(f"collections/000000000/worker_{rank}_collections.json", "{}")
while rank == 1 and not (ml / 'go').exists(): time.sleep(0.01)
save(f"index/000000000/000000000000_worker_{rank}.json", "index")
"""
    harness.jobs.training.create(REGION, request_two(harness, script, DebugHookConfig=harness.hook()))
    prefix = "tensors/job/debug-output/"
    harness.wait_for_stage("Training")  # the first host may end before the second begins
    wait_until(lambda: f"{prefix}index/000000000/000000000000_worker_0.json" in harness.stored(), harness.describe)
    wait_until(lambda: len([each for each in harness.runtime.find({}) if each.running]) == 1)
    assert f"{prefix}training_job_end.ts" not in harness.stored()
    assert harness.describe()["SecondaryStatus"] == "Training"
    let_go(harness)
    assert harness.wait()["TrainingJobStatus"] == "Completed"
    assert harness.stored(prefix)[-3:] == [
        f"{prefix}index/000000000/000000000000_worker_0.json",
        f"{prefix}index/000000000/000000000000_worker_1.json",
        f"{prefix}training_job_end.ts",
    ]


def test_host_that_dies_fails_the_job_and_stops_the_others_at_once(harness: JobHarness) -> None:
    saved = 'save(f"index/000000000/000000000000_worker_{rank}.json", "index")\n'
    script = """
if rank == 1:
    (ml / "output/failure").write_text("the second worker gave up")
    sys.exit(3)
time.sleep(600)
"""
    started = time.monotonic()
    done = harness.run(request_two(harness, saved + MEET + script, DebugHookConfig=harness.hook()))
    assert time.monotonic() - started < 400, "the first host was stopped"
    assert done["TrainingJobStatus"] == "Failed"
    assert done["FailureReason"] == "AlgorithmError: algo-2: the second worker gave up, exit code: 3"
    assert "tensors/job/debug-output/index/000000000/000000000000_worker_0.json" in harness.stored()
    assert "tensors/job/debug-output/training_job_end.ts" in harness.stored()
    assert "ModelArtifacts" not in done
    assert_nothing_left(harness)


def test_host_that_fails_for_having_lost_another_is_named_after_it(harness: JobHarness) -> None:
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit('lost the connection'))\n"
    end = "if rank == 1: sys.exit('out of ideas')\ntime.sleep(600)"
    done = harness.run(request_two(harness, handler + MEET + end))
    assert done["FailureReason"] == (
        "AlgorithmError: algo-2: out of ideas, exit code: 1; algo-1: lost the connection, exit code: 1"
    )


def test_stop_reaches_every_host(harness: JobHarness) -> None:
    script = """
def stop(*_):
    (ml / "model" / f"saved-{rank}").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
(ml / "ready").touch()
time.sleep(600)
"""
    harness.jobs.training.create(REGION, request_two(harness, script))
    wait_until(lambda: len(list((harness.settings.state_dir / "jobs").glob("*/*/ready"))) == 2, harness.describe)
    harness.wait_for_stage("Training")
    harness.jobs.training.stop(REGION, "job")
    done = harness.wait()
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "Stopped")
    with tarfile.open(fileobj=io.BytesIO(harness.s3.get(harness.bucket, "out/job/output/model.tar.gz"))) as tar:
        assert tar.getnames() == ["saved-0", "saved-1"]
    assert_nothing_left(harness)


@pytest.mark.nightly  # one host is in test_training.py, and a stop of every host above
def test_time_that_is_up_ends_every_host(harness: JobHarness) -> None:
    done = harness.run(request_two(harness, "time.sleep(600)", StoppingCondition={"MaxRuntimeInSeconds": 1}))
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert_nothing_left(harness)


@pytest.mark.nightly  # a failure of one host is above
def test_time_that_is_up_while_the_others_are_stopped_hides_no_failure(
    harness: JobHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = 0
    ask_stop = HostContainers.ask_stop

    def stop_and_let_the_time_pass(containers: HostContainers, grace_seconds: float) -> None:
        nonlocal hours
        hours += 1
        ask_stop(containers, grace_seconds)

    # The time is up as soon as the others are to be stopped, and before the deaf one is killed.
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600 * hours, sleep=time.sleep)
    monkeypatch.setattr(host_containers, "time", clock)
    monkeypatch.setattr(host_containers, "FAILURE_GRACE_SECONDS", 0.5)
    monkeypatch.setattr(HostContainers, "ask_stop", stop_and_let_the_time_pass)
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    end = "if rank == 1: sys.exit('out of ideas')\ntime.sleep(600)"
    done = harness.run(request_two(harness, deaf + MEET + end, StoppingCondition={"MaxRuntimeInSeconds": 600}))
    assert done["TrainingJobStatus"] == "Failed"
    assert done["FailureReason"] == "AlgorithmError: algo-2: out of ideas, exit code: 1"


@pytest.mark.nightly  # the contract of back ends has two networks at once
def test_two_jobs_at_once_meet_their_own(harness: JobHarness) -> None:
    script = MEET + "print(os.environ['TRAINING_JOB_NAME'], address, port)"
    names = ["first", "second"]
    for name in names:
        harness.jobs.training.create(REGION, request_two(harness, script, name))
    for name in names:
        assert harness.wait(name)["TrainingJobStatus"] == "Completed"
    said = {line for name in names for lines in read_streams(name).values() for line in lines}
    assert len(said) == 2, "each job has an address and a port of its own"
    assert_nothing_left(harness)


def test_hosts_of_two_groups_know_theirs(harness: JobHarness) -> None:
    groups = [
        {"InstanceGroupName": name, "InstanceType": "ml.m5.large", "InstanceCount": 1} for name in ("one", "other")
    ]
    script = "print(resources['current_group_name'], len(resources['instance_groups']))"
    resources = {"InstanceGroups": groups, "VolumeSizeInGB": 1}
    assert harness.run(request_two(harness, script, ResourceConfig=resources))["TrainingJobStatus"] == "Completed"
    assert read_streams() == {"algo-1": ["one 2"], "algo-2": ["other 2"]}


def test_second_host_that_does_not_start_takes_the_first_with_it(
    harness: JobHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    from container_runtime.runtime import ContainerStartError

    real = harness.runtime.start

    def refuse_second(spec: Any) -> str:
        if spec.hostname == "algo-2":
            raise ContainerStartError("no harness for algo-2")
        return real(spec)

    monkeypatch.setattr(harness.runtime, "start", refuse_second)
    done = harness.run(request_two(harness, "time.sleep(600)"))
    assert done["FailureReason"] == "ClientError: no harness for algo-2"
    assert_nothing_left(harness)


def test_lack_of_networks_is_a_capacity_error(harness: JobHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **_members: Any) -> None:
        raise NetworkExhaustedError("no address range is left")

    monkeypatch.setattr(harness.runtime, "create_network", refuse)
    done = harness.run(request_two(harness, ""))
    assert done["FailureReason"] == "CapacityError: no address range is left"
    assert_nothing_left(harness)


def is_training(hosts: int) -> str:
    return (
        f"len(list((harness.settings.state_dir / 'jobs').glob('*/*/ready'))) == {hosts} "
        "and harness.describe()['SecondaryStatus'] == 'Training'"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status"), [pytest.param("", "Completed", marks=pytest.mark.nightly), ("sys.exit(4 * rank)", "Failed")]
)
def test_killed_emulator_reattaches_every_host(tmp_path: Path, end: str, status: str) -> None:
    script = RANK + "(ml / 'ready').touch()" + WAIT_FOR_GO + "print('last', rank, flush=True)\n" + end
    bucket = run_and_kill(tmp_path, script, condition=is_training(2), members=TWO)
    with recover(tmp_path, bucket) as harness:
        harness.jobs.recover()
        assert harness.describe()["SecondaryStatus"] == "Training"
        # The first host first: the end of one that fails is the end of the others.
        for host in ("algo-1", "algo-2"):
            let_go(harness, host)
            wait_until(lambda host=host: read_streams().get(host), host)  # type: ignore[misc]
        done = harness.wait()
        assert done["TrainingJobStatus"] == status, done
        if status == "Failed":
            assert done["FailureReason"] == "AlgorithmError: algo-2: last 1, exit code: 4"
        assert read_streams() == {"algo-1": ["last 0"], "algo-2": ["last 1"]}
        assert_nothing_left(harness)


@pytest.mark.slow
@pytest.mark.nightly
def test_restored_checkpoint_is_not_sent_back_after_a_restart(tmp_path: Path) -> None:
    """The second host still has the old one; only the first has saved it anew."""
    script = RANK + "checkpoint = ml / 'checkpoints' / 'last'\nprint(checkpoint.read_text(), flush=True)\n"
    script += "if rank == 0: checkpoint.write_text('new')\n(ml / 'ready').touch()" + WAIT_FOR_GO
    members = TWO | {"CheckpointConfig": {"S3Uri": "s3://checkpoints-of-two/c"}}
    before = "[harness.s3.create_bucket('checkpoints-of-two'), harness.s3.put('checkpoints-of-two', 'c/last', b'old')]"
    bucket = run_and_kill(tmp_path, script, condition=is_training(2), members=members, before=before)
    with recover(tmp_path, bucket) as harness:
        harness.s3.create_bucket("checkpoints-of-two")
        harness.jobs.recover()
        let_go(harness)
        assert harness.wait()["TrainingJobStatus"] == "Completed"
        assert read_streams() == {"algo-1": ["old"], "algo-2": ["old"]}
        assert harness.s3.get("checkpoints-of-two", "c/last") == b"new"
        assert_nothing_left(harness)


@pytest.mark.slow
def test_job_that_lacks_a_host_after_a_restart_begins_again_as_a_whole(tmp_path: Path) -> None:
    """Also the host whose container is there yet: it is ended, and leaves nothing."""
    script = RANK + "save(f'early-{rank}', '')\n(ml / 'ready').touch()" + WAIT_FOR_GO
    bucket = run_and_kill(tmp_path, script, condition=is_training(2), members=TWO)
    with recover(tmp_path, bucket) as harness:
        gone = next(each for each in harness.runtime.find({}) if each.name.endswith("algo-2"))
        harness.runtime.remove(gone.id)
        harness.jobs.recover()
        harness.wait_for_stage("Training")
        let_go(harness)
        done = harness.wait()
        assert done["TrainingJobStatus"] == "Completed", done
        assert [each["Status"] for each in done["SecondaryStatusTransitions"]].count("Restarting") == 1
        assert {"tensors/job/debug-output/early-0", "tensors/job/debug-output/early-1"} <= set(harness.stored())
        assert_nothing_left(harness)
