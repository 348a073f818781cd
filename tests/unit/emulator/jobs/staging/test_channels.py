import json
from pathlib import Path
from typing import Any

import pytest

from emulator.exceptions import ValidationException
from emulator.jobs.model.failures import RequestFailure, StopAsked
from emulator.jobs.staging.channels import check_objects, download_channels, shuffle
from emulator.jobs.staging.hosts import list_hosts
from emulator.jobs.staging.pipes import parse_augmented_line
from emulator.moto_services.s3.objects import ObjectStore


def build(uri: str, kind: str = "S3Prefix", name: str = "train", **members: Any) -> dict[str, Any]:
    source = {"S3DataSource": {"S3DataType": kind, "S3Uri": uri}}
    return {
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "InputDataConfig": [{"ChannelName": name, "DataSource": source} | members],
    }


def download(request: dict[str, Any], s3: ObjectStore, folder: Path) -> dict[str, bytes]:
    hosts = list_hosts(request)
    download_channels(request, s3, folder, lambda: None, hosts[0], hosts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("data/train/", {"train/a.csv": b"1", "train/sub/b.csv": b"2"}),
        ("data/train", {"train/a.csv": b"1", "train/sub/b.csv": b"2", "train/train-more.csv": b"3"}),
        ("data/train/a.csv", {"train/a.csv": b"1"}),
        ("data/train/a", {"train/a.csv": b"1"}),
        ("data", {"train/train/a.csv": b"1", "train/train/sub/b.csv": b"2", "train/train-more.csv": b"3"}),
    ],
)
def test_prefix_becomes_files(
    s3: ObjectStore, bucket: str, tmp_path: Path, prefix: str, expected: dict[str, bytes]
) -> None:
    s3.put(bucket, "data/train/", b"")
    s3.put(bucket, "data/train/a.csv", b"1")
    s3.put(bucket, "data/train/sub/b.csv", b"2")
    s3.put(bucket, "data/train-more.csv", b"3")
    assert download(build(f"s3://{bucket}/{prefix}"), s3, tmp_path) == expected


def test_manifest_names_its_files(s3: ObjectStore, bucket: str, tmp_path: Path) -> None:
    s3.put(bucket, "data/a.csv", b"1")
    s3.put(bucket, "data/sub/b.csv", b"2")
    s3.put(bucket, "data/c.csv", b"3")
    s3.put(bucket, "m.json", json.dumps([{"prefix": f"s3://{bucket}/data/"}, "a.csv", "sub/b.csv"]).encode())
    found = download(build(f"s3://{bucket}/m.json", "ManifestFile"), s3, tmp_path)
    assert found == {"train/a.csv": b"1", "train/sub/b.csv": b"2"}


@pytest.mark.parametrize("prefix", ["s3://no-such-bucket-at-all/x", "s3://BUCKET/nowhere/"])
@pytest.mark.parametrize("mode", ["File", "FastFile"])
def test_a_prefix_without_objects_is_refused_as_aws_does(s3: ObjectStore, bucket: str, prefix: str, mode: str) -> None:
    uri = prefix.replace("BUCKET", bucket)
    request = build(uri, InputMode=mode) | {"RoleArn": "arn:aws:iam::123456789012:role/r"}
    with pytest.raises(ValidationException) as refused:
        check_objects(request, "us-east-1", s3)
    assert refused.value.message == (
        f'No S3 objects found under S3 URL "{uri}" given in input data source. Please ensure that the bucket exists in '
        "the selected region (us-east-1), that objects exist under that S3 prefix, and that the role "
        '"arn:aws:iam::123456789012:role/r" has "s3:ListBucket" permissions on bucket '
        f'"{uri.split("/")[2]}".'
    )
    if bucket in uri:
        s3.put(bucket, "nowhere/near", b"")
        check_objects(request, "us-east-1", s3)


def test_what_is_not_an_s3_uri_is_refused_before_it_is_looked_for(s3: ObjectStore) -> None:
    with pytest.raises(ValidationException, match="S3Uri of the channel 'train': 's3://NO/x' names the bucket 'NO'"):
        check_objects(build("s3://NO/x"), "us-east-1", s3)


@pytest.mark.parametrize(
    ("uri", "kind", "said"),
    [
        ("s3://no-such-bucket-at-all/x", "S3Prefix", "no-such-bucket-at-all"),
        ("s3://BUCKET/nowhere/", "S3Prefix", "No object is at s3://BUCKET/nowhere/"),
        ("s3://BUCKET/nowhere.json", "ManifestFile", "nowhere.json"),
        ("s3://BUCKET/bad.json", "ManifestFile", "is not JSON"),
        ("s3://BUCKET/list.json", "ManifestFile", "has to be a list"),
        ("s3://BUCKET/missing.json", "ManifestFile", "not-there.csv"),
        ("s3://BUCKET/climb.json", "ManifestFile", "cannot become a file"),
        ("s3://BUCKET/climbing/", "S3Prefix", "cannot become a file"),
        ("s3://BUCKET/both/", "S3Prefix", "is also the folder of another"),
        ("ftp://BUCKET/x", "S3Prefix", "s3://"),
    ],
)
def test_what_cannot_be_downloaded_is_named(
    s3: ObjectStore, bucket: str, tmp_path: Path, uri: str, kind: str, said: str
) -> None:
    s3.put(bucket, "bad.json", b"{")
    s3.put(bucket, "list.json", b'["a"]')
    for name, entry in (("missing", "not-there.csv"), ("climb", "../../x")):
        s3.put(bucket, f"{name}.json", json.dumps([{"prefix": f"s3://{bucket}/d/"}, entry]).encode())
    s3.put(bucket, "d/../../x", b"")
    s3.put(bucket, "climbing/../../../x", b"")
    s3.put(bucket, "both/a", b"")
    s3.put(bucket, "both/a/b", b"")
    with pytest.raises(RequestFailure) as failed:
        download(build(uri.replace("BUCKET", bucket), kind), s3, tmp_path / "data")
    assert said.replace("BUCKET", bucket) in str(failed.value)
    assert "'train'" in str(failed.value)
    assert not (tmp_path / "x").exists()


