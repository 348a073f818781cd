"""Tests of S3: object versions and bucket settings."""

import json
from typing import Any

import pytest

from tests.contract.like_moto_server.servers import MOTO_SERVER, Departure, Server, read_error


def test_versions_of_an_object_come_and_go(server: Server, bucket: str) -> None:
    s3 = server.client("s3")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first, second = (s3.put_object(Bucket=bucket, Key="k", Body=body)["VersionId"] for body in (b"one", b"two"))
    marker = s3.delete_object(Bucket=bucket, Key="k")
    assert marker["DeleteMarker"] is True
    assert read_error(s3.get_object, Bucket=bucket, Key="k") == "NoSuchKey"
    assert s3.get_object(Bucket=bucket, Key="k", VersionId=first)["Body"].read() == b"one"

    listed = s3.list_object_versions(Bucket=bucket)
    assert [(each["VersionId"], each["IsLatest"]) for each in listed["Versions"]] == [(second, False), (first, False)]
    assert [(each["VersionId"], each["IsLatest"]) for each in listed["DeleteMarkers"]] == [(marker["VersionId"], True)]

    s3.delete_object(Bucket=bucket, Key="k", VersionId=first)
    s3.delete_object(Bucket=bucket, Key="k", VersionId=marker["VersionId"])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"two"
    assert [each["VersionId"] for each in s3.list_object_versions(Bucket=bucket)["Versions"]] == [second]
    assert read_error(s3.get_object, Bucket=bucket, Key="k", VersionId=first) == "NoSuchVersion"


def test_suspended_versioning_keeps_what_there_was(server: Server, bucket: str) -> None:
    s3 = server.client("s3")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    kept = s3.put_object(Bucket=bucket, Key="k", Body=b"kept")["VersionId"]
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    for body in (b"replaced", b"null"):
        s3.put_object(Bucket=bucket, Key="k", Body=body)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"null"
    refused = read_error(s3.put_object, Bucket=bucket, Key="k", Body=b"", StorageClass="NONE_SUCH")
    assert refused == "InvalidStorageClass"
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"null"
    source = "Amazon S3 User Guide: Adding objects to versioning-suspended buckets"
    departure = Departure(MOTO_SERVER, "NoSuchVersion", source)
    server.expect(read_error(s3.get_object, Bucket=bucket, Key="k", VersionId=kept), None, departure)
    listed = [each["VersionId"] for each in s3.list_object_versions(Bucket=bucket)["Versions"]]
    server.expect(listed, ["null", kept], Departure(MOTO_SERVER, ["null"], source))
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Suspended"


def test_delete_while_versioning_is_suspended_takes_the_null_version_only(server: Server, bucket: str) -> None:
    s3 = server.client("s3")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    kept, gone = (s3.put_object(Bucket=bucket, Key="k", Body=body)["VersionId"] for body in (b"kept", b"gone"))
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    s3.delete_object(Bucket=bucket, Key="k", VersionId=gone)
    s3.put_object(Bucket=bucket, Key="k", Body=b"null")
    s3.delete_object(Bucket=bucket, Key="k")
    assert read_error(s3.get_object, Bucket=bucket, Key="k") == "NoSuchKey"
    listed = s3.list_object_versions(Bucket=bucket)
    found = [[each["VersionId"] for each in listed.get(kind, [])] for kind in ("Versions", "DeleteMarkers")]
    source = "Amazon S3 User Guide: Deleting objects from versioning-suspended buckets"
    server.expect(found, [[kept], ["null"]], Departure(MOTO_SERVER, [[], []], source))


CORS = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["https://example.com"], "MaxAgeSeconds": 60}]}
ENCRYPTION = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": False}]}
LIFECYCLE = {"Rules": [{"ID": "old", "Filter": {"Prefix": "log/"}, "Status": "Enabled", "Expiration": {"Days": 3}}]}
PUBLIC_ACCESS = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": False,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": False,
}
WEBSITE = {"IndexDocument": {"Suffix": "index.html"}, "ErrorDocument": {"Key": "error.html"}}
OWNERSHIP = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
TAGGING = {"TagSet": [{"Key": "team", "Value": "red"}]}

