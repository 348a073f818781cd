"""Tests of a job's hosts: number, mutual addresses and shares of channels."""

import socket
import uuid
from pathlib import Path
from typing import Any

import pytest

from container_runtime.runtime import Network
from emulator.jobs.staging.channels import download_channels
from emulator.jobs.staging.hosts import Cluster, Host, build_rendezvous_environment, describe_resources, list_hosts
from emulator.moto_services.s3.objects import ObjectStore

GROUPS: dict[str, Any] = {
    "AlgorithmSpecification": {"TrainingInputMode": "File"},
    "ResourceConfig": {
        "InstanceGroups": [
            {"InstanceGroupName": "chief", "InstanceType": "ml.m5.large", "InstanceCount": 1},
            {"InstanceGroupName": "workers", "InstanceType": "ml.c5.xlarge", "InstanceCount": 2},
        ]
    },
}
NETWORK = Network("n", {f"algo-{number}": f"127.80.1.{number}" for number in (1, 2, 3)}, "lo", 23_456)


def test_hosts_are_counted_through_all_groups() -> None:
    assert list_hosts({"ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2}}) == (
        Host("algo-1", "homogeneousCluster", "ml.m5.large"),
        Host("algo-2", "homogeneousCluster", "ml.m5.large"),
    )
    assert list_hosts(GROUPS) == (
        Host("algo-1", "chief", "ml.m5.large"),
        Host("algo-2", "workers", "ml.c5.xlarge"),
        Host("algo-3", "workers", "ml.c5.xlarge"),
    )
    assert list_hosts({}) == (Host("algo-1", "homogeneousCluster", None),)


def test_host_gets_the_addresses_of_the_others() -> None:
    cluster = Cluster(list_hosts(GROUPS), NETWORK)
    assert describe_resources(cluster, cluster.hosts[1]) == {
        "current_host": "127.80.1.2",
        "current_instance_type": "ml.c5.xlarge",
        "current_group_name": "workers",
        "hosts": ["127.80.1.1", "127.80.1.2", "127.80.1.3"],
        "instance_groups": [
            {"instance_group_name": "chief", "instance_type": "ml.m5.large", "hosts": ["127.80.1.1"]},
            {"instance_group_name": "workers", "instance_type": "ml.c5.xlarge", "hosts": ["127.80.1.2", "127.80.1.3"]},
        ],
        "network_interface_name": "lo",
    }
    meeting = {
        "MASTER_ADDR": "127.80.1.1",
        "MASTER_PORT": "23456",
        "NCCL_SOCKET_IFNAME": "lo",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    assert build_rendezvous_environment(cluster, cluster.hosts[1], GROUPS) == meeting
    torchrun = GROUPS | {"HyperParameters": {"sagemaker_torch_distributed_enabled": "true"}}
    assert build_rendezvous_environment(cluster, cluster.hosts[1], torchrun) == meeting | {
        "RANK": "1",
        "WORLD_SIZE": "3",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
    }


def test_host_alone_meets_itself() -> None:
    cluster = Cluster(list_hosts({}))
    assert describe_resources(cluster, cluster.hosts[0])["hosts"] == ["algo-1"]
    meeting = build_rendezvous_environment(cluster, cluster.hosts[0], {})
    with socket.create_server(("", int(meeting.pop("MASTER_PORT")))):
        assert meeting == {"MASTER_ADDR": "127.0.0.1", "NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}
    torchrun = {"HyperParameters": {"sagemaker_torch_distributed_enabled": "true"}}
    ranks = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    assert build_rendezvous_environment(cluster, cluster.hosts[0], torchrun).items() >= ranks.items()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, ["abcde", "abcde", "abcde"]),
        ({"S3DataDistributionType": "FullyReplicated"}, ["abcde", "abcde", "abcde"]),
        ({"S3DataDistributionType": "ShardedByS3Key"}, ["ad", "be", "c"]),
        ({"InstanceGroupNames": ["workers"]}, ["", "abcde", "abcde"]),
        ({"InstanceGroupNames": ["workers"], "S3DataDistributionType": "ShardedByS3Key"}, ["", "ace", "bd"]),
        ({"InstanceGroupNames": ["chief"], "S3DataDistributionType": "ShardedByS3Key"}, ["abcde", "", ""]),
    ],
)
def test_each_host_gets_its_share_of_a_channel(tmp_path: Path, source: dict[str, Any], expected: list[str]) -> None:
    s3, bucket = ObjectStore("123456789012", "us-east-1"), f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(bucket)
    for name in "abcde":
        s3.put(bucket, f"d/{name}", name.encode())
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{bucket}/d/"} | source
    request = {"InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": source}}]} | GROUPS
    hosts = list_hosts(request)
    for host in hosts:
        download_channels(request, s3, tmp_path / host.name, lambda: None, host, hosts)
    shares = ["".join(sorted(path.name for path in (tmp_path / host.name).rglob("train/*"))) for host in hosts]
    assert shares == expected


def test_more_hosts_than_objects_leave_some_with_an_empty_channel(tmp_path: Path) -> None:
    s3, bucket = ObjectStore("123456789012", "us-east-1"), f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(bucket)
    s3.put(bucket, "d/only", b"1")
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{bucket}/d/", "S3DataDistributionType": "ShardedByS3Key"}
    request = {"InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": source}}]} | GROUPS
    hosts = list_hosts(request)
    download_channels(request, s3, tmp_path, lambda: None, hosts[2], hosts)
    assert list((tmp_path / "train").iterdir()) == []
