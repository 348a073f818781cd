"""Tests of the files and folders of a processing job's hosts."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from container_runtime.runtime import Network
from container_runtime.spec import Mount
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.staging.hosts import Cluster, Host
from emulator.jobs.staging.processing import (
    ProcessingPaths,
    download_inputs,
    find_wrong_local_path,
    list_outputs,
    relative_path,
    stage_processing,
)
from emulator.moto_services.s3.objects import ObjectStore

HOSTS = tuple(Host(f"algo-{number}", "group", "ml.m5.large") for number in (1, 2))
CLUSTER = Cluster(HOSTS, Network("n", {"algo-1": "127.80.1.1", "algo-2": "127.80.1.2"}, "lo", 23_456))


def build_input(path: str | None, name: str = "i", **members: Any) -> dict[str, Any]:
    source = {"LocalPath": path} if path is not None else {}
    return {"InputName": name, "S3Input": {"S3DataType": "S3Prefix", **source, **members}}


def build_output(path: str | None, **members: Any) -> dict[str, Any]:
    place = {"LocalPath": path} if path is not None else {}
    return {"OutputName": "o", "S3Output": {"S3Uri": "s3://b/o", **place}, **members}


def build_request(inputs: list[Any] | None = None, outputs: list[Any] | None = None) -> dict[str, Any]:
    return {"ProcessingInputs": inputs or [], "ProcessingOutputConfig": {"Outputs": outputs or []}}


@pytest.mark.parametrize("path", ["/opt/ml/processing/a", "/opt/ml/processing/a/", "/opt/ml/processing/b/../a"])
def test_inputs_go_below_processing(path: str) -> None:
    assert find_wrong_local_path(build_request([build_input(path)])) is None
    assert relative_path(path) == "processing/a"


@pytest.mark.parametrize(
    "path", ["/opt/ml/processing", "/opt/ml/processing/..", "/opt/ml/a", "a", "/opt/ml/processing/a\0"]
)
def test_an_input_anywhere_else_is_refused(path: str) -> None:
    found = find_wrong_local_path(build_request([build_input("/opt/ml/processing/a"), build_input(path, "wrong")]))
    assert found == f"LocalPath of the input 'wrong' is {path!r}: it must begin with /opt/ml/processing/"


@pytest.mark.parametrize("path", ["/opt/ml/processing/o", "/opt/ml/model", "/opt/ml/mine/", "/opt/ml/outputs"])
def test_outputs_may_be_anywhere_below_opt_ml(path: str) -> None:
    assert find_wrong_local_path(build_request(outputs=[build_output(path)])) is None


@pytest.mark.parametrize(
    "path", ["/opt/ml", "/opt/ml/", "/opt/ml/config", "/opt/ml/output/x", "/data", "opt/ml/a", "/opt/ml/a\0"]
)
def test_an_output_in_a_folder_of_the_service_is_refused(path: str) -> None:
    found = find_wrong_local_path(build_request(outputs=[build_output(path)]))
    assert found is not None
    assert found.startswith(f"LocalPath of the output 'o' is {path!r}: it must be a folder below /opt/ml/ that")


def test_a_path_may_be_missing_only_where_the_application_has_its_own() -> None:
    assert find_wrong_local_path({}) is None
    own = build_request([{**build_input(None), "AppManaged": True}], [build_output(None, AppManaged=True)])
    assert find_wrong_local_path(own) is None
    assert list_outputs(own) == []
    for request, what in (
        (build_request([build_input(None)]), "The input 'i' has no LocalPath"),
        (build_request(outputs=[build_output("")]), "The output 'o' has no LocalPath"),
    ):
        found = find_wrong_local_path(request)
        assert found is not None
        assert found.startswith(what)


@pytest.mark.parametrize("target", ["/opt/ml", "/state/jobs/1/algo-1"])
def test_configuration_files_name_paths_as_the_container_sees_them(tmp_path: Path, target: str) -> None:
    request = {
        **build_request([build_input("/opt/ml/processing/in")], [build_output("/opt/ml/processing/out")]),
        "ProcessingJobName": "job",
        "AppSpecification": {"ContainerArguments": ["--in=/opt/ml/processing/in", 3]},
        "Tags": [{"Key": "k", "Value": "v"}],
        "ExperimentConfig": {},
    }
    job = ProcessingJob(
        account_id="123456789012",
        region="us-east-1",
        name="job",
        id="0123abcd",
        request=request,
        creation_ms=0,
        last_modified_ms=0,
    )
    mount = Mount(tmp_path, "/opt/ml")
    paths = ProcessingPaths(mount, lambda _mount, relative: f"{target}/{relative}")
    stage_processing(mount, job, CLUSTER, HOSTS[1], paths)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_dir()} == {
        "config",
        "output",
        "processing",
        "processing/in",
        "processing/out",
    }
    told = json.loads((tmp_path / "config/processingjobconfig.json").read_text())
    assert told["ProcessingJobArn"] == job.arn
    assert told["ProcessingInputs"][0]["S3Input"]["LocalPath"] == f"{target}/processing/in"
    assert told["AppSpecification"]["ContainerArguments"] == [f"--in={target}/processing/in", 3]
    assert not {"Tags", "ExperimentConfig"} & told.keys()
    resources = json.loads((tmp_path / "config/resourceconfig.json").read_text())
    assert resources == {"current_host": "127.80.1.2", "hosts": ["127.80.1.1", "127.80.1.2"]}
    assert (paths.note is None) is (target == "/opt/ml")
    assert f"/opt/ml is {target} here" in (paths.note or "/opt/ml is /opt/ml here")


@pytest.mark.parametrize(("distribution", "expected"), [("FullyReplicated", "abc"), ("ShardedByS3Key", "b")])
def test_inputs_are_downloaded_to_their_paths(tmp_path: Path, distribution: str, expected: str) -> None:
    s3, bucket = ObjectStore("123456789012", "us-east-1"), f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(bucket)
    for name in "abc":
        s3.put(bucket, f"d/{name}", name.encode())
    source = {"S3Uri": f"s3://{bucket}/d/", "S3DataDistributionType": distribution}
    request = build_request([build_input("/opt/ml/processing/in", **source)])
    download_inputs(request, s3, tmp_path, lambda: None, HOSTS[1], HOSTS)
    assert "".join(sorted(path.name for path in (tmp_path / "processing/in").iterdir())) == expected
    request = build_request([build_input("/opt/ml/processing/in", "lost", S3Uri=f"s3://{bucket}/none/")])
    with pytest.raises(RequestFailure, match="Data download of the input 'lost' failed: No object is at"):
        download_inputs(request, s3, tmp_path, lambda: None, HOSTS[0], HOSTS)
