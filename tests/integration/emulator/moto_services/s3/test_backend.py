"""Tests of S3 across a restart, over real HTTP on the same folder."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.moto_services.s3.objects import ObjectStore
from tests.boto3_client import make_client
from tests.integration.emulator.moto_services.s3.stored_s3 import contents, running


def test_objects_come_back(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.put_object(
            Bucket="kept",
            Key="a/ü",
            Body=b"data",
            ContentType="text/plain",
            Metadata={"who": "me"},
            Tagging="color=red",
            StorageClass="STANDARD_IA",
        )
        before = s3.get_object(Bucket="kept", Key="a/ü")
        assert before["Body"].read() == b"data"
        created = s3.list_buckets()["Buckets"][0]["CreationDate"]
    with running(tmp_path) as s3:
        after = s3.get_object(Bucket="kept", Key="a/ü")
        assert after["Body"].read() == b"data"
        for name in ("ETag", "LastModified", "ContentType", "Metadata", "StorageClass", "ContentLength"):
            assert after[name] == before[name], name
        assert s3.get_object_tagging(Bucket="kept", Key="a/ü")["TagSet"] == [{"Key": "color", "Value": "red"}]
        assert s3.list_buckets()["Buckets"][0]["CreationDate"] == created


def test_what_the_emulator_itself_puts_comes_back(tmp_path: Path) -> None:
    with running(tmp_path):
        store = ObjectStore("123456789012", "eu-west-1")
        store.create_bucket("kept")
        store.put("kept", "tensor", b"bytes")
    with running(tmp_path) as s3:
        assert s3.get_object(Bucket="kept", Key="tensor")["Body"].read() == b"bytes"
        assert s3.get_bucket_location(Bucket="kept")["LocationConstraint"] == "eu-west-1"


def test_a_bucket_with_a_name_that_s3_forbids_is_not_created(tmp_path: Path) -> None:
    forbidden = ("B_AD", "under_score", "-begins", "ends-", "a..b", ".begins", "192.168.5.4", "ab", "a" * 64, "Upper")
    with running(tmp_path) as s3:
        for name in forbidden:
            with pytest.raises(ClientError) as refused:
                s3.create_bucket(Bucket=name)
            assert refused.value.response["Error"]["Code"] == "InvalidBucketName", name
            assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert s3.list_buckets()["Buckets"] == []
        s3.create_bucket(Bucket="a1.b-c.9")


def test_uploads_in_parts_and_copies_come_back(tmp_path: Path) -> None:
    body = os.urandom(12 * 1024 * 1024)
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.upload_fileobj(io.BytesIO(body), "kept", "parts")
        s3.copy_object(Bucket="kept", Key="copy", CopySource={"Bucket": "kept", "Key": "parts"})
        etag = s3.head_object(Bucket="kept", Key="parts")["ETag"]
    with running(tmp_path) as s3:
        assert s3.head_object(Bucket="kept", Key="parts")["ETag"] == etag
        for key in ("parts", "copy"):
            assert s3.get_object(Bucket="kept", Key=key)["Body"].read() == body
        part = s3.get_object(Bucket="kept", Key="copy", Range="bytes=5-9")
        assert part["Body"].read() == body[5:10]


def test_deletes_and_overwrites_are_kept_and_free_their_files(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.create_bucket(Bucket="gone")
        for key in ("one", "two", "three", "four"):
            s3.put_object(Bucket="kept", Key=key, Body=b"old")
        s3.delete_object(Bucket="kept", Key="one")
        s3.delete_objects(Bucket="kept", Delete={"Objects": [{"Key": "two"}, {"Key": "never"}]})
        s3.put_object(Bucket="kept", Key="three", Body=b"new")
        s3.delete_bucket(Bucket="gone")
        assert len(contents(tmp_path)) == 2
    with running(tmp_path) as s3:
        assert [each["Key"] for each in s3.list_objects_v2(Bucket="kept")["Contents"]] == ["four", "three"]
        assert s3.get_object(Bucket="kept", Key="three")["Body"].read() == b"new"
        assert [each["Name"] for each in s3.list_buckets()["Buckets"]] == ["kept"]


def test_versions_come_back(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
        first = s3.put_object(Bucket="kept", Key="k", Body=b"first")["VersionId"]
        second = s3.put_object(Bucket="kept", Key="k", Body=b"second")["VersionId"]
        s3.delete_object(Bucket="kept", Key="k")
    with running(tmp_path) as s3:
        with pytest.raises(ClientError, match="NoSuchKey"):
            s3.get_object(Bucket="kept", Key="k")
        for version, body in ((first, b"first"), (second, b"second")):
            assert s3.get_object(Bucket="kept", Key="k", VersionId=version)["Body"].read() == body
        listed = s3.list_object_versions(Bucket="kept")
        assert {each["VersionId"] for each in listed["Versions"]} == {first, second}
        assert len(listed["DeleteMarkers"]) == 1
        assert s3.get_bucket_versioning(Bucket="kept")["Status"] == "Enabled"


def test_what_was_deleted_while_versioning_was_suspended_comes_back_so(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
        version = s3.put_object(Bucket="kept", Key="k", Body=b"kept")["VersionId"]
        s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Suspended"})
        s3.put_object(Bucket="kept", Key="k", Body=b"null")
        assert s3.delete_object(Bucket="kept", Key="k")["VersionId"] == "null"
    assert [path.read_bytes() for path in contents(tmp_path)] == [b"kept"]
    with running(tmp_path) as s3:
        listed = s3.list_object_versions(Bucket="kept")
        assert [each["VersionId"] for each in listed["DeleteMarkers"]] == ["null"]
        assert [each["VersionId"] for each in listed["Versions"]] == [version]
        assert s3.get_object(Bucket="kept", Key="k", VersionId=version)["Body"].read() == b"kept"
        s3.delete_object(Bucket="kept", Key="k", VersionId="null")
        assert s3.get_object(Bucket="kept", Key="k")["Body"].read() == b"kept"


def test_tags_and_settings_come_back(tmp_path: Path) -> None:
    policy = '{"Version": "2012-10-17", "Statement": []}'
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.put_bucket_policy(Bucket="kept", Policy=policy)
        s3.put_bucket_tagging(Bucket="kept", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
        s3.put_object(Bucket="kept", Key="k", Body=b"")
        s3.put_object_tagging(Bucket="kept", Key="k", Tagging={"TagSet": [{"Key": "c", "Value": "d"}]})
    with running(tmp_path) as s3:
        assert s3.get_bucket_policy(Bucket="kept")["Policy"] == policy
        assert s3.get_bucket_tagging(Bucket="kept")["TagSet"] == [{"Key": "a", "Value": "b"}]
        assert s3.get_object_tagging(Bucket="kept", Key="k")["TagSet"] == [{"Key": "c", "Value": "d"}]
        s3.delete_object_tagging(Bucket="kept", Key="k")
        s3.delete_bucket_policy(Bucket="kept")
    with running(tmp_path) as s3:
        assert s3.get_object_tagging(Bucket="kept", Key="k")["TagSet"] == []
        with pytest.raises(ClientError, match="NoSuchBucketPolicy"):
            s3.get_bucket_policy(Bucket="kept")


def test_a_failed_request_changes_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        with pytest.raises(ClientError):
            s3.put_object(Bucket="nowhere", Key="k", Body=b"x")
        with pytest.raises(ClientError):
            s3.create_bucket(Bucket="x")
    with running(tmp_path) as s3:
        assert [each["Name"] for each in s3.list_buckets()["Buckets"]] == ["kept"]
    assert contents(tmp_path) == []


def test_versions_are_listed_when_the_marked_one_is_deleted(tmp_path: Path) -> None:
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
        first = s3.put_object(Bucket="kept", Key="k", Body=b"first")["VersionId"]
        marker = s3.delete_object(Bucket="kept", Key="k")["VersionId"]
        s3.delete_object(Bucket="kept", Key="k", VersionId=first)
        before = s3.list_object_versions(Bucket="kept")
        assert [each["VersionId"] for each in before["DeleteMarkers"]] == [marker]
        assert "Versions" not in before
    assert contents(tmp_path) == []
    with running(tmp_path) as s3:
        assert s3.list_object_versions(Bucket="kept")["DeleteMarkers"] == before["DeleteMarkers"]
        s3.delete_object(Bucket="kept", Key="k", VersionId=marker)
        assert "DeleteMarkers" not in s3.list_object_versions(Bucket="kept")


# How each is put to the bucket that has its name, and read.
SETTINGS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "versioning": (
        lambda s3: s3.put_bucket_versioning(Bucket="versioning", VersioningConfiguration={"Status": "Suspended"}),
        lambda s3: s3.get_bucket_versioning(Bucket="versioning")["Status"],
    ),
    "encryption": (
        lambda s3: s3.put_bucket_encryption(
            Bucket="encryption",
            ServerSideEncryptionConfiguration={
                "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "id"}}]
            },
        ),
        lambda s3: s3.get_bucket_encryption(Bucket="encryption")["ServerSideEncryptionConfiguration"],
    ),
    "ownership": (
        lambda s3: s3.put_bucket_ownership_controls(
            Bucket="ownership", OwnershipControls={"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
        ),
        lambda s3: s3.get_bucket_ownership_controls(Bucket="ownership")["OwnershipControls"],
    ),
    "accelerate": (
        lambda s3: s3.put_bucket_accelerate_configuration(
            Bucket="accelerate", AccelerateConfiguration={"Status": "Enabled"}
        ),
        lambda s3: s3.get_bucket_accelerate_configuration(Bucket="accelerate")["Status"],
    ),
    "website": (
        lambda s3: s3.put_bucket_website(
            Bucket="website", WebsiteConfiguration={"IndexDocument": {"Suffix": "index.html"}}
        ),
        lambda s3: s3.get_bucket_website(Bucket="website")["IndexDocument"],
    ),
    "lock": (
        lambda s3: (
            s3.put_bucket_versioning(Bucket="lock", VersioningConfiguration={"Status": "Enabled"}),
            s3.put_object_lock_configuration(
                Bucket="lock",
                ObjectLockConfiguration={
                    "ObjectLockEnabled": "Enabled",
                    "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 3}},
                },
            ),
        ),
        lambda s3: s3.get_object_lock_configuration(Bucket="lock")["ObjectLockConfiguration"],
    ),
}


def test_settings_come_back(tmp_path: Path) -> None:
    before = {}
    with running(tmp_path) as s3:
        for setting, (put, get) in SETTINGS.items():
            s3.create_bucket(Bucket=setting)
            put(s3)
            before[setting] = get(s3)
            assert before[setting], setting
    with running(tmp_path) as s3:
        assert {setting: get(s3) for setting, (_, get) in SETTINGS.items()} == before


def test_after_a_close_moto_is_as_it_was(tmp_path: Path) -> None:
    from moto.s3.models import FakeBucket, S3Backend, s3_backends
    from moto.s3.responses import S3Response

    def replaced_ones() -> list[Any]:
        methods = [vars(S3Response)[name] for name in ("_bucket_response", "_key_response")]
        return [*methods, vars(FakeBucket)["get_permission"], s3_backends.backend]

    before = replaced_ones()
    assert before[-1] is S3Backend
    with running(tmp_path):
        assert all(now is not then for now, then in zip(replaced_ones(), before, strict=True))
    assert replaced_ones() == before


@pytest.mark.slow
def test_every_setting_of_a_bucket_comes_back(tmp_path: Path) -> None:
    grant = {
        "Grantee": {"Type": "Group", "URI": "http://acs.amazonaws.com/groups/global/AllUsers"},
        "Permission": "READ",
    }
    cors = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"], "MaxAgeSeconds": 5}]}
    life = {"Rules": [{"ID": "r", "Status": "Enabled", "Filter": {"Prefix": "a/"}, "Expiration": {"Days": 3}}]}
    blocked = {"BlockPublicAcls": True, "IgnorePublicAcls": False, "BlockPublicPolicy": True}
    queue = {"QueueArn": "arn:aws:sqs:us-east-1:123456789012:q", "Events": ["s3:ObjectCreated:*"]}
    rule = {"Status": "Enabled", "Destination": {"Bucket": "arn:aws:s3:::other"}, "Priority": 1, "Prefix": "x"}
    replication = {"Role": "arn:aws:iam::123456789012:role/r", "Rules": [rule]}

    def read_settings(s3: Any) -> list[Any]:
        answers = [
            s3.get_bucket_cors(Bucket="kept"),
            s3.get_bucket_lifecycle_configuration(Bucket="kept"),
            s3.get_public_access_block(Bucket="kept"),
            s3.get_bucket_notification_configuration(Bucket="kept"),
            s3.get_bucket_replication(Bucket="kept"),
            s3.get_bucket_acl(Bucket="kept"),
            s3.get_bucket_logging(Bucket="kept"),
            s3.get_object_acl(Bucket="kept", Key="public"),
            s3.get_object_acl(Bucket="kept", Key="private"),
        ]
        return [{name: value for name, value in answer.items() if name != "ResponseMetadata"} for answer in answers]

    with running(tmp_path) as s3:
        for name in ("kept", "other"):
            s3.create_bucket(Bucket=name)
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        s3.put_object(Bucket="kept", Key="public", Body=b"1", ACL="public-read")
        s3.put_object(Bucket="kept", Key="private", Body=b"1")
        s3.put_bucket_cors(Bucket="kept", CORSConfiguration=cors)
        s3.put_bucket_lifecycle_configuration(Bucket="kept", LifecycleConfiguration=life)
        s3.put_public_access_block(Bucket="kept", PublicAccessBlockConfiguration=blocked)
        s3.put_bucket_acl(Bucket="other", ACL="log-delivery-write")
        target = {"TargetBucket": "other", "TargetPrefix": "p", "TargetGrants": [grant]}
        s3.put_bucket_logging(Bucket="kept", BucketLoggingStatus={"LoggingEnabled": target})
        make_client(s3.meta.endpoint_url, "sqs").create_queue(QueueName="q")
        s3.put_bucket_notification_configuration(
            Bucket="kept", NotificationConfiguration={"QueueConfigurations": [queue]}
        )
        s3.put_bucket_replication(Bucket="kept", ReplicationConfiguration=replication)
        s3.put_bucket_acl(Bucket="kept", ACL="public-read")
        before = read_settings(s3)
    with running(tmp_path) as s3:
        assert read_settings(s3) == before


def test_an_upload_continues_after_a_restart(tmp_path: Path) -> None:
    parts, body = [], os.urandom(5 * 1024 * 1024)
    with running(tmp_path) as s3:
        s3.create_bucket(Bucket="kept")
        upload = {"Bucket": "kept", "Key": "k"}
        upload["UploadId"] = s3.create_multipart_upload(**upload, Metadata={"a": "b"})["UploadId"]
        parts.append({"PartNumber": 1, "ETag": s3.upload_part(**upload, PartNumber=1, Body=body)["ETag"]})
    with running(tmp_path) as s3:
        assert s3.list_parts(**upload)["Parts"][0]["Size"] == len(body)
        parts.append({"PartNumber": 2, "ETag": s3.upload_part(**upload, PartNumber=2, Body=b"end")["ETag"]})
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        assert len(contents(tmp_path)) == 1, "the parts are gone"
    with running(tmp_path) as s3:
        answer = s3.get_object(Bucket="kept", Key="k")
        assert answer["Body"].read() == body + b"end"
        assert answer["Metadata"] == {"a": "b"}
        assert "Uploads" not in s3.list_multipart_uploads(Bucket="kept")
