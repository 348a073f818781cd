"""Chromium of the tests: its headless shell, installed on demand.

It is Debian's package, installed only where the machine allows that. The shell starts and draws pages with less work
than the browser, which has a window and its own pages even if nobody sees them. Where only the browser is installed, it
is used.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, Error, Page, Request, Response, sync_playwright

_SHELL = "chromium-headless-shell"
_APT_SECONDS = 280
_CUT = "ERR_NETWORK_CHANGED"
_VISITS = 10


@cache
def find_chromium() -> str:
    """Return the path of chromium; where it cannot be had the test is skipped, and fails where CI is set."""
    return _look() or _install()


@contextmanager
def opened_chromium() -> Iterator[Browser]:
    """Start chromium without a window; it is closed afterwards."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


def visit(page: Page, address: str) -> Response | None:
    """Open an address; do it again where the start or end of another test's network has cut the page's requests."""
    cut: list[str] = []

    def note(request: Request) -> None:
        if _CUT in (request.failure or ""):
            cut.append(request.url)

    page.on("requestfailed", note)
    try:
        for _ in range(_VISITS):
            is_open = bool(cut)
            cut.clear()
            try:
                # For the browser, the address of an open page is a place in it.
                answer = page.reload() if is_open else page.goto(address)
            except Error as error:
                if _CUT not in error.message:
                    raise
                cut.clear()
                continue
            if not cut:
                return answer
        raise AssertionError(f"{address} was cut {_VISITS} times: {cut}")
    finally:
        page.remove_listener("requestfailed", note)


def _look() -> str | None:
    return shutil.which(_SHELL) or shutil.which("chromium")


def _install() -> str:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        _miss(f"chromium is not installed, and only root may install it here (apt-get install {_SHELL})")
    # Workers of one run wait for each other.
    with (Path(tempfile.gettempdir()) / "smdebug-emulator-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (found := _look()) is not None:
            return found
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        said = ""
        for command in (["update"], ["install", "-y", "--no-install-recommends", _SHELL, "fonts-dejavu-core"]):
            done = subprocess.run(
                ["apt-get", "-q", *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_APT_SECONDS,
                check=False,
            )
            said = done.stdout.decode(errors="replace")[-600:]
    return _look() or _miss(f"apt-get could not install {_SHELL}: {said}")


def _miss(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"The console's tests must run in CI: {reason}")
    pytest.skip(reason)
