"""Fuzz tests of moto's services: malformed requests never cause a 500.

They are refused in the service's own protocol.

The same requests each time; ``pytest --fuzz-requests 5000`` sends more.
"""

import http.client
import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode
from xml.parsers.expat import ExpatError

import pytest
import xmltodict

from emulator.moto_services.store import MotoStore
from tests.running_moto import RunningMoto

TEXTS = [
    "", " ", "x", "-1", "0", "1e400", "9" * 40, "None", "null", "[]", "{}", '{"a":', "<a>", "</", "\ud800", "ü☃",
    "a" * 5000, "../../etc", "%00", "%zz", "arn:aws:sqs:us-east-1:123456789012:q", "arn:::::", "true", "\r\nX: y",
    "never", "*", "b", "q",
]  # fmt: skip
JSON_VALUES: list[Any] = [None, True, -1, 10**30, 1.5, "", "x", [], [None], {}, {"a": {}}, [[[]]], "\ud800"]
BODIES = [
    *(b"", b"\xff", b"<", b"<a/>", b"<a><b></a>", b"{", b"[]", b'"x"', b"null", b"a" * 3000),
    *(b"0\r\n\r\n", b"zz\r\nrubbish"),
]
HEADERS = [
    "If-Modified-Since",
    "If-Match",
    "Range",
    "x-amz-acl",
    "x-amz-copy-source",
    "x-amz-tagging",
    "Content-MD5",
    "x-amz-decoded-content-length",
    "x-amz-content-sha256",
    "x-amz-metadata-directive",
    "x-amz-copy-source-range",
    "x-amz-object-lock-mode",
    "x-amz-grant-read",
    "x-amz-checksum-algorithm",
    "Content-Encoding",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-object-lock-retain-until-date",
    "Expires",
    "x-amz-website-redirect-location",
    "x-amz-trailer",
    "x-amz-expected-bucket-owner",
]
S3_QUERIES = [
    "acl",
    "cors",
    "lifecycle",
    "policy",
    "website",
    "tagging",
    "logging",
    "versioning",
    "versions",
    "uploads",
    "delete",
    "notification",
    "replication",
    "publicAccessBlock",
    "object-lock",
    "encryption",
    "inventory",
    "accelerate",
    "ownershipControls",
    "max-keys",
    "max-uploads",
    "part-number-marker",
    "partNumber",
    "uploadId",
    "versionId",
    "list-type",
    "continuation-token",
    "encoding-type",
    "prefix",
    "delimiter",
    "marker",
    "start-after",
    "attributes",
    "legal-hold",
    "retention",
    "restore",
    "select",
    "response-expires",
    "torrent",
    "requestPayment",
    "policyStatus",
    "metrics",
    "analytics",
    "intelligent-tiering",
]


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMoto]:
    from tests.running_moto import run_moto

    folder = tmp_path_factory.mktemp("moto")
    store = MotoStore(folder)
    with run_moto() as running:
        running.client("s3").create_bucket(Bucket="bbb")
        running.client("s3").put_object(Bucket="bbb", Key="k", Body=b"v")
        running.client("sqs").create_queue(QueueName="q")
        running.client("sns").create_topic(Name="t")
        yield running
    store.close()


def send(
    port: int, service: str, method: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, str, bytes]:
    """One request, its headers as they are; a name or value that HTTP itself does not have is left out."""
    scope = f"key/20260101/us-east-1/{service}/aws4_request"
    every = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0", **headers}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.putrequest(method, path)
        connection.putheader("Content-Length", str(len(body)))
        for name, value in every.items():
            text = value.encode("utf-8", "replace").decode("latin-1")
            if "\r" not in text:
                connection.putheader(name, text)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read()
    finally:
        connection.close()


def build_text(rng: random.Random) -> str:
    return rng.choice(TEXTS)


