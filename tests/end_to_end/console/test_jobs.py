"""Browser tests of a job's page, and of jobs side by side."""

import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Route, expect

from benchmarks.shared.tensorboard import build_tensorboard
from sdk_compat.demo.training_job import BUCKET
from tests.end_to_end.api_answers import find_differences
from tests.end_to_end.console.jobs_from_elsewhere import import_run
from tests.end_to_end.console.page import PATIENCE_MS, REGION, Console, ask_emulator
from tests.waiting import wait_until


def test_a_rule_is_tried_with_other_parameters(console: Console, ended: str) -> None:
    page = console.go(f"jobs/{REGION}/{ended}")
    rule = page.locator("[data-rule='VanishingGradient']")
    rule.get_by_text("Try other parameters").click()
    rule.locator("input[name=threshold]").fill("1000")
    rule.get_by_role("button", name="Try", exact=True).click()
    expect(rule.locator("h4 [data-status='IssuesFound']")).to_be_visible()
    expect(rule.locator("details figcaption", has_text="VanishingGradient, tried")).to_be_visible()
    # The job's own verdict stays.
    expect(rule.locator("h3 [data-status='NoIssuesFound']")).to_be_visible()


def test_jobs_are_compared_logs_searched_and_links_followed(console: Console, ended: str, stopped: str) -> None:
    page = console.go("jobs")
    for label, chosen, other in (("Rule verdict", "IssuesFound", ended), ("Status", "Completed", stopped)):
        page.locator("label", has_text=label).locator("select").select_option(chosen)
        expect(page.locator(f"tr[data-job='{other}']")).to_have_count(0)
        expect(page.locator("tbody tr")).not_to_have_count(0)
        page.locator("label", has_text=label).locator("select").select_option("")
    for name in (ended, stopped):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("link", name="Compare 2").click()
    expect(page.locator("figure canvas")).to_be_visible()
    expect(page.get_by_role("region", name="What differs")).to_contain_text("sigmoid")
    show = page.locator("label", has_text=re.compile("^Show ")).locator("select")
    first = page.locator("figcaption").first.inner_text()
    show.select_option("metric train:loss")
    expect(page.locator("figcaption")).to_have_text([first, "train:loss"])
    expect(page.get_by_role("rowheader", name="train:loss, last")).to_be_visible()
    page.get_by_role("button", name=f"Remove {first}").click()
    page.locator("label", has_text=re.compile("^Layout ")).locator("select").select_option("")
    expect(page.locator("figcaption")).to_have_text([f"{ended}: train:loss"])
    page.locator("label", has_text=re.compile("^Hyperparameters ")).locator("select").select_option("all")
    expect(page.get_by_role("rowheader", name="sagemaker_program")).to_be_visible()
    page.reload()
    expect(page.locator("figcaption")).to_have_text([f"{ended}: train:loss"])
    expect(page.get_by_role("rowheader", name="sagemaker_program")).to_be_visible()

    console.go(f"jobs/{REGION}/{ended}/tensors")
    page.get_by_role("button", name="heat map").click()
    expect(page).to_have_url(re.compile(r"/tensors\?picture=heat\+map$"))
    page.reload()
    expect(page.get_by_role("button", name="heat map")).to_have_attribute("aria-pressed", "true")

    console.go(f"jobs/{REGION}/{ended}/logs")
    expect(page.get_by_role("log")).to_contain_text("test_accuracy=")
    page.get_by_label("Search the log").fill("step=200")
    expect(page.locator(".line")).to_have_count(1)

    console.go(f"jobs/{REGION}/{ended}/metrics")
    for measured in ("CPUUtilization", "MemoryUtilization", "DiskUtilization"):
        expect(page.locator("figcaption", has_text=measured)).to_be_visible()
    expect(page.locator("figcaption", has_text="loss").first).to_be_visible()

    console.go(f"jobs/{REGION}/{ended}")
    page.get_by_role("link", name=f"s3://{BUCKET}/output/{ended}/output/model.tar.gz").click()
    expect(page.get_by_role("rowheader", name="model.npy")).to_be_visible()

    console.go("events")
    page.locator("summary").first.click()
    expect(page.locator("pre").first).to_contain_text('"detail-type"')


