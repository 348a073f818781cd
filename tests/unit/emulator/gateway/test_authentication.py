import pytest

from emulator.exceptions import AccessDeniedException, AwsError, MissingAuthenticationToken
from emulator.gateway.authentication import LOOPBACK_HOSTS, authenticate, check_source, read_region

SIGNED = "AWS4-HMAC-SHA256 Credential=AKID/20250101/eu-west-1/sagemaker/aws4_request, SignedHeaders=a, Signature=0"


def test_the_region_comes_from_the_header() -> None:
    assert read_region({"HTTP_AUTHORIZATION": SIGNED}) == "eu-west-1"


def test_the_region_comes_from_a_presigned_query() -> None:
    query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20250101%2Fus-east-2%2Fs3%2Faws4_request"
    assert read_region({"QUERY_STRING": query}) == "us-east-2"


def test_an_unsigned_request_is_for_the_default_region() -> None:
    assert read_region({}, default="eu-north-1") == "eu-north-1"


@pytest.mark.parametrize("header", ["", "Basic x", "AWS4-HMAC-SHA256 Credential=AKID/2025/us-east-1/x/aws4_request"])
def test_anything_else_is_unsigned(header: str) -> None:
    with pytest.raises(MissingAuthenticationToken):
        authenticate({"HTTP_AUTHORIZATION": header}, {"eu-west-1"})


def test_a_region_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AwsError, match="valid region") as caught:
        authenticate({"HTTP_AUTHORIZATION": SIGNED}, {"us-east-1"})
    assert caught.value.code == "InvalidSignatureException"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:4580",
        "localhost:4580",
        "[::1]:4580",
        "LOCALHOST",
        "172.20.0.1:1",
    ],
)
def test_own_hosts_pass(host: str) -> None:
    check_source({"HTTP_HOST": host}, {*LOOPBACK_HOSTS, "172.20.0.1"})
    with pytest.raises(AccessDeniedException, match="Host is"):
        check_source({"HTTP_HOST": host}, {"172.20.0.2"})


def test_a_name_under_localhost_is_always_own() -> None:
    check_source({"HTTP_HOST": "bucket.localhost:4580"}, set())
    with pytest.raises(AccessDeniedException, match="Host is"):
        check_source({"HTTP_HOST": "localhost:4580"}, set())


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::1", "xlocalhost", "a@b"],
)
def test_other_hosts_are_refused(host: str) -> None:
    with pytest.raises(AccessDeniedException, match="Host is"):
        check_source({"HTTP_HOST": host}, LOOPBACK_HOSTS)


def is_let_in(environ: dict[str, str]) -> bool:
    try:
        check_source(environ, LOOPBACK_HOSTS)
    except AccessDeniedException:
        return False
    return True


def test_a_page_of_ours_passes() -> None:
    page = {"HTTP_HOST": "localhost:1", "HTTP_ORIGIN": "http://localhost:1", "HTTP_SEC_FETCH_SITE": "same-origin"}
    assert is_let_in(page)
    assert not is_let_in(page | {"HTTP_ORIGIN": "http://elsewhere.example"})


def test_an_address_that_was_typed_passes() -> None:
    assert is_let_in({"HTTP_HOST": "localhost:1", "HTTP_SEC_FETCH_SITE": "none"})


@pytest.mark.parametrize("site", ["cross-site", "same-site", ""])
def test_what_a_page_of_another_site_caused_is_refused(site: str) -> None:
    """A GET for an image or a form's answer has no Origin; the browser says only this much."""
    with pytest.raises(AccessDeniedException, match="another site"):
        check_source({"HTTP_HOST": "localhost:1", "HTTP_SEC_FETCH_SITE": site}, LOOPBACK_HOSTS)


@pytest.mark.parametrize(
    "origin",
    [
        *("null", "https://evil.example", "http://localhost.evil.example", "file://", ""),
        *("http://localhost:2", "http://localhost", "https://localhost:1", "http://127.0.0.1:1"),
        "http://bucket.localhost:1",
    ],
)
def test_pages_of_others_are_refused(origin: str) -> None:
    with pytest.raises(AccessDeniedException, match="web page"):
        check_source({"HTTP_HOST": "localhost:1", "HTTP_ORIGIN": origin}, LOOPBACK_HOSTS)
