"""Browser tests of what the console shows of a profile."""

import json

import pytest
from playwright.sync_api import expect

from tests.end_to_end.console.page import REGION, Console, ask_emulator, find_violations, run_command


def test_what_the_profiler_saw(console: Console, ended: str, capfd: pytest.CaptureFixture[str]) -> None:
    page = console.go(f"jobs/{REGION}/{ended}/profiler")
    row = page.locator("tr[data-process]")
    expect(row).to_have_count(1)
    known = ask_emulator(console.emulator, "GET", f"jobs/{REGION}/{ended}/profile")
    # In a terminal it is said in the same numbers.
    run_command(console, "profile", ended, "--json")  # a program of its own prints
    said = json.loads(capfd.readouterr().out)
    assert (said["usage"], said["time"]) == (known["usage"], known["time"])
    (time,) = known["time"]
    assert time["steps"] >= 300
    assert row.locator("td").first.inner_text() == str(time["steps"])
    shares = [row.locator(f"[data-part={part}]").inner_text() for part in ("forward", "backward", "other")]
    assert [text.partition("(")[2] for text in shares] == [
        f"{100 * time[part] / time['seconds']:.0f} %)" for part in ("forward", "backward", "other")
    ]
    for figure in ("Processor", "Memory", "I/O (MB/s)", "Network", "Duration of steps", "Steps of"):
        expect(page.locator("figcaption", has_text=figure)).to_be_visible()
    memory = page.locator("figure", has=page.locator("figcaption", has_text="Memory"))
    (line,) = (each for each in known["lines"] if each["figure"] == "Memory")
    memory.locator("summary").click()
    expect(memory.locator("details tbody tr")).to_have_count(len(line["times"]))
    shown = [float(text) for text in memory.locator("details tbody td").all_inner_texts() if text != "nothing"]
    assert shown == [value for value in line["mean"] if value is not None]

    flames = page.locator("canvas.flames")
    expect(flames).to_be_visible()
    flames.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("figure:has(canvas.flames) output")).to_contain_text("% of all")
    longest = page.locator("output", has_text="% of all").inner_text().partition(" (")[0]
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Show all")).to_be_enabled()
    drawn = ask_emulator(
        console.emulator, "GET", f"jobs/{REGION}/{ended}/profile/flame-graph?process={time['process']}"
    )
    assert drawn["profiles"] >= 6, "three steps, each in two"
    assert drawn["tree"]["children"][0]["name"] == longest

    frame = page.locator("iframe[title=ProfilerReport]")
    expect(frame).to_be_attached()
    assert frame.get_attribute("sandbox") == ""
    report = page.frame_locator("iframe[title=ProfilerReport]")
    expect(report.get_by_role("heading", name="Training job summary")).to_be_visible()
    expect(report.get_by_text("The job has ended.")).to_be_visible()
    expect(page.locator("li [data-status=NoIssuesFound]")).to_contain_text("Report-1")


def test_two_hosts_with_gpus_and_hostile_names_are_profiled(console: Console, strange: str, axe: str) -> None:
    console.page.set_viewport_size({"width": 360, "height": 800})
    page = console.go(f"jobs/{REGION}/{strange}/profiler")
    expect(page.locator("figcaption", has_text="GPU (%)")).to_be_visible()
    row = page.locator("tr[data-process='0-algo-1']")
    expect(row.locator("[data-part=forward]")).to_have_text("1.0 s (25 %)")
    expect(row.locator("[data-part=data_loading]")).to_contain_text("0.5 s")
    expect(page.locator("figcaption", has_text="Steps of 1-algo-2")).to_be_visible()
    page.locator("figure:has(canvas.flames)").scroll_into_view_if_needed()
    page.locator("canvas.flames").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("figure:has(canvas.flames) output")).to_contain_text("<b>bold</b> (<img src=x onerror")
    assert find_violations(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("main img, main b, main script").count() == 0
    assert page.title().startswith(strange)
