"""Tests of request dispatch over real HTTP."""

import io
import json
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from emulator.api.application import build_pages
from emulator.gateway.authentication import LOOPBACK_HOSTS
from emulator.gateway.gateway import Gateway as GatewayApplication
from emulator.gateway.gateway import GatewayServices
from tests.integration.emulator.gateway.listening_gateway import Gateway

MIB = 1024 * 1024


def test_health(gateway: Gateway) -> None:
    answer = gateway.send("GET", "/_emulator/health")
    assert json.loads(answer.body) == {"status": "running"}
    assert answer.headers["x-amzn-requestid"]


def test_a_browser_at_the_root_address(gateway: Gateway) -> None:
    answer = gateway.send("GET", "/")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")


def test_a_foreign_host_is_refused_with_the_reason(gateway: Gateway) -> None:
    for path in ("/", "/_emulator/health", "/bucket/key"):
        answer = gateway.send("GET", path, Host="evil.example")
        assert answer.status == 403
        assert "'evil.example'" in json.loads(answer.body)["message"]


def test_a_foreign_page_is_refused(gateway: Gateway) -> None:
    assert gateway.send("GET", "/_emulator/health", Origin="https://evil.example").status == 403


def test_a_request_of_another_sites_page_is_refused_on_every_path(gateway: Gateway) -> None:
    for path in ("/", "/_emulator/health", "/bucket/key", "/2015-03-31/functions/f/invocations"):
        assert gateway.send("GET", path, Sec_Fetch_Site="cross-site").status == 403


@pytest.mark.parametrize("path", ["/moto-api/recorder/start-recording", "/moto-api/reset", "/moto-api/", "/moto-api"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_controls_of_moto_are_closed(gateway: Gateway, method: str, path: str) -> None:
    answer = gateway.send(method, path)
    assert answer.status == 403
    assert "--moto-api" in json.loads(answer.body)["message"]


def test_the_controls_of_moto_answer_where_they_were_asked_for() -> None:
    def application(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [])
        return [b"reset"]

    services = replace(build_gateway_services(), opens_moto_api=True)
    services.moto.set_result(application)
    assert ask(services, "/moto-api/reset")[2] == b"reset"


def test_no_such_own_page(gateway: Gateway) -> None:
    assert gateway.send("GET", "/_emulator/nothing").status == 404


def test_lambda_invoke_goes_to_the_runtime(gateway: Gateway) -> None:
    answer = gateway.client("lambda").invoke(FunctionName="my-function")
    assert answer["StatusCode"] == 200
    assert gateway.invoked[-1] == "/2015-03-31/functions/my-function/invocations"


def test_other_services_are_motos(gateway: Gateway) -> None:
    assert gateway.client("sts").get_caller_identity()["Account"] == "123456789012"
    gateway.client("iam").create_role(RoleName="trainer", AssumeRolePolicyDocument="{}")
    gateway.client("logs").create_log_group(logGroupName="/a/b")
    queue = gateway.client("sqs").create_queue(QueueName="q")["QueueUrl"]
    gateway.client("sqs").send_message(QueueUrl=queue, MessageBody="hello")
    gateway.client("events").put_rule(Name="r", EventPattern='{"source":["aws.sagemaker"]}')


def test_what_moto_only_stores_says_so_in_its_answer(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "emulator.gateway")
    sagemaker = gateway.client("sagemaker")
    described = []
    for name in ("once", "twice"):
        sagemaker.create_transform_job(
            TransformJobName=name,
            ModelName="m",
            TransformInput={"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/in"}}},
            TransformOutput={"S3OutputPath": "s3://b/out"},
            TransformResources={"InstanceType": "ml.m5.large", "InstanceCount": 1},
        )
        described.append(sagemaker.describe_transform_job(TransformJobName=name))
    headers = described[0]["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-emulator-note"] == (
        "DescribeTransformJob: answered by moto from what is stored, nothing is run (docs/coverage.md)"
    )
    assert caplog.text.count("CreateTransformJob: stored only, nothing is run") == 1
    for answer in (sagemaker.list_pipelines(), sagemaker.list_tags(ResourceArn=described[0]["TransformJobArn"])):
        assert "x-emulator-note" not in answer["ResponseMetadata"]["HTTPHeaders"]


