"""Tests of torch.distributed on several hosts: one run, one common end.

The trial shows each host.
"""

import io
import json
import os
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from container_runtime.process.loopback_network import draw_port
from sdk_compat.demo.training_job import BUCKET, build_request, stage_inputs
from smdebug.trials import create_trial
from smdebug.trials.trial import Trial
from tests.end_to_end.finished_jobs import WaitForJob, download_model, download_run, read_streams
from tests.end_to_end.test_failures import build_script_request
from tests.end_to_end.test_restart import list_containers, list_processes_naming
from tests.running_emulator import BACK_ENDS, RunningEmulator
from tests.waiting import ENDED, wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "frameworks" / "pytorch_distributed" / "train.py"
# Not by a file: what is here need not be what the container sees.
AWAIT_GO = """
import boto3, botocore.config, botocore.exceptions, os, time
def await_go():
    client = boto3.client("s3", config=botocore.config.Config(retries={"total_max_attempts": 1}))
    while True:
        try:
            client.head_object(Bucket="%s", Key="go/" + os.environ["TRAINING_JOB_NAME"])
            return
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            time.sleep(0.1)  # not yet, or the emulator is away
"""
AWAIT_GO %= BUCKET
EVERYTHING = {
    "S3OutputPath": f"s3://{BUCKET}/tensors",
    "HookParameters": {"include_workers": "all", "save_interval": "50"},
    "CollectionConfigurations": [{"CollectionName": name} for name in ("weights", "biases", "gradients", "losses")],
}


def build_hosts_request(emulator: RunningEmulator, name: str, script: str, count: int = 2) -> dict[str, Any]:
    request = build_script_request(emulator, name, script)
    request["ResourceConfig"]["InstanceCount"] = count
    request["DebugHookConfig"] = EVERYTHING
    return request


def list_networks() -> list[str]:
    import docker

    client = docker.from_env()
    try:
        names = [str(network.name) for network in client.networks.list()]
        return [name for name in names if name.startswith("smdebug-")]
    finally:
        client.close()


# unit/smdebug/test_training_toolkit.py has a script that mpirun starts once a process.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_mpirun_starts_the_processes_of_a_host(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob
) -> None:
    """What the SDK's distribution={"mpi": {"enabled": True, "processes_per_host": 2}} asks for.

    Each rank is a new interpreter of the launcher's, however warm the one is that started the launcher.
    """
    script = """
import os
from pathlib import Path
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
launcher = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
print(f"rank {world.rank} of {world.size}: {total}, started by {launcher}", flush=True)
"""
    request = build_script_request(staged, job_name, script)
    request["HyperParameters"] |= {
        "sagemaker_mpi_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": "2",
        "sagemaker_mpi_custom_mpi_options": '"-verbose"',
    }
    staged.client("sagemaker").create_training_job(**request)
    description, (text,) = wait_for_job(job_name), read_streams(staged, job_name).values()
    assert description["TrainingJobStatus"] == "Completed", (description, text)
    assert re.search("rank 0 of 2: 3, started by (mpirun|prte)", text), text
    assert re.search("rank 1 of 2: 3, started by (mpirun|prte)", text), text


@pytest.mark.any_back_end
def test_two_hosts_train_one_model_and_the_trial_shows_both(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob, tmp_path: Path
) -> None:
    request = build_hosts_request(staged, job_name, EXAMPLE.read_text(encoding="utf-8"))
    request["DebugRuleConfigurations"] = build_request(job_name, {})["DebugRuleConfigurations"][:1]
    staged.client("sagemaker").create_training_job(**request)
    description = wait_for_job(job_name)
    texts = read_streams(staged, job_name)
    assert description["TrainingJobStatus"] == "Completed", (description, texts)
    (rule,) = description["DebugRuleEvaluationStatuses"]
    assert rule["RuleEvaluationStatus"] == "NoIssuesFound", rule
    assert "rank 0 of 2" in texts["algo-1"]
    assert "rank 1 of 2" in texts["algo-2"]

    model = download_model(staged, description)
    assert sorted(model) == ["metrics-0.json", "metrics-1.json", "model.pt"]
    assert json.loads(model["metrics-1.json"])["test_accuracy"] > 0.9

    trial = create_trial(str(download_run(staged, BUCKET, job_name, tmp_path)))
    workers = ["worker_0", "worker_1"]
    assert trial.workers() == workers
    assert trial.loaded_all_steps
    steps = trial.steps()
    assert steps == [0, 50]
    losses = {}
    (loss_name,) = trial.tensor_names(collection="losses")
    for worker in workers:
        losses[worker] = [float(trial.tensor(loss_name).value(step, worker=worker)) for step in steps]
        assert losses[worker][0] == pytest.approx(np.log(10), abs=0.3), "ten classes, nothing learned yet"
        assert losses[worker][1] < losses[worker][0] / 2
    assert losses["worker_0"] != losses["worker_1"], "each worker has a part of the data of its own"
    for name in trial.tensor_names(collection="weights"):
        assert trial.tensor(name).workers(50) == workers
        first, second = (trial.tensor(name).value(50, worker=worker) for worker in workers)
        np.testing.assert_array_equal(first, second, err_msg=f"{name}: all workers step alike")
    data = staged.client("s3").get_object(Bucket=BUCKET, Key="data/digits.npz")["Body"].read()
    with np.load(io.BytesIO(data)) as digits:
        for rank, worker in enumerate(workers):
            for step in steps:
                expected = compute_gradients(trial, digits["images"], digits["labels"], step, rank)
                for name, gradient in expected.items():
                    saved = trial.tensor(f"gradient/{name}").value(step, worker=worker)
                    np.testing.assert_allclose(saved, gradient, rtol=1e-4, atol=1e-6, err_msg=f"{worker} {name}")


