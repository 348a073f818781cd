"""Seconds until the console shows 5,000 jobs, or the first of 1,000 tensors.

Goal: 0.3 s each.

The jobs are records in the state folder, as the emulator writes them. The tensors are saved at 100 steps and lie in the
emulator's S3. Debian's chromium opens the pages; the first opening of the page itself, which is cached, is not counted.
The clock is the page's own, from the click to the end of the frame that shows what was asked for: what the driver of
the browser takes to click and to look is not a time of the page. The first click opens the run, and is told by itself.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks.console.console import write_collections
from emulator.jobs.model.training_job import new_training_job
from emulator.jobs.store.store import JobStore
from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.demo.training_job import BUCKET, build_training_job
from sdk_compat.emulator_process import EmulatorProcess
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.writing.file_writer import FileWriter
from tests.end_to_end.many_jobs import ACCOUNT, REGION, store_jobs

JOBS, TENSORS, STEPS, ROUNDS = 5000, 1000, 100, 7
JOB = "of-many-tensors"
CLICK = """([link, shown]) => new Promise((resolve) => {
  const began = performance.now();
  new MutationObserver((_, observer) => {
    if (!document.querySelector(shown)) return;
    observer.disconnect();
    // The frame after the next begins when the next has been painted.
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began)));
  }).observe(document.body, { childList: true, subtree: true });
  document.querySelector(link).click();
})"""


def measure() -> Iterator[str]:
    chromium = shutil.which("chromium")
    if chromium is None:
        yield "chromium is not installed here: apt-get install chromium"
        return
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        with EmulatorProcess(state, runtime="process", warm=None):
            pass  # it makes the folder
        store_jobs(state, JOBS)
        store_job(state)
        with EmulatorProcess(state, runtime="process", warm=None) as emulator, sync_playwright() as playwright:
            store_run(EmulatorSession(emulator.endpoint_url).client("s3"), Path(folder) / "run")
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page()
            console = f"{emulator.endpoint_url}/console"
            page.goto(f"{console}#/events")
            page.locator("h1").wait_for()
            yield f"list of {JOBS:,} jobs, a link to its first row {describe([show_jobs(page) for _ in range(ROUNDS)])}"
            first, *others = [show_tensors(page) for _ in range(ROUNDS + 1)]
            what = f"job of {TENSORS:,} tensors, a click on Tensors to the plot"
            yield f"{what} {describe(others)}; the first {first:.2f} s"
            browser.close()


def describe(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s, slowest {max(seconds):.2f} s of {len(seconds)} (goal: 0.3 s)"


def show_jobs(page: Page) -> float:
    page.evaluate("location.hash = '#/events'")
    page.get_by_role("heading", name="Events").wait_for()
    return click(page, "header nav a[href='#/jobs']", "tr[data-job]")


def show_tensors(page: Page) -> float:
    page.evaluate(f"location.hash = '#/jobs/{REGION}/{JOB}'")
    page.get_by_role("heading", name="Rules").wait_for()
    page.get_by_role("link", name="Tensors", exact=True).wait_for()
    return click(page, "main nav a[href$='/tensors']", "figure canvas")


def click(page: Page, link: str, shown: str) -> float:
    """Click on a link; return the seconds until what it leads to is painted."""
    return float(page.evaluate(CLICK, [link, shown])) / 1000


def store_job(state: Path) -> None:
    """Write the record of a job that saved tensors into the state folder of an emulator that does not run."""
    request = build_training_job(
        JOB, image="any:1", hyperparameters={}, channels=(), collections={"losses": {"save_interval": "1"}}
    )
    born_ms = int(time.time() * 1000)
    job = new_training_job(ACCOUNT, REGION, "b" * 12, request, born_ms)
    job = job.transition("Downloading", born_ms + 1).transition("Training", born_ms + 2)
    job = job.transition("Uploading", born_ms + 3).transition("Completed", born_ms + 4)
    store = JobStore(state / "jobs.sqlite")
    try:
        with store.transaction() as transaction:
            transaction.create_training_job(job, (), ())
    finally:
        store.close()


def store_run(s3: Any, folder: Path) -> None:
    """Write a run, and store it where the job's tensors are looked for."""
    folder.mkdir()
    write_collections(folder)
    for step in range(STEPS):
        with FileWriter(str(folder), "worker_0", step) as writer:
            writer.write_tensor(np.float32(1 / (step + 1)), "loss")
            for number in range(TENSORS - 1):
                writer.write_tensor(np.float32(step + number), f"tensor/{number}")
    (folder / END_OF_JOB_FILE).touch()
    s3.create_bucket(Bucket=BUCKET)
    for path in folder.rglob("*"):
        if path.is_file():
            key = f"tensors/{JOB}/debug-output/{path.relative_to(folder)}"
            s3.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
