"""Browser tests of the console where signatures are required.

It works with the token, and shows nothing without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from emulator.console.build import build_console
from sdk_compat.demo.training_job import BUCKET, ROLE_ARN, TRAINING_IMAGE
from tests.chromium import opened_chromium, visit
from tests.end_to_end.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page, Request

JOB = "console-guarded"
PATIENCE_MS = 180_000
API = f"/_emulator/jobs/us-east-1/{JOB}"


@pytest.fixture
def browser() -> Iterator[Browser]:
    with opened_chromium() as opened:
        yield opened


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """One for this machine, with a job that runs until it is stopped."""
    build_console()
    emulator = Guarded(tmp_path / "state", "process", "--require-signature")
    try:
        emulator.client("s3").create_bucket(Bucket=BUCKET)
        emulator.client("sagemaker").create_training_job(
            TrainingJobName=JOB,
            RoleArn=ROLE_ARN,
            AlgorithmSpecification={
                "TrainingImage": TRAINING_IMAGE,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["python3", "-c", "import time; time.sleep(3600)"],
            },
            OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/output"},
            ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
            StoppingCondition={"MaxRuntimeInSeconds": 3600},
        )
        yield emulator
    finally:
        emulator.stop()


# By day, test_signatures.py asks for pages without the token, with a wrong one, and by the link that leaves a cookie.
@pytest.mark.nightly
def test_the_console_asks_for_the_token_and_keeps_it_out_of_addresses(browser: Browser, guarded: Guarded) -> None:
    """A browser without the link sees no job and stops none; with the link, both work, and the address is clean."""
    refuse_a_foreign_origin(browser, guarded)
    status = guarded.client("sagemaker").describe_training_job(TrainingJobName=JOB)["TrainingJobStatus"]
    assert status == "InProgress", "what a browser without the link asked for was not done"

    token = parse_qs(urlsplit(guarded.console_link).query)["token"][0]
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    asked: list[Request] = []
    context.on("request", lambda request: asked.append(request))
    page = context.new_page()
    visit(page, guarded.console_link)
    row = page.locator(f"tr[data-job='{JOB}']")
    expect(row).to_be_visible(timeout=PATIENCE_MS)
    # A reload asks with what the browser has kept.
    page.reload()
    row.get_by_role("link", name=JOB).click()
    page.get_by_role("button", name="Stop the job").click()
    expect(page.locator(".facts [data-status='Stopped']")).to_be_visible(timeout=PATIENCE_MS)
    stopped = guarded.client("sagemaker").describe_training_job(TrainingJobName=JOB)
    assert stopped["TrainingJobStatus"] == "Stopped"

    first, *others = asked
    assert token in first.url, "the link itself"
    assert len(others) > 3
    assert [each.url for each in others if token in each.url] == []
    assert [each.url for each in asked if token in each.all_headers().get("referer", "")] == []
    assert [address for address in list_history(context, page) if token in address] == []
    assert token not in page.evaluate("document.cookie + document.referrer + JSON.stringify({...localStorage})")
    context.close()


def refuse_a_foreign_origin(browser: Browser, guarded: Guarded) -> None:
    """Look at the console, and ask for a job and its end, without a token and with a wrong one."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    for query in ("", f"?token={'x' * 40}"):
        answer = visit(page, f"{guarded.endpoint_url}/console{query}#/jobs/us-east-1/{JOB}")
        assert answer is not None
        assert answer.status == 401
        assert JOB not in page.content()
        assert "ask for its token" in page.inner_text("body")
        # From a page of the emulator's own origin, as the console asks.
        ask = "async ([method, path]) => fetch(path, {method}).then(async (got) => [got.status, await got.text()])"
        for method, path in (("GET", "/_emulator/jobs"), ("GET", API), ("GET", f"{API}/logs"), ("POST", f"{API}/stop")):
            status, said = page.evaluate(ask, [method, path])
            assert status == 401, path
            assert JOB not in said
    assert context.cookies() == []
    context.close()


def list_history(context: BrowserContext, page: Page) -> list[str]:
    """Return the addresses that the page's back button knows."""
    entries = context.new_cdp_session(page).send("Page.getNavigationHistory")["entries"]
    return [each["url"] for each in entries]
