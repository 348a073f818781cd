"""Browser tests of every view: keyboard, accessibility, width."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sdk_compat.demo.training_job import BUCKET
from tests.end_to_end.console.page import REGION, Console, find_violations


def test_everything_is_reached_by_the_keyboard(console: Console, ended: str, stopped: str) -> None:
    page = console.go("jobs")
    expect(page.get_by_role("link", name=ended)).to_be_visible()
    for name in (ended, stopped):
        press_until(page, f"document.activeElement.ariaLabel === 'Compare {name}'")
        page.keyboard.press("Space")
    press_until(page, "document.activeElement.textContent === 'Compare 2 jobs'")
    page.keyboard.press("Enter")
    expect(page.locator("figure canvas")).to_be_visible()
    press_until(page, "document.activeElement.textContent === 'Jobs'")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=ended)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("healthy")
    expect(page.locator("tbody tr")).to_have_count(1)
    press_until(page, f"document.activeElement.textContent === {json.dumps(ended)}")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(ended)
    press_until(page, "document.activeElement.textContent === 'Tensors'")
    page.keyboard.press("Enter")
    press_until(page, "document.activeElement.textContent === 'heat map'")
    page.keyboard.press("Enter")
    expect(page.locator("canvas.grid")).to_be_visible()
    press_until(page, "document.activeElement.className === 'grid'")
    page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_contain_text("step")


def press_until(page: Page, condition: str) -> None:
    """Press the tabulator until something has the focus; a page is as long as a hundred presses at most."""
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate(condition):
            return
    raise AssertionError(f"nothing was reached of which {condition}")


@pytest.mark.parametrize(
    ("width", "scheme", "by_day"),
    [
        (1280, "light", True),
        pytest.param(1280, "light", False, marks=pytest.mark.nightly),
        pytest.param(360, "dark", False, marks=pytest.mark.nightly),
    ],
)
def test_every_view_is_accessible_and_fits(
    console: Console,
    ended: str,
    stopped: str,
    deep: str,
    strange: str,
    axe: str,
    width: int,
    scheme: Any,
    by_day: bool,
) -> None:
    """By day two of the pages are looked at; those of tensors and profiles have tests of their own."""
    page = console.page
    many = ",".join(f"{REGION}/{name}" for name in (ended, stopped, deep, strange))
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 800})
    job = f"jobs/{REGION}/{ended}"
    views = {
        "jobs": "tbody tr",
        job: "[data-rule] h3",
        f"{job}/metrics": "figure canvas",
        f"{job}/logs": ".line",
        f"{job}/tensors": "figure canvas",
        f"{job}/profiler": "canvas.flames",
        f"{job}/configuration": "pre",
        f"compare?jobs={REGION}/{ended},{REGION}/{stopped}": "figure canvas",
        f"compare?jobs={many}": "figure canvas",
        "s3": "ul.plain a",
        f"s3/{BUCKET}/output/": "tbody tr",
        f"s3/{BUCKET}/output/{ended}/output/model.tar.gz": "tbody tr",
        f"s3/{BUCKET}/output/{ended}/rule-output/VanishingGradient/report.json": "pre",
        f"s3/{BUCKET}/output/{ended}/rule-output/VanishingGradient/plot.svg": "img.preview",
        "events": ".timeline summary",
        f"jobs/{REGION}/nobody": ".problem",
    }
    if by_day:
        chosen = (job, f"compare?jobs={many}")
        views = {address: views[address] for address in chosen}
    for address, ready in views.items():
        console.go(address)
        expect(page.locator(ready).first).to_be_visible()
        assert find_violations(page, axe) == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    if by_day:
        return
    console.go(f"{job}/tensors")
    for kind, ready in (("histogram", "canvas.grid"), ("heat map", "canvas.grid"), ("values", "dl.pairs")):
        page.get_by_role("button", name=kind, exact=True).click()
        expect(page.locator(ready).first).to_be_visible()
        assert find_violations(page, axe) == [], kind
        assert page.evaluate("document.documentElement.scrollWidth") <= width, kind
    # The browser says that one job was not found.
    console.complaints[:] = [text for text in console.complaints if "404" not in text]