# unit/smdebug/test_training_toolkit.py has what torchrun would set.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_the_script_of_many_hosts_trains_on_one(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob
) -> None:
    source = EXAMPLE.read_text(encoding="utf-8")
    # As torchrun would have started it: what it needs to meet the others is in the environment.
    source = source.replace('rank=hosts.index(os.environ["SM_CURRENT_HOST"]), world_size=len(hosts)', "")
    assert 'init_process_group("gloo", )' in source
    request = build_hosts_request(staged, job_name, source, count=1)
    request["HyperParameters"]["sagemaker_torch_distributed_enabled"] = "true"
    staged.client("sagemaker").create_training_job(**request)
    description = wait_for_job(job_name)
    texts = read_streams(staged, job_name)
    assert description["TrainingJobStatus"] == "Completed", (description, texts)
    assert "rank 0 of 1" in texts["algo-1"]


def compute_gradients(
    trial: Trial, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], step: int, rank: int
) -> dict[str, np.ndarray[Any, Any]]:
    """What autograd gives for the batch that one worker had at a step, by the weights that the trial has for it.

    The example as it is written down: two hosts, 64 images a batch, the sampler's order of the epoch. A worker's saved
    gradient is that of its own batch, as upstream's is; what the optimizer applies is the mean of all workers'.
    """
    import torch
    from torch.nn import functional
    from torch.utils.data import DistributedSampler

    held_out = len(images) // 5
    count = len(images) - held_out
    dataset: Any = range(count)  # the sampler only asks for its length
    sampler: Any = DistributedSampler(dataset, num_replicas=2, rank=rank, seed=0, drop_last=True)
    epoch, batch = divmod(step, count // 2 // 64)
    sampler.set_epoch(epoch)
    chosen = [held_out + index for index in sampler][batch * 64 : (batch + 1) * 64]
    weights = {name: torch.tensor(trial.tensor(name).value(step)) for name in trial.tensor_names(collection="weights")}
    prefix = "DistributedDataParallel_module"
    biases = {name: torch.tensor(trial.tensor(name).value(step)) for name in trial.tensor_names(collection="biases")}
    parameters = {name: value.requires_grad_() for name, value in (weights | biases).items()}
    hidden = functional.linear(
        torch.from_numpy(images[chosen]), parameters[f"{prefix}.0.weight"], parameters[f"{prefix}.0.bias"]
    )
    output = functional.linear(
        functional.relu(hidden), parameters[f"{prefix}.2.weight"], parameters[f"{prefix}.2.bias"]
    )
    functional.cross_entropy(output, torch.from_numpy(labels[chosen])).backward()
    return {name: value.grad.numpy() for name, value in parameters.items() if value.grad is not None}


SLOW_AND_THEN_DEAD = f"""{AWAIT_GO}
import json, torch, torch.distributed as dist
hosts = json.loads(os.environ["SM_HOSTS"])
dist.init_process_group("gloo", rank=hosts.index(os.environ["SM_CURRENT_HOST"]), world_size=len(hosts))
rank = dist.get_rank()
network, loss_function = torch.nn.Linear(3, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(110 if rank == 0 else 60):
    optimizer.zero_grad()
    loss_function(network(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    optimizer.step()
if rank == 0:
    time.sleep(600)
await_go()
raise RuntimeError("the second worker is tired")
"""


# integration/emulator/jobs/runs/test_many_hosts.py has a host that dies and one that ends late, unit/smdebug/trials the
# steps that not all workers have saved.
@pytest.mark.nightly
@pytest.mark.any_back_end
def test_slow_worker_leaves_a_step_incomplete_and_its_death_ends_the_job(
    staged: RunningEmulator, job_name: str, wait_for_job: WaitForJob, tmp_path: Path
) -> None:
    workers = ["worker_0", "worker_1"]
    staged.client("sagemaker").create_training_job(**build_hosts_request(staged, job_name, SLOW_AND_THEN_DEAD))
    prefix = f"tensors/{job_name}/debug-output/index/000000000/"

    def list_indexes() -> set[str]:
        listed = staged.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return {entry["Key"].removeprefix(prefix) for entry in listed.get("Contents", [])}

    wanted = {f"{step:012d}_{worker}.json" for worker in workers for step in (0, 50)} | {"000000000100_worker_0.json"}
    wait_until(lambda: list_indexes() == wanted, "the steps that the workers have saved")
    running = create_trial(str(download_run(staged, BUCKET, job_name, tmp_path / "running")))
    assert running.workers() == workers
    assert running.steps() == [0, 50]
    assert running.steps(show_incomplete_steps=True) == [0, 50, 100]
    assert not running.loaded_all_steps

    (folder,) = (staged.state_dir / "jobs").glob(f"{job_name}-*")
    staged.client("s3").put_object(Bucket=BUCKET, Key=f"go/{job_name}")
    description = wait_for_job(job_name)
    assert description["TrainingJobStatus"] == "Failed", description
    assert description["FailureReason"].startswith("AlgorithmError: algo-2: ")
    assert "the second worker is tired" in description["FailureReason"]
    assert "algo-1" not in description["FailureReason"], "it was only stopped"
    ended = create_trial(str(download_run(staged, BUCKET, job_name, tmp_path / "ended")))
    assert ended.steps() == [0, 50, 100]
    (name,) = ended.tensor_names(collection="losses")
    assert ended.tensor(name).workers(50) == workers
    assert ended.tensor(name).workers(100) == ["worker_0"]
    wait_until(lambda: not folder.exists(), "the files of both hosts to be gone")


@pytest.mark.nightly  # integration/emulator/jobs/runs/test_many_hosts.py has one job of two hosts
@pytest.mark.any_back_end
@pytest.mark.parametrize("runtime", BACK_ENDS)
def test_killed_emulator_reattaches_all_hosts_of_two_jobs_and_stop_ends_them(
    runtime: str, start_emulator: Callable[..., RunningEmulator], tmp_path: Path
) -> None:
    if runtime == "swarm" and (os.cpu_count() or 1) < 4:
        pytest.skip("two nodes of this machine's size have no room for four hosts at once")
    first = start_emulator(runtime, state_dir=tmp_path / "state", port=draw_port())
    stage_inputs(first.client("s3"))
    script = f"""{AWAIT_GO}
import json, pathlib, socket
hosts = json.loads(os.environ["SM_HOSTS"])
rank = hosts.index(os.environ["SM_CURRENT_HOST"])
job, port = os.environ["TRAINING_JOB_NAME"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(("", port)) as server:  # on all addresses, as torch's store
        connection, _ = server.accept()
        connection.sendall(job.encode())
        met = connection.recv(100).decode()
else:
    while True:
        try:
            connection = socket.create_connection((os.environ["MASTER_ADDR"], port))
            break
        except OSError:
            time.sleep(0.05)
    met = connection.recv(100).decode()
    connection.sendall(job.encode())
print("met", met, flush=True)
await_go()
pathlib.Path(os.environ["SM_MODEL_DIR"], "model-%s.txt" % rank).write_text("grown up")
"""
    names = ["survivor", "stopped"]
    for name in names:
        first.client("sagemaker").create_training_job(**build_hosts_request(first, name, script))

    def count_met() -> int:
        return sum(f"met {name}" in text for name in names for text in read_streams(first, name).values())

    wait_until(lambda: count_met() == 4, "the two hosts of each job to have met")
    first.kill()

    second = start_emulator(runtime, state_dir=tmp_path / "state", port=first.port)
    sagemaker = second.client("sagemaker")

    def describe(name: str) -> dict[str, Any]:
        description: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
        return description

    assert [describe(name)["SecondaryStatus"] for name in names] == ["Training", "Training"]
    sagemaker.stop_training_job(TrainingJobName="stopped")
    second.client("s3").put_object(Bucket=BUCKET, Key="go/survivor")
    for name, status in zip(names, ("Completed", "Stopped"), strict=True):
        wait_until(lambda name=name: describe(name)["TrainingJobStatus"] in ENDED, f"the end of {name}")  # type: ignore[misc]
        assert describe(name)["TrainingJobStatus"] == status, (describe(name), second.log_text())
    model = second.client("s3").get_object(Bucket=BUCKET, Key="output/survivor/output/model.tar.gz")["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(model)) as tar:
        assert sorted(tar.getnames()) == ["model-0.txt", "model-1.txt"]
    assert second.stop() == 0
    assert list_processes_naming(str(tmp_path)) == []
    assert list((tmp_path / "state" / "jobs").iterdir()) == []
    if runtime == "docker":
        assert list_containers(tmp_path) == []
        assert [name for name in list_networks() if "survivor" in name or "stopped" in name] == []
