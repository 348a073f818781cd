import pytest
from moto.s3.exceptions import MalformedXML, MissingRequestBody

from emulator.moto_services.s3.documents import check_document

BUCKET, KEY = "/{Bucket}", "/{Bucket}/{Key+}"
PARTS = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>"
RULE = "<Rule><Status>Enabled</Status><Unknown/></Rule>"
TAG = "<Tag><Key>a</Key><Value/></Tag>"


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("PUT", BUCKET, "versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
        ("PUT", BUCKET, "tagging", f"<Tagging><TagSet>{TAG}{TAG}</TagSet></Tagging>"),
        ("PUT", BUCKET, "tagging", "<Tagging><TagSet/></Tagging>"),
        ("PUT", KEY, "tagging", f'<?xml version="1.0"?><Tagging xmlns="http://x/"><TagSet>{TAG}</TagSet></Tagging>'),
        ("PUT", BUCKET, "logging", "<BucketLoggingStatus/>"),
        ("POST", BUCKET, "delete", "<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object></Delete>"),
        ("POST", KEY, "uploadId", PARTS),
        ("PUT", BUCKET, "lifecycle", f"<LifecycleConfiguration>{RULE}</LifecycleConfiguration>"),
    ],
)
def test_documents_pass_and_their_beginnings_do_not(method: str, path: str, query: str, body: str) -> None:
    check_document(method, path, {query}, body.encode())
    with pytest.raises(MalformedXML):
        check_document(method, path, {query}, body[:-1].encode())


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("PUT", BUCKET, "acl", ""),
        ("PUT", BUCKET, "", ""),
        ("PUT", KEY, "", "any bytes"),
        ("PUT", KEY, "partNumber", "any bytes"),
        ("POST", KEY, "uploads", ""),
        ("POST", KEY, "select", "<SelectObjectContentRequest/>"),
        ("POST", BUCKET, "", "a form"),
    ],
)
def test_what_need_be_no_document_passes(method: str, path: str, query: str, body: str) -> None:
    check_document(method, path, {query}, body.encode())
    with pytest.raises((MalformedXML, MissingRequestBody)):
        check_document("PUT", BUCKET, {"tagging"}, body.encode())


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("PUT", BUCKET, "versioning", b"\xff"),
        ("PUT", BUCKET, "versioning", b"<VersioningConfiguration>"),
        ("PUT", BUCKET, "website", b"<Tagging/>"),
        ("PUT", BUCKET, "tagging", b"<Tagging/>"),
        ("PUT", BUCKET, "tagging", b"<Tagging>text</Tagging>"),
        ("PUT", BUCKET, "tagging", b"<Tagging><TagSet>text</TagSet></Tagging>"),
        ("PUT", BUCKET, "tagging", b"<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>"),
        ("PUT", BUCKET, "lifecycle", b"<LifecycleConfiguration><Unknown/></LifecycleConfiguration>"),
        ("PUT", KEY, "legal-hold", b"\x00"),
        ("POST", BUCKET, "delete", b"<Delete/>"),
        ("POST", KEY, "restore", b"<RestoreRequest><Days>soon</Days></RestoreRequest>"),
        ("PUT", BUCKET, "", b"\xff"),
    ],
)
def test_what_is_no_such_document_is_refused(method: str, path: str, query: str, body: bytes) -> None:
    with pytest.raises(MalformedXML):
        check_document(method, path, {query}, body)


def test_a_document_has_to_be_there() -> None:
    with pytest.raises(MissingRequestBody):
        check_document("PUT", BUCKET, {"website"}, b"")
