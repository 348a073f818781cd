"""Setup and teardown of tests that use the emulator.

The hooks set the environment variables of each test's AWS clients. If a test fails, they add the emulator's log to its
report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sdk_compat.process_environment import ProcessEnvironment

if TYPE_CHECKING:
    from collections.abc import Generator

    from sdk_compat.pytest_plugin.emulator import SessionEmulator

_FIXTURE = "sagemaker_emulator"


class AroundTests:
    """pytest hooks, registered when the emulator has started."""

    def __init__(self, emulator: SessionEmulator) -> None:
        self._emulator = emulator
        self._environment = ProcessEnvironment()
        self._log_seen = 0

    def lead_clients(self) -> None:
        """Set the variables that redirect AWS clients to the emulator, and remove those that would override them."""
        self._environment.lead(self._emulator.variables)

    def restore_environment(self) -> None:
        """Restore the environment from before ``lead_clients``."""
        self._environment.restore()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Set the environment of a test that uses the emulator."""
        if _FIXTURE in getattr(item, "fixturenames", ()):
            self._log_seen = len(self._emulator.log_text())
            self._emulator.note_test(item.nodeid)
            self.lead_clients()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:  # noqa: ARG002
        """Restore the environment after the test."""
        try:
            return (yield)
        finally:
            self.restore_environment()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the emulator's log during a failed test to the test's report."""
        report = yield
        if report.failed and _FIXTURE in getattr(item, "fixturenames", ()):
            text = self._emulator.log_text()[self._log_seen :].strip()
            if text:
                report.sections.append(("SageMaker emulator log", text))
        return report