# Of each: the operation's name, the member it is put in, what is put, and the error where nothing was.
SETTINGS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "CORS": ("bucket_cors", "CORSConfiguration", CORS, "NoSuchCORSConfiguration"),
    "lifecycle": (
        "bucket_lifecycle_configuration",
        "LifecycleConfiguration",
        LIFECYCLE,
        "NoSuchLifecycleConfiguration",
    ),
    "public access block": (
        "public_access_block",
        "PublicAccessBlockConfiguration",
        PUBLIC_ACCESS,
        "NoSuchPublicAccessBlockConfiguration",
    ),
    "website": ("bucket_website", "WebsiteConfiguration", WEBSITE, "NoSuchWebsiteConfiguration"),
    "ownership": ("bucket_ownership_controls", "OwnershipControls", OWNERSHIP, "OwnershipControlsNotFoundError"),
    "tags": ("bucket_tagging", "Tagging", TAGGING, "NoSuchTagSet"),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_is_kept_until_it_is_deleted(server: Server, bucket: str, setting: str) -> None:
    s3 = server.client("s3")
    operation, member, value, missing = SETTINGS[setting]
    get = getattr(s3, f"get_{operation}")
    delete = getattr(s3, f"delete_{operation.removesuffix('_configuration')}")
    assert read_error(get, Bucket=bucket) == missing
    getattr(s3, f"put_{operation}")(Bucket=bucket, **{member: value})
    answer = get(Bucket=bucket)
    found = answer.get(member, answer)
    assert {key: found[key] for key in value} == value
    delete(Bucket=bucket)
    assert read_error(get, Bucket=bucket) == missing


def test_a_policy_is_answered_as_it_was_put(server: Server, bucket: str) -> None:
    s3 = server.client("s3")
    statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{bucket}/x"}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    assert read_error(s3.get_bucket_policy, Bucket=bucket) == "NoSuchBucketPolicy"
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"]) == policy


def test_encryption_is_kept(server: Server, bucket: str) -> None:
    s3 = server.client("s3")
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=ENCRYPTION)
    assert s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"] == ENCRYPTION


def test_objects_have_metadata_tags_and_ranges(server: Server, bucket: str) -> None:
    s3 = server.client("s3")
    s3.put_object(Bucket=bucket, Key="a b/ü", Body=b"0123456789", Metadata={"who": "me"}, Tagging="x=1&y=2")
    found = s3.get_object(Bucket=bucket, Key="a b/ü", Range="bytes=2-4")
    assert (found["Body"].read(), found["ContentRange"], found["Metadata"]) == (
        b"234",
        "bytes 2-4/10",
        {"who": "me"},
    )
    tags = s3.get_object_tagging(Bucket=bucket, Key="a b/ü")["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"x": "1", "y": "2"}
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "a b/ü"})
    assert s3.head_object(Bucket=bucket, Key="copy")["Metadata"] == {"who": "me"}


def test_pages_and_common_prefixes_of_a_listing(server: Server, bucket: str) -> None:
    s3 = server.client("s3")
    for key in ("a/1", "a/2", "b", "c/1", "d"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    first = s3.list_objects_v2(Bucket=bucket, Delimiter="/", MaxKeys=2)
    assert ([each["Prefix"] for each in first["CommonPrefixes"]], [each["Key"] for each in first["Contents"]]) == (
        ["a/"],
        ["b"],
    )
    rest = s3.list_objects_v2(Bucket=bucket, Delimiter="/", ContinuationToken=first["NextContinuationToken"])
    assert ([each["Prefix"] for each in rest["CommonPrefixes"]], [each["Key"] for each in rest["Contents"]]) == (
        ["c/"],
        ["d"],
    )
    assert read_error(s3.delete_bucket, Bucket=bucket) == "BucketNotEmpty"


def test_an_upload_in_parts_becomes_one_object(server: Server, bucket: str) -> None:
    s3 = server.client("s3")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="big")["UploadId"]
    which = {"Bucket": bucket, "Key": "big", "UploadId": upload}
    bodies = [b"a" * 5 * 1024 * 1024, b"end"]
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(**which, PartNumber=number, Body=body)["ETag"]}
        for number, body in enumerate(bodies, 1)
    ]
    assert [each["Key"] for each in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == ["big"]
    whole = s3.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})
    assert whole["ETag"].strip('"').endswith("-2")
    assert s3.head_object(Bucket=bucket, Key="big")["ContentLength"] == sum(map(len, bodies))
    assert read_error(s3.list_parts, **which) == "NoSuchUpload"
