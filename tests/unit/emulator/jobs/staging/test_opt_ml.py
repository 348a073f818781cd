import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from container_runtime.spec import Mount
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.training_job import new_training_job
from emulator.jobs.staging.hosts import Cluster, list_hosts
from emulator.jobs.staging.opt_ml import build_environment, locate_opt_ml, stage_opt_ml
from emulator.settings import Settings

REQUEST: dict[str, Any] = {
    "TrainingJobName": "job",
    "AlgorithmSpecification": {"TrainingInputMode": "File"},
    "HyperParameters": {"epochs": "3"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    "InputDataConfig": [
        {
            "ChannelName": "train",
            "ContentType": "text/csv",
            "DataSource": {"S3DataSource": {"S3DataDistributionType": "ShardedByS3Key"}},
        },
        {"ChannelName": "test", "InputMode": "FastFile", "DataSource": {"S3DataSource": {}}},
    ],
    "DebugHookConfig": {
        "S3OutputPath": "s3://bkt/t",
        "HookParameters": {"save_interval": "25"},
        "CollectionConfigurations": [{"CollectionName": "losses"}, {"CollectionName": "losses"}],
    },
    "CheckpointConfig": {"S3Uri": "s3://bkt/c", "LocalPath": "/opt/ml/my/checkpoints/"},
}


def in_container(mount: Mount, relative: str) -> str:
    return f"{mount.target}/{relative}"


def test_configuration_files(tmp_path: Path) -> None:
    opt_ml = locate_opt_ml(tmp_path, REQUEST)
    cluster = Cluster(list_hosts(REQUEST))
    stage_opt_ml(opt_ml, new_training_job("1", "r", "id", REQUEST, 0), cluster, cluster.hosts[0], in_container)
    files = {path.name: json.loads(path.read_text()) for path in (tmp_path / "input/config").iterdir()}
    assert files == {
        "hyperparameters.json": {"epochs": "3"},
        "inputdataconfig.json": {
            "train": {
                "TrainingInputMode": "File",
                "S3DistributionType": "ShardedByS3Key",
                "RecordWrapperType": "None",
                "ContentType": "text/csv",
            },
            "test": {
                "TrainingInputMode": "FastFile",
                "S3DistributionType": "FullyReplicated",
                "RecordWrapperType": "None",
            },
        },
        "resourceconfig.json": {
            "current_host": "algo-1",
            "current_instance_type": "ml.m5.large",
            "current_group_name": "homogeneousCluster",
            "hosts": ["algo-1"],
            "instance_groups": [
                {"instance_group_name": "homogeneousCluster", "instance_type": "ml.m5.large", "hosts": ["algo-1"]}
            ],
            "network_interface_name": "eth0",
        },
        "debughookconfig.json": REQUEST["DebugHookConfig"] | {"LocalPath": "/opt/ml/output/tensors"},
        "checkpointconfig.json": {"S3Uri": "s3://bkt/c", "LocalPath": "/opt/ml/my/checkpoints"},
    }
    for folder in ("model", "output/data", "output/tensors", "output/tensorboard", "my/checkpoints"):
        assert (tmp_path / folder).is_dir()
    assert not (tmp_path / "output/failure").exists()


def test_an_images_files_are_seen_beside_what_the_service_gives(tmp_path: Path) -> None:
    assert {"input", "model", "output", "my/checkpoints"} == {
        each for each in locate_opt_ml(tmp_path, REQUEST).mount.own or () if not each.startswith("output/")
    }
    without = {key: value for key, value in REQUEST.items() if key != "CheckpointConfig"}
    own = locate_opt_ml(tmp_path, without).mount.own
    assert own is not None
    assert "checkpoints" not in own, "an image may bring some"
    assert "code" not in own


@pytest.mark.parametrize(
    "path", ["/etc", "/opt/ml", "/opt/ml/../x", "output/tensors", "/opt/mlx/y", "/opt/ml/x/../../y"]
)
def test_local_path_outside_opt_ml_is_refused(tmp_path: Path, path: str) -> None:
    request = {"DebugHookConfig": {"S3OutputPath": "s3://bkt", "LocalPath": path}}
    with pytest.raises(RequestFailure, match=r"DebugHookConfig\.LocalPath"):
        locate_opt_ml(tmp_path, request)


def environment_of(folder: Path, request: dict[str, Any]) -> dict[str, str]:
    cluster, host = Cluster(list_hosts(request)), list_hosts(request)[0]
    job = new_training_job("123456789012", "eu-west-1", "id", request, 0)
    opt_ml, settings = locate_opt_ml(folder, request), Settings(state_dir=folder)
    return build_environment(opt_ml, job, cluster, host, settings, "http://10.0.0.1:4580", in_container)


def test_clients_in_a_container_outlast_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment_of(tmp_path, REQUEST).items():
        monkeypatch.setenv(name, value)
    client = boto3.session.Session().client("s3")
    assert client.meta.config.retries == {"mode": "standard", "total_max_attempts": 10}


@pytest.mark.parametrize("own", [{"AWS_RETRY_MODE": "legacy"}, {"AWS_MAX_ATTEMPTS": "1"}])
def test_retries_are_the_requests_where_it_names_any(tmp_path: Path, own: dict[str, str]) -> None:
    environment = environment_of(tmp_path, REQUEST | {"Environment": own})
    assert {name: value for name, value in environment.items() if name in {"AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS"}} == own


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy"])
def test_the_emulator_is_reached_past_the_proxy_of_the_request(tmp_path: Path, name: str) -> None:
    own = {name: "http://proxy.example:3128", "NO_PROXY": "intranet.example"}
    environment = environment_of(tmp_path, REQUEST | {"Environment": own})
    assert environment[name] == "http://proxy.example:3128"
    assert (environment["NO_PROXY"], environment["no_proxy"]) == ("10.0.0.1,intranet.example", "10.0.0.1")


def test_environment_of_the_request_cannot_change_the_services(tmp_path: Path) -> None:
    # Where its processes meet is the request's to say.
    own = {"MINE": "1", "MASTER_PORT": "7777"}
    request = REQUEST | {"Environment": {**own, "TRAINING_JOB_NAME": "other", "AWS_ENDPOINT_URL": "http://x"}}
    assert environment_of(tmp_path, request) == {
        **own,
        "MASTER_ADDR": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "TRAINING_JOB_NAME": "job",
        "TRAINING_JOB_ARN": "arn:aws:sagemaker:eu-west-1:123456789012:training-job/job",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "123456789012",
        "AWS_SECRET_ACCESS_KEY": "smdebug-emulator",
        "AWS_ENDPOINT_URL": "http://10.0.0.1:4580",
        "S3_ENDPOINT": "http://10.0.0.1:4580",
        "AWS_RETRY_MODE": "standard",
        "AWS_MAX_ATTEMPTS": "10",
        "SAGEMAKER_METRICS_DIRECTORY": "/opt/ml/output/metrics/sagemaker",
        "SMDEBUG_CONFIG_FILE_PATH": "/opt/ml/input/config/debughookconfig.json",
        "TENSORBOARD_CONFIG_FILE_PATH": "/opt/ml/input/config/tensorboardoutputconfig.json",
        "CHECKPOINT_CONFIG_FILE_PATH": "/opt/ml/input/config/checkpointconfig.json",
        "SMPROFILER_CONFIG_PATH": "/opt/ml/input/config/profilerconfig.json",
        "SMDEBUG_WARNINGS_PATH": "/opt/ml/output/warnings.jsonl",
    }
