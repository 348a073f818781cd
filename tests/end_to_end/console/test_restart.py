"""Browser test of the console while the emulator is away."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from container_runtime.process.loopback_network import draw_port
from sdk_compat.demo.training_job import BUCKET, HEALTHY, build_request
from tests.end_to_end.console.page import Console
from tests.running_emulator import RunningEmulator


# By day, test_changes.py has a browser that is cut off, and integration/emulator/api/test_changes.py what a new
# emulator says to a page of an earlier one.
@pytest.mark.nightly
def test_the_page_continues_when_the_emulator_comes_back(
    console: Console, start_emulator: Callable[..., RunningEmulator]
) -> None:
    emulator = start_emulator("process", port=draw_port(), warm=False)
    create_failing_job(emulator, "console-earlier")
    page = Console(console.page, emulator).go("jobs")
    expect(row_of(page, "console-earlier")).to_contain_text("Failed")
    assert emulator.stop() == 0
    expect(page.get_by_text("The emulator does not answer")).to_be_visible()
    port = int(emulator.endpoint_url.rpartition(":")[2])
    again = start_emulator("process", state_dir=emulator.state_dir, port=port, warm=False)
    expect(page.get_by_text("The emulator does not answer")).to_be_hidden()
    again.client("sagemaker").delete_training_job(TrainingJobName="console-earlier")
    create_failing_job(again, "console-later")
    expect(row_of(page, "console-later")).to_be_visible()
    expect(row_of(page, "console-earlier")).to_have_count(0)
    page.close()
    console.complaints.clear()  # of the time in which nobody answered
    assert again.stop() == 0


def create_failing_job(emulator: RunningEmulator, name: str) -> None:
    """Create a job that fails at once: its script is nowhere."""
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    request = build_request(name, HEALTHY)
    del request["InputDataConfig"]
    emulator.client("sagemaker").create_training_job(**request)


def row_of(page: Page, name: str) -> Locator:
    return page.locator(f"tr[data-job='{name}']")