def test_s3_objects_come_back_as_they_went(gateway: Gateway) -> None:
    s3 = gateway.client("s3")
    s3.create_bucket(Bucket="round-trip")
    key = "a b/ü%2F+&=/../x"
    s3.put_object(
        Bucket="round-trip", Key=key, Body=b"data", ContentType="text/plain", Metadata={"who": "me", "job_name": "a-b"}
    )
    got = s3.get_object(Bucket="round-trip", Key=key)
    assert (got["Body"].read(), got["ContentType"], got["Metadata"]) == (
        b"data",
        "text/plain",
        {"who": "me", "job_name": "a-b"},
    )
    assert [each["Key"] for each in s3.list_objects_v2(Bucket="round-trip")["Contents"]] == [key]
    s3.delete_object(Bucket="round-trip", Key=key)
    assert s3.list_objects_v2(Bucket="round-trip")["KeyCount"] == 0


def test_virtual_host_buckets_below_localhost(gateway: Gateway) -> None:
    gateway.client("s3").create_bucket(Bucket="virtual")
    gateway.client("s3").put_object(Bucket="virtual", Key="k", Body=b"v", ACL="public-read")
    assert gateway.send("GET", "/k", Host=f"virtual.localhost:{gateway.port}").body == b"v"


def test_a_presigned_url(gateway: Gateway) -> None:
    s3 = gateway.client("s3", signature_version="s3v4")
    s3.create_bucket(Bucket="presigned")
    s3.put_object(Bucket="presigned", Key="k", Body=b"v")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "presigned", "Key": "k"})
    assert gateway.send("GET", url.removeprefix(gateway.url)).body == b"v"


@pytest.mark.slow
def test_a_large_body(gateway: Gateway) -> None:
    s3 = gateway.client("s3")
    s3.create_bucket(Bucket="large")
    body = bytes(range(256)) * (40 * 4096)
    assert len(body) == 40 * MIB
    s3.put_object(Bucket="large", Key="k", Body=body)
    assert s3.get_object(Bucket="large", Key="k")["Body"].read() == body


def test_an_empty_object(gateway: Gateway) -> None:
    """Its request says that it expects a 100 before a body of no bytes."""
    s3 = gateway.client("s3", read_timeout=60)
    s3.create_bucket(Bucket="empty")
    s3.put_object(Bucket="empty", Key="training_job_end.ts", Body=b"")
    assert s3.head_object(Bucket="empty", Key="training_job_end.ts")["ContentLength"] == 0


def test_an_upload_in_parts(gateway: Gateway) -> None:
    s3 = gateway.client("s3")
    s3.create_bucket(Bucket="parts")
    body = b"0123456789abcdef" * MIB
    s3.upload_fileobj(io.BytesIO(body), "parts", "k")
    assert s3.head_object(Bucket="parts", Key="k")["ETag"].endswith('-2"')
    assert s3.get_object(Bucket="parts", Key="k")["Body"].read() == body


def test_a_large_request_of_sagemaker(gateway: Gateway) -> None:
    answer = gateway.send_operation("ListTrainingJobs", json.dumps({"NameContains": "x" * 2 * MIB}).encode())
    assert answer.status == 400
    assert json.loads(answer.body)["__type"] == "ValidationException"


def test_expect_100_continue(gateway: Gateway) -> None:
    body = b"{}"
    head = (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nX-Amz-Target: SageMaker.ListTrainingJobs\r\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=k/20250101/us-east-1/sagemaker/aws4_request, Signature=0\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=400) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1024).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        with connection.makefile("rb") as answer:
            assert answer.readline().startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_puts_and_lists_at_the_same_time(gateway: Gateway) -> None:
    gateway.client("s3").create_bucket(Bucket="busy")

    def work(worker: int) -> int:
        s3 = gateway.client("s3")
        seen = 0
        for number in range(5):
            s3.put_object(Bucket="busy", Key=f"{worker}/{number}", Body=b"x")
            seen = s3.list_objects_v2(Bucket="busy", Prefix=f"{worker}/")["KeyCount"]
        return seen

    with ThreadPoolExecutor(6) as workers:
        assert list(workers.map(work, range(6))) == [5] * 6


