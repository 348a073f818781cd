"""Generator of the docs' pictures (``make screenshots``).

Two jobs run for them, as in the demo.
"""

import os
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser

from emulator.console.build import build_console
from sdk_compat.demo.training_job import HEALTHY, SICK, build_request, stage_inputs
from tests.chromium import opened_chromium, visit
from tests.end_to_end.finished_jobs import wait_until_ended
from tests.end_to_end.profiled_jobs import profile
from tests.running_emulator import RunningEmulator

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_JOB = "jobs/us-east-1/digits"
# The address of each view, what is to be there, and what is clicked first.
VIEWS = {
    "jobs": ("jobs", "tr[data-job='digits-sick']", ""),
    "job": (f"{_JOB}-sick", "[data-rule] figure canvas", ""),
    "tensors": (f"{_JOB}-healthy/tensors", "figure canvas", "[data-kind='heat map']"),
    "profiler": (f"{_JOB}-healthy/profiler", "canvas.flames", ""),
    "compare": ("compare?jobs=us-east-1/digits-sick,us-east-1/digits-healthy", "figure canvas", ""),
}
SIZES = ((1280, 860), (360, 760))
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
TERMINAL = (
    "<style>body{margin:0;background:#14171b;color:#e8eaed;font:14px/1.45 DejaVu Sans Mono,monospace}"
    "pre{padding:16px;margin:0}</style>"
)


def main() -> int:
    """Run the jobs and take the pictures."""
    build_console()
    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        RunningEmulator(Path(scratch) / "state", runtime="process") as emulator,
    ):
        stage_inputs(emulator.client("s3"))
        command = [sys.executable, "-P", "-m", "emulator"]
        subprocess.run([*command, "stop-handler", "deploy", "--endpoint-url", emulator.endpoint_url], check=True)
        jobs = {"digits-sick": SICK, "digits-healthy": HEALTHY}
        for name, hyperparameters in jobs.items():
            request = profile(build_request(name, hyperparameters))
            definition = {"Name": "train:loss", "Regex": "train_loss=([0-9.]+)"}
            request["AlgorithmSpecification"]["MetricDefinitions"] = [definition]
            emulator.client("sagemaker").create_training_job(**request)
        for name in jobs:
            wait_until_ended(emulator, name)
        with opened_chromium() as browser:
            take_console(browser, emulator.endpoint_url)
            state = ["--state-dir", str(emulator.state_dir)]
            take_terminal(browser, [[*command, "jobs", *state], [*command, "describe", "sick", *state]])
    return 0


def take_console(browser: Browser, endpoint_url: str) -> None:
    """Take each view in each size and scheme."""
    for width, height in SIZES:
        for scheme in SCHEMES:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            for name, (address, ready, click) in VIEWS.items():
                visit(page, f"{endpoint_url}/console#/{address}")
                page.locator(ready).first.wait_for(timeout=120_000)
                if click:
                    page.locator(click).click()
                    page.locator("canvas.grid").wait_for(timeout=120_000)
                page.screenshot(path=PICTURES / f"{name}-{width}-{scheme}.png")
            context.close()


def take_terminal(browser: Browser, commands: list[list[str]]) -> None:
    """Take what commands print, as a terminal of a hundred columns shows it."""
    shown = []
    for command in commands:
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
        words = [word for word in command[4:] if word != "--state-dir" and not word.startswith("/")]
        shown.append(f"$ smdebug-emulator {' '.join(words)}\n{done.stdout}")
    page = browser.new_page(viewport={"width": 900, "height": 300})
    page.set_content(f"{TERMINAL}<pre>{escape(chr(10).join(shown))}</pre>")
    page.screenshot(path=PICTURES / "terminal.png", full_page=True)


if __name__ == "__main__":
    sys.exit(main())
