"""Browser tests of hostile objects of S3."""

from urllib.parse import quote

from playwright.sync_api import expect

from sdk_compat.demo.training_job import BUCKET
from tests.end_to_end.console.page import HOSTILE_KEY, RIGHT_TO_LEFT, Console


def test_hostile_objects_are_shown_and_do_nothing(console: Console) -> None:
    page = console.go("s3/" + quote(f"{BUCKET}/{HOSTILE_KEY}"))
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("shown")).to_be_visible()
    assert page.locator("iframe").get_attribute("sandbox") == ""
    assert page.title().startswith(f"{BUCKET}/hostile/<img")
    assert page.locator("main img").count() == 0
    # What the frame's policy refused is all that the browser has to say.
    assert console.complaints
    assert all("sandbox" in text or "Content Security Policy" in text for text in console.complaints)
    console.complaints.clear()

    console.go(f"s3/{BUCKET}/hostile/picture.svg")
    expect(page.locator("img.preview")).to_be_attached()
    console.go("s3/" + quote(f"{BUCKET}/hostile/{RIGHT_TO_LEFT}.txt"))
    expect(page.locator("pre")).to_have_text("plain & <i>simple</i>")
    assert page.locator(".crumbs bdi").last.inner_text() == f"{RIGHT_TO_LEFT}.txt"
    # Opened by itself it is as inert.
    answer = page.goto(f"{console.emulator.endpoint_url}/_emulator/s3/{BUCKET}/object?key={quote(HOSTILE_KEY)}")
    assert answer is not None
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    expect(page.get_by_text("shown")).to_be_visible()
    console.complaints.clear()