def build_s3(rng: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    path = rng.choice(["/", "/bbb", "/bbb", "/bbb/k", "/bbb/k", "/bbb/new", "/none", "/bbb/%ff", "/B_/k"])
    query = "&".join(
        rng.choice(S3_QUERIES) + ("=" + quote(build_text(rng), errors="replace") if rng.random() < 0.6 else "")
        for _ in range(rng.randrange(3))
    )
    headers = {rng.choice(HEADERS): build_text(rng) for _ in range(rng.randrange(3))}
    method = rng.choice(["GET", "PUT", "POST", "HEAD", "DELETE"])
    if method == "DELETE" and path == "/bbb":
        method = "GET"
    return method, f"{path}?{query}", rng.choice(BODIES), headers


def build_query(rng: random.Random, service: str) -> tuple[str, str, bytes, dict[str, str]]:
    from emulator.moto_services.service_requests import find_model

    model = find_model(service)
    assert model is not None
    name = rng.choice([*model.operation_names, "Nothing", ""])
    shape = model.operation_model(name).input_shape if name in model.operation_names else None
    members = list(shape.members) if shape else []
    fields = {"Action": name, "Version": model.api_version}
    for member in rng.sample(members, rng.randrange(len(members) + 1)):
        fields[rng.choice([member, f"{member}.member.1", f"{member}.entry.1.key"])] = build_text(rng)
    body = urlencode(fields, errors="replace").encode()
    return "POST", "/", body, {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}


def build_json(rng: random.Random, service: str) -> tuple[str, str, bytes, dict[str, str]]:
    from emulator.moto_services.service_requests import find_model

    model = find_model(service)
    assert model is not None
    name = rng.choice([*model.operation_names, "Nothing"])
    shape = model.operation_model(name).input_shape if name in model.operation_names else None
    members = list(shape.members) if shape else []
    fields = {each: rng.choice(JSON_VALUES) for each in rng.sample(members, rng.randrange(len(members) + 1))}
    body = json.dumps(fields).encode() if rng.random() < 0.8 else rng.choice(BODIES)
    target = f"{model.metadata['targetPrefix']}.{name}"
    return "POST", "/", body, {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"}


def build_lambda(rng: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    from emulator.moto_services.service_requests import find_model

    model = find_model("lambda")
    assert model is not None
    operation = model.operation_model(rng.choice(model.operation_names))
    shape = operation.input_shape
    path = operation.http["requestUri"]
    for member in shape.members if shape else ():
        path = path.replace("{" + member + "}", quote(build_text(rng) or "f", safe="", errors="replace"))
    fields = {each: rng.choice(JSON_VALUES) for each in (shape.members if shape else ()) if rng.random() < 0.5}
    body = json.dumps(fields).encode() if rng.random() < 0.8 else rng.choice(BODIES)
    return operation.http["method"], path, body, {"Content-Type": "application/json"}


@pytest.mark.slow
@pytest.mark.parametrize("service", ["s3", "sns", "sqs", "lambda", "events", "iam"])
def test_rubbish_is_refused_in_the_protocol_of_the_service(
    moto: RunningMoto, service: str, request: pytest.FixtureRequest
) -> None:
    rng = random.Random(service)
    failures = []
    for number in range(request.config.getoption("--fuzz-requests") // 6):
        if service == "s3":
            method, path, body, headers = build_s3(rng)
        elif service == "lambda":
            method, path, body, headers = build_lambda(rng)
        elif service in ("sqs", "events"):
            method, path, body, headers = build_json(rng, service)
        else:
            method, path, body, headers = build_query(rng, service)
        status, kind, answer = send(moto.port, service, method, path, body, headers)
        not_implemented = status == 501 and service == "s3"
        if (status >= 500 and not not_implemented) or not speaks(service, status, answer):
            failures.append((number, method, path[:200], headers, body[:200], status, kind, answer[:300]))
    assert not failures, "\n".join(map(str, failures))


def speaks(service: str, status: int, answer: bytes) -> bool:
    """Whether an error is in the service's protocol; an answer to HEAD, and what is not an error, may be anything."""
    if status < 400 or not answer:
        return True
    try:
        if service in ("sqs", "events", "lambda"):
            return isinstance(json.loads(answer), dict)
        found = xmltodict.parse(answer)
    except (ValueError, ExpatError):
        return False
    return "Error" in found or "ErrorResponse" in found


def test_every_kind_of_error_has_the_form_of_its_protocol(moto: RunningMoto) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, kind, answer = send(moto.port, "iam", "POST", "/", b"Action=Nothing&Version=2010-05-08", form)
    assert (status, kind.partition(";")[0]) == (400, "text/xml")
    assert xmltodict.parse(answer)["ErrorResponse"]["Error"]["Code"] == "InvalidAction"
    target = {"X-Amz-Target": "AWSEvents.Nothing", "Content-Type": "application/x-amz-json-1.1"}
    status, _, answer = send(moto.port, "events", "POST", "/", b"{}", target)
    assert (status, json.loads(answer)["__type"]) == (400, "UnknownOperationException")
    moto.client("s3").put_object(Bucket="bbb", Key="k", Body=b"v")
    status, _, answer = send(moto.port, "s3", "POST", "/bbb/k?select", b"{", {})
    assert (status, xmltodict.parse(answer)["Error"]["Code"]) == (400, "MalformedXML")
    status, _, answer = send(moto.port, "s3", "GET", "/bbb?max-keys=x", b"", {})
    assert (status, "Error" in xmltodict.parse(answer)) == (400, True)
    status, _, answer = send(moto.port, "s3", "GET", "/bbb/k", b"", {"If-Modified-Since": "never"})
    assert status in (200, 400)
