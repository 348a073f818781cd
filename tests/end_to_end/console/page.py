"""Console in a browser, and what tests ask of it."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import Page

from tests import commands
from tests.chromium import visit
from tests.running_emulator import RunningEmulator

REGION = "us-east-1"
HOSTILE_KEY = "hostile/<img src=x onerror=document.title='taken'>.html"
RIGHT_TO_LEFT = "\u202etxt.<b>bold"
# A machine at a standstill needs them; each is waited for no longer than it takes.
PATIENCE_MS = 180_000


@dataclass
class Console:
    """A page of the console.

    Attributes:
        complaints: what the browser has complained of.
    """

    page: Page
    emulator: RunningEmulator
    complaints: list[str] = field(default_factory=list)

    def go(self, address: str) -> Page:
        visit(self.page, f"{self.emulator.endpoint_url}/console#/{address}")
        return self.page


def ask_emulator(emulator: RunningEmulator, method: str, path: str, body: Any = None) -> dict[str, Any]:
    sent = None if body is None else json.dumps(body).encode()
    request = Request(f"{emulator.endpoint_url}/_emulator/{path}", sent, method=method)
    with urlopen(request, timeout=PATIENCE_MS / 1000) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def run_command(console: Console, *arguments: str) -> str:
    return commands.run_command(*arguments, "--state-dir", str(console.emulator.state_dir)).stdout


def find_violations(page: Page, axe: str) -> list[tuple[str, list[Any]]]:
    """Return the rules of accessibility that a page breaks, and where. Sandboxed frames let nobody look into them."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run({ iframes: false, resultTypes: ['violations'] })).violations")
    return [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found]
