import pytest

from emulator.api.application import build_pages


def test_health_is_asked_again_for_each_request() -> None:
    answers = iter([{"status": "starting"}, {"status": "running"}])
    client = build_pages(lambda: next(answers)).test_client()
    assert client.get("/_emulator/health").get_json() == {"status": "starting"}
    assert client.get("/_emulator/health").get_json() == {"status": "running"}


def test_the_front_page_says_where_to_go() -> None:
    page = build_pages(dict).test_client().get("/")
    assert (page.status_code, page.mimetype) == (200, "text/plain")
    assert "/_emulator/health" in page.text
    assert "smdebug-emulator env" in page.text


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/_emulator/nothing", 404, "There is no /_emulator/nothing here: /_emulator/docs lists all"),
        ("DELETE", "/_emulator/health", 405, "does not accept DELETE: use GET, HEAD, OPTIONS."),
        ("GET", "/_emulator/broken", 500, "The emulator failed to answer /_emulator/broken; its log has the traceback"),
    ],
)
def test_errors_of_the_web_server_are_json(method: str, path: str, status: int, said: str) -> None:
    pages = build_pages(dict)
    pages.add_url_rule("/_emulator/broken", view_func=lambda: [][0])
    answer = pages.test_client().open(path, method=method)
    assert (answer.status_code, answer.mimetype) == (status, "application/json")
    found = answer.get_json()
    assert found.keys() == {"code", "error"}
    assert said in found["error"]


def test_a_wrong_method_is_refused_with_the_allowed_ones() -> None:
    answer = build_pages(dict).test_client().delete("/_emulator/health")
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