def test_a_note_and_tags_are_kept(console: Console, ended: str) -> None:
    page = console.go(f"jobs/{REGION}/{ended}")
    page.get_by_label("Note", exact=True).fill("the baseline")
    page.get_by_role("button", name="Save the note").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.get_by_label("Tag", exact=True).fill("team")
    page.get_by_label("Value", exact=True).fill("vision")
    page.get_by_role("button", name="Set the tag").click()
    expect(page.get_by_role("button", name="Remove the tag team")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Note", exact=True)).to_have_value("the baseline")
    page.get_by_role("button", name="Remove the tag team").click()
    expect(page.get_by_role("button", name="Remove the tag team")).to_have_count(0)


def test_warnings_are_marked_in_the_list_and_shown_on_every_tab(console: Console, ended: str) -> None:
    page = console.go("jobs")
    row = page.locator(f"tr[data-job='{ended}']")
    # A busy machine adds that the training was starved.
    expect(row.locator(".warned")).to_contain_text(re.compile("[23] warnings"))
    expect(row).to_contain_text("ml.g5.2xlarge: no GPU here")
    for tab in ("", "/logs", "/configuration"):
        console.go(f"jobs/{REGION}/{ended}{tab}")
        block = page.get_by_role("region", name="Warnings")
        expect(block.locator("[data-warning='NoGpu']")).to_contain_text("ml.g5.2xlarge: no GPU here")
        metric = block.locator("[data-warning='MetricNeverMatched']")
        expect(metric).to_contain_text("The metric 'never:found' has no value")
        expect(metric).to_contain_text("<img src=x")
    assert page.title() != "taken"


def test_each_host_s_lines_are_all_shown_and_found(console: Console, ended: str, tmp_path: Path) -> None:
    begin_ms = time.time_ns() // 1_000_000 - 10_000_000
    lines = [[begin_ms + at, f"first {at}"] for at in range(1200)]
    name = import_run(console.emulator, ended, "two-logs", tmp_path, lines)
    logs, stream = console.emulator.client("logs"), f"{name}/algo-2-1"
    logs.create_log_stream(logGroupName="/aws/sagemaker/TrainingJobs", logStreamName=stream)
    events = [{"timestamp": begin_ms + at, "message": f"second {at}"} for at in range(700)]
    logs.put_log_events(logGroupName="/aws/sagemaker/TrainingJobs", logStreamName=stream, logEvents=events)

    page = console.go(f"jobs/{REGION}/{name}/logs")
    shown, earlier = page.locator("[role=log] .line"), page.get_by_role("button", name="Earlier lines")
    for count in (1000, 1700, 1900):
        expect(shown).to_have_count(count)
        if count < 1900:
            earlier.click()
    expect(earlier).to_be_hidden()
    texts = {text.partition("first " if "first" in text else "second ")[1:] for text in shown.all_inner_texts()}
    assert len(texts) == 1900

    # The answer to the first words comes after others were typed.
    held: list[Route] = []
    first_words = re.compile(r"/logs\?.*words=first(&|$)")
    page.route(first_words, lambda route: held.append(route))
    search = page.get_by_label("Search the log")
    with page.expect_request(first_words):
        search.fill("first")
    search.fill("second 6")
    page.wait_for_timeout(300)  # longer than the search waits for more letters; sooner, there is nothing to mix up
    held[0].continue_()
    expect(page.get_by_text("with these words")).to_contain_text(re.compile(r", 111 with"))
    assert all("second 6" in text for text in shown.all_inner_texts())


@pytest.mark.nightly
def test_tensorboard_starts_and_a_function_s_log_is_in_the_timeline(console: Console, ended: str) -> None:
    build_tensorboard()
    document = ask_emulator(console.emulator, "GET", "openapi.json")
    asked = {"jobs/{region}/{name}/tensorboard": [f"jobs/{REGION}/{ended}/tensorboard"]}
    assert find_differences(document, asked, lambda *question: ask_emulator(console.emulator, *question)) == []
    page = console.go(f"jobs/{REGION}/{ended}")
    page.get_by_role("button", name="Start TensorBoard").click()
    event = page.locator(".timeline details", has_text="1 target").first
    event.locator("summary").click()
    expect(event.locator(".delivery")).to_contain_text("console-watcher")
    expect(event.locator(".delivery")).to_contain_text('"Stopped":')
    event.get_by_role("button", name="Log of the function").click()
    expect(event.locator(".delivery pre").last).to_contain_text("START RequestId: ")
    expect(event.locator(".delivery pre").last).to_contain_text("REPORT RequestId: ")

    link = page.locator("a[target=_blank]")
    expect(link).to_be_visible()

    def read_runs() -> dict[str, Any]:
        with urlopen(f"{link.get_attribute('href')}data/plugin/scalars/tags", timeout=PATIENCE_MS / 1000) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    assert wait_until(read_runs, "the job's scalars in TensorBoard")
