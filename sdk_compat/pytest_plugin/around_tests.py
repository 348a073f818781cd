"""Setup and teardown of tests that use the emulator.

The hooks set the environment variables of each test's AWS clients. If a test fails, they add the emulator's log to its
report.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from sdk_compat.environment import OVERRULING_VARIABLES
from sdk_compat.startup.import_patches import patch_modules
from sdk_compat.startup.short_polls import WAITING_MODULES, shorten_polls

if TYPE_CHECKING:
    from collections.abc import Generator

    from sdk_compat.pytest_plugin.emulator import SageMakerEmulator

_FIXTURE = "sagemaker_emulator"


class AroundTests:
    """pytest hooks, registered when the emulator has started."""

    def __init__(self, emulator: SageMakerEmulator) -> None:
        self._emulator = emulator
        self._before: dict[str, str | None] = {}
        self._log_seen = 0
        # The modules are patched once. The patches have no effect without the variable, which is set only during tests.
        patch_modules(dict.fromkeys(WAITING_MODULES, shorten_polls))

    def lead_clients(self) -> None:
        """Set the variables that redirect AWS clients to the emulator, and remove those that would override them."""
        wanted: dict[str, str | None] = {**dict.fromkeys(OVERRULING_VARIABLES), **self._emulator.variables}
        for name, value in wanted.items():
            self._before.setdefault(name, os.environ.get(name))
            _set_variable(name, value)

    def restore_environment(self) -> None:
        """Restore the environment from before ``lead_clients``."""
        while self._before:
            _set_variable(*self._before.popitem())

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


def _set_variable(name: str, value: str | Any) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