def test_shuffled_by_the_seed_and_again_for_each_epoch(s3: ObjectStore, bucket: str, tmp_path: Path) -> None:
    entries = list(range(50))
    assert shuffle(entries, {}) == entries
    first, second = (shuffle(entries, {"ShuffleConfig": {"Seed": 3}}, epoch) for epoch in (0, 1))
    assert entries != first != second != entries
    assert sorted(first) == sorted(second) == entries
    assert shuffle(entries, {"ShuffleConfig": {"Seed": 3}}) == first
    assert shuffle(entries, {"ShuffleConfig": {"Seed": 4}}) != first
    # In File mode the shares of the hosts are drawn from the shuffled order.
    for number in range(20):
        s3.put(bucket, f"d/{number:02}", b"")
    request = build(f"s3://{bucket}/d/", ShuffleConfig={"Seed": 1})
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3DataDistributionType"] = "ShardedByS3Key"
    request["ResourceConfig"] = {"InstanceType": "ml.m5.large", "InstanceCount": 2}
    hosts = list_hosts(request)
    shares = []
    for host in hosts:
        download_channels(request, s3, tmp_path / host.name, lambda: None, host, hosts)
        shares.append({path.name for path in (tmp_path / host.name / "train").iterdir()})
    assert (len(shares[0]), len(shares[1]), len(shares[0] | shares[1])) == (10, 10, 20)
    assert shares[0] != {f"{number:02}" for number in range(0, 20, 2)}


def test_stop_ends_the_download_between_objects(s3: ObjectStore, bucket: str, tmp_path: Path) -> None:
    for number in range(3):
        s3.put(bucket, f"d/{number}", b"")
    calls = []

    def stop() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise StopAsked

    request = build(f"s3://{bucket}/d/")
    hosts = list_hosts(request)
    with pytest.raises(StopAsked):
        download_channels(request, s3, tmp_path, stop, hosts[0], hosts)
    assert len(list((tmp_path / "train").iterdir())) == 1


def test_an_object_that_goes_between_list_and_download_is_named(s3: ObjectStore, bucket: str, tmp_path: Path) -> None:
    for number in range(3):
        s3.put(bucket, f"d/{number}", b"")

    def delete_one() -> None:
        s3.delete(bucket, "d/1")

    request = build(f"s3://{bucket}/d/")
    hosts = list_hosts(request)
    with pytest.raises(RequestFailure, match=rf"channel 'train' failed: s3://{bucket}/d/: .*d/1"):
        download_channels(request, s3, tmp_path, delete_one, hosts[0], hosts)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (b"[" * 100_000 + b"]" * 100_000, r"is nested too deeply at character 2\."),
        (b'[{"prefix": "s3://b/[["}, ' + b"[" * 100_000, r"is nested too deeply at character 27\."),
        (("[" * 100_000).encode("utf-16"), r"is nested too deeply at character "),
        (
            b'[{"prefix": "s3://BUCKET/"}, "a", "b\\ud800"]',
            r"Entry 2 of .* is not text in UTF-8: at character \d+ is half of",
        ),
        (b'[{"prefix": "s3://BUCKET/\\udfff"}, "a"]', r"Entry 1 of .* is not text in UTF-8"),
        (b"\xff\xfe\x00\xd8", "is not JSON"),
    ],
    ids=["lists", "lists in a list", "UTF-16", "name", "prefix", "bytes"],
)
def test_a_manifest_that_no_client_writes_is_an_error_of_the_request(
    s3: ObjectStore, bucket: str, tmp_path: Path, manifest: bytes, reason: str
) -> None:
    s3.put(bucket, "a", b"1")
    s3.put(bucket, "m.json", manifest.replace(b"BUCKET", bucket.encode()))
    with pytest.raises(RequestFailure, match=f"Data download of the channel 'train' failed: .*{reason}"):
        download(build(f"s3://{bucket}/m.json", "ManifestFile"), s3, tmp_path)


@pytest.mark.parametrize(
    "line",
    [b'{"a-ref": "s3://b/\\ud800"}', b'{"a-ref": ' + b"[" * 100_000, b'{"a-ref": 1}'],
    ids=["half", "deep", "number"],
)
def test_a_line_of_an_augmented_manifest_that_no_client_writes(line: bytes) -> None:
    with pytest.raises(RequestFailure, match="augmented manifest s3://b/m"):
        parse_augmented_line(line, ["a-ref"], "s3://b/m")
    with pytest.raises(RequestFailure, match="a in the augmented manifest s3://b/m is not text in UTF-8"):
        parse_augmented_line(b'{"a": "\\udc00"}', ["a"], "s3://b/m")
