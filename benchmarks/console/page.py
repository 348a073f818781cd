"""Latency of a verdict in an open console page. Goal: under 0.5 s.

The latency is the time from the event of the verdict to the mark that shows it in the page.

Debian's chromium shows the list of jobs, and a script in the page watches its rows. The event has a timestamp from the
emulator, which uses the same clock. Then the benchmark opens the job's tensors, and measures the time from the click to
the first plot.
"""

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from playwright.sync_api import Page, sync_playwright

from benchmarks.rules.verdict import build_nan_request
from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.demo.training_job import BUCKET
from sdk_compat.emulator_process import EmulatorProcess

ROUNDS = 5
PATIENCE_MS = 120_000
WATCH = """() => {
  window.shown = {};
  const look = () => {
    for (const row of document.querySelectorAll("tr[data-job]"))
      if (!(row.dataset.job in window.shown) && row.querySelector("[data-status=IssuesFound]"))
        window.shown[row.dataset.job] = Date.now();
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
}"""


def measure() -> Iterator[str]:
    chromium = shutil.which("chromium")
    if chromium is None:
        yield "chromium is not installed here: apt-get install chromium"
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        EmulatorProcess(Path(folder) / "state", runtime="process") as emulator,
        sync_playwright() as playwright,
    ):
        client = EmulatorSession(emulator.endpoint_url).client
        client("s3").create_bucket(Bucket=BUCKET)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        times = [time_verdict(client, page, emulator.endpoint_url, f"shown-{turn}") for turn in range(ROUNDS)]
        verdicts, plots = zip(*times, strict=True)
        yield f"IssuesFound sent → shown in the list of jobs {describe(verdicts)} (goal: under 0.5 s)"
        yield f"click on Tensors → first plot of a job of 4 steps {describe(plots)}"
        browser.close()


def describe(seconds: tuple[float, ...]) -> str:
    return f"{statistics.median(seconds):.2f} s, slowest {max(seconds):.2f} s of {len(seconds)}"


def time_verdict(client: Any, page: Page, endpoint_url: str, name: str) -> tuple[float, float]:
    """Return the seconds from the event to the mark, and from the click to the first plot."""
    page.goto(f"{endpoint_url}/console#/jobs")
    page.locator("h1").wait_for()
    page.evaluate(WATCH)
    client("sagemaker").create_training_job(**build_nan_request(client("s3"), name))
    page.locator(f"tr[data-job='{name}'] [data-status='IssuesFound']").wait_for(timeout=PATIENCE_MS)
    client("sagemaker").stop_training_job(TrainingJobName=name)
    page.locator(f"tr[data-job='{name}'] [data-status='Stopped']").first.wait_for(timeout=PATIENCE_MS)
    with urlopen(f"{endpoint_url}/_emulator/jobs/us-east-1/{name}") as answer:
        events = json.load(answer)["events"]
    sent = next(
        event["timeMs"]
        for event in events
        for rule in event["content"]["detail"].get("DebugRuleEvaluationStatuses", ())
        if rule["RuleEvaluationStatus"] == "IssuesFound"
    )
    page.get_by_role("link", name=name).click()
    link = page.get_by_role("link", name="Tensors", exact=True)
    link.wait_for()
    began = time.perf_counter()
    link.click()
    page.locator("figure canvas").first.wait_for(timeout=PATIENCE_MS)
    return (page.evaluate("name => window.shown[name]", name) - sent) / 1000, time.perf_counter() - began
