"""Browser tests of what the console shows while it happens."""

import json

from playwright.sync_api import Page, expect

from sdk_compat.demo.training_job import BUCKET
from tests.chromium import visit
from tests.end_to_end.console.endless_job import build_endless_request
from tests.end_to_end.console.page import Console
from tests.waiting import wait_until


def test_a_verdict_shows_and_a_job_is_stopped_without_a_reload(console: Console, healthy: str) -> None:
    page = console.go("jobs")
    expect(page.locator(f"tr[data-job='{healthy}']")).to_be_visible()
    page.evaluate("window.neverLoadedAnew = true")
    other = page.context.new_page()
    visit(other, page.url)
    expect(other.locator(f"tr[data-job='{healthy}']")).to_be_visible()
    # What happens while a browser is cut off shows when it is back.
    page.context.set_offline(True)
    away = page.get_by_text("The emulator does not answer")
    page.evaluate("window.dispatchEvent(new Event('online'))")  # it tries again, in vain
    expect(away).to_be_visible()
    console.emulator.client("sagemaker").create_training_job(**build_endless_request())
    page.context.set_offline(False)
    expect(away).to_be_hidden()
    console.complaints.clear()
    row = page.locator("tr[data-job='console-sick']")
    fired = row.locator("[data-status='IssuesFound']")
    expect(fired).to_contain_text("VanishingGradient")
    row.get_by_role("link", name="console-sick").click()
    rule = page.locator("[data-rule='VanishingGradient']")
    expect(rule.locator(".said")).to_contain_text("below threshold 1e-07")
    expect(rule.locator("figure canvas")).to_be_visible()
    rule.locator("figure summary").click()
    finding = json.loads(
        console.emulator.client("s3")
        .get_object(Bucket=BUCKET, Key="output/console-sick/rule-output/VanishingGradient/report.json")["Body"]
        .read()
    )["Series"][0]
    expect(rule.locator("figure details tbody td")).to_have_text([str_of_js(value) for value in finding["Values"]])
    page.get_by_role("link", name="Profiler", exact=True).click()
    said = page.locator("main [role=status]", has_text="trace event")
    expect(said).to_contain_text("The job is running: this goes on.")
    before = said.inner_text()
    expect(said).not_to_have_text(before)
    expect(page.locator("figcaption", has_text="Memory (%)")).to_be_visible()
    page.get_by_role("button", name="Stop the job").click()
    expect(page.locator(".facts [data-status='Stopped']")).to_be_visible()
    assert page.evaluate("window.neverLoadedAnew")
    stopped = other.locator("tr[data-job='console-sick'] [data-status='Stopped']").first
    expect(stopped).to_be_visible()


def str_of_js(number: float) -> str:
    """A number as JavaScript writes it."""
    text = repr(float(number))
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text.removesuffix(".0")
    return f"{mantissa.removesuffix('.0')}e{'-' if exponent.startswith('-') else '+'}{int(exponent.lstrip('+-'))}"


def test_a_tab_that_nobody_sees_leaves_its_connection_to_others(console: Console, ended: str) -> None:
    page = console.page
    with page.expect_request("**/_emulator/stream*"):
        console.go("jobs")
    expect(page.locator(f"tr[data-job='{ended}']")).to_be_visible()

    def hide_and_show() -> str:
        with page.expect_event("requestfailed", lambda request: "/stream" in request.url):
            show_or_hide(page, "hidden")
        with page.expect_request("**/_emulator/stream*") as again:
            show_or_hide(page, "visible")
        return again.value.url

    # A stream that was closed before its first event has nothing to continue from.
    wait_until(lambda: "lastEventId=" in hide_and_show())


def show_or_hide(page: Page, state: str) -> None:
    """Have the page believe that somebody looks at it, or nobody."""
    page.evaluate(
        "state => { Object.defineProperty(document, 'visibilityState', { get: () => state, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        state,
    )