def build_gateway_services() -> GatewayServices:
    return GatewayServices(
        LOOPBACK_HOSTS, build_pages(lambda: {"status": "starting"}), lambda _: False, lambda _: "123456789012"
    )


class Sent:
    """What a server was given to send, and its own ``start_response``."""

    def __init__(self) -> None:
        self.status = ""
        self.headers: list[tuple[str, str]] = []

    def __call__(self, status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> Any:
        self.status, self.headers = status, headers


def build_environ(method: str, path: str, **more: str) -> WSGIEnvironment:
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "HTTP_HOST": "localhost",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        **more,
    }


def ask(services: GatewayServices, path: str) -> tuple[str, dict[str, str], bytes]:
    sent = Sent()
    body = b"".join(GatewayApplication(services)(build_environ("GET", path), sent))
    return sent.status, dict(sent.headers), body


def test_health_is_answered_before_the_services_are_ready() -> None:
    status, _, body = ask(build_gateway_services(), "/_emulator/health")
    assert status == "200 OK"
    assert json.loads(body) == {"status": "starting"}


def test_a_request_waits_for_its_service() -> None:
    def application(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [])
        return [b"ready"]

    services = build_gateway_services()
    with ThreadPoolExecutor(1) as client:
        waiting = client.submit(ask, services, "/bucket")
        assert not waiting.done()
        services.moto.set_result(application)
        assert waiting.result(60)[2] == b"ready"


def test_a_request_for_a_service_that_never_starts_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    services = build_gateway_services()
    with ThreadPoolExecutor(1) as client:
        waiting = client.submit(ask, services, "/bucket")
        services.cancel()
        status, _, body = waiting.result(60)
    assert status == "503 Service Unavailable"
    assert json.loads(body)["message"].startswith("The emulator stops, or could not start")
    assert not caplog.text


def test_a_service_that_raises_is_an_internal_failure(caplog: pytest.LogCaptureFixture) -> None:
    def application(_environ: WSGIEnvironment, _start_response: StartResponse) -> Iterable[bytes]:
        raise RuntimeError("on fire")

    services = build_gateway_services()
    services.moto.set_result(application)
    status, headers, body = ask(services, "/bucket")
    assert status.startswith("500")
    assert json.loads(body)["__type"] == headers["x-amzn-errortype"] == "InternalFailure"
    assert "on fire" in caplog.text


def test_half_an_answer_is_followed_by_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """What the harness raises goes on to the server, which cuts the connection."""

    def application(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", "2")])
        raise RuntimeError("on fire")

    services, sent = build_gateway_services(), Sent()
    services.moto.set_result(application)
    with pytest.raises(RuntimeError, match="on fire"):
        GatewayApplication(services)(build_environ("GET", "/bucket"), sent)
    assert sent.status == "200 OK"
    assert "GET /bucket failed" in caplog.text


def test_the_request_id_of_a_service_is_kept() -> None:
    def application(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [("X-Amzn-RequestId", "its own")])
        return []

    services = build_gateway_services()
    services.moto.set_result(application)
    assert ask(services, "/bucket")[1] == {"X-Amzn-RequestId": "its own"}


def test_a_refused_head_request_gets_no_body() -> None:
    sent = Sent()
    gateway = GatewayApplication(build_gateway_services())
    refused = gateway(build_environ("HEAD", "/bucket", HTTP_HOST="evil.example"), sent)
    assert list(refused) == []
    assert sent.status == "403 Forbidden"
    assert int(dict(sent.headers)["Content-Length"]) > 0


@pytest.mark.parametrize("account", ["x/../../evil", "abc", "1234567890123", ""])
def test_an_account_has_twelve_digits(gateway: Gateway, account: str) -> None:
    answer = gateway.send("POST", "/", X_Amz_Target="SageMaker.ListTrainingJobs", X_Moto_Account_Id=account)
    assert answer.status == 400
    assert b"X-Moto-Account-Id has to be an account of 12 digits" in answer.body


def test_a_request_with_an_empty_credential_is_not_signed(gateway: Gateway) -> None:
    answer = gateway.send("POST", "/?X-Amz-Credential=", X_Amz_Target="SageMaker.ListTrainingJobs")
    assert answer.status == 403
    assert b"Missing Authentication Token" in answer.body
