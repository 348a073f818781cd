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


def test_another_page_is_not_found() -> None:
    assert build_pages(dict).test_client().get("/_emulator/nothing").status_code == 404
