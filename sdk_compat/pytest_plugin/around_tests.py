"""Setup and teardown of tests that use the emulator.

Each gets the environment of its clients; where it fails, its report gets the emulator's log.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from sdk_compat.environment import OVERRULING_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Generator

    from sdk_compat.pytest_plugin.emulator import SageMakerEmulator

_FIXTURE = "sagemaker_emulator"


class AroundTests:
    """Hooks of pytest, registered when the emulator has started."""

    def __init__(self, emulator: SageMakerEmulator) -> None:
        self._emulator = emulator
        self._before: dict[str, str | None] = {}
        self._log_seen = 0

    def lead_clients(self) -> None:
        """Set the variables that lead AWS clients to the emulator, and take away those that would win over them."""
        wanted: dict[str, str | None] = {**dict.fromkeys(OVERRULING_VARIABLES), **self._emulator.variables}
        for name, value in wanted.items():
            self._before.setdefault(name, os.environ.get(name))
            _set_variable(name, value)

    def restore_environment(self) -> None:
        """Give back the environment as it was before ``lead_clients``."""
        while self._before:
            _set_variable(*self._before.popitem())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Lead the clients of a test that uses the emulator there."""
        if _FIXTURE in getattr(item, "fixturenames", ()):
            self._log_seen = len(self._emulator.log_text())
            self._emulator.note_test(item.nodeid)
            self.lead_clients()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:  # noqa: ARG002
        """Give the next test the environment as it was."""
        try:
            return (yield)
        finally:
            self.restore_environment()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show what the emulator logged during a test that failed."""
        report = yield
        if report.failed and _FIXTURE in getattr(item, "fixturenames", ()):
            text = self._emulator.log_text()[self._log_seen :].strip()
            if text:
                report.sections.append(("SageMaker emulator log", text))
        return report


def _set_variable(name: str, value: str | Any) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
