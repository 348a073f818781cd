"""Setup and teardown of tests that use the emulator.

The hooks set the environment variables of each test's AWS clients, and of the finalizers of fixtures that were set up
with them: a finalizer may run in the teardown of a test that does not use the emulator, and it must not delete in the
user's account what the fixture created in the emulator. If a test fails, they add the emulator's log to its report.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from sdk_compat.process_environment import ProcessEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from sdk_compat.pytest_plugin.emulator import SessionEmulator

_FIXTURE = "sagemaker_emulator"


class AroundTests:
    """pytest hooks, registered when the emulator has started.

    Attributes:
        requests: how often the emulator's fixture was requested, itself or by way of one that calls
            ``getfixturevalue``.
    """

    def __init__(self, emulator: SessionEmulator) -> None:
        self.requests = 1
        self._emulator = emulator
        self._environment = ProcessEnvironment()
        self._log_seen = 0
        # The test that runs, and the last one that uses the emulator. The first one was set up before these hooks.
        self._item: pytest.Item | None = None
        self._user: pytest.Item | None = None
        self._watched: set[pytest.FixtureDef[Any]] = set()
        self._led_for: pytest.FixtureDef[Any] | None = None

    def lead_clients(self) -> None:
        """Set the variables that redirect AWS clients to the emulator, and remove those that would override them."""
        self._environment.lead(self._emulator.variables)

    def lead_rest_of(self, item: pytest.Item | None) -> None:
        """Lead the clients from the middle of a test on; what was set up before, such as a monkeypatch, is undone last.

        Without a test, such as while fixtures are torn down, the environment is restored at the end of the teardown.
        """
        self._user = item
        self.lead_clients()
        if item is not None:
            item.addfinalizer(self.restore_environment)

    def restore_environment(self) -> None:
        """Restore the environment from before ``lead_clients``."""
        self._environment.restore()

    def note_fixture(self, fixturedef: pytest.FixtureDef[Any], *, is_user: bool) -> None:
        """Record that a fixture was set up.

        Args:
            fixturedef: the fixture.
            is_user: whether the emulator was requested meanwhile. pytest does not list such a fixture's tests as tests
                that use the emulator, so later requests of its value are watched.
        """
        if self._environment.is_led:  # added last, it runs before the fixture's own finalizers
            fixturedef.addfinalizer(partial(self._lead_finalizers, fixturedef))
        if not is_user:
            self._unwatch(fixturedef)
        elif fixturedef not in self._watched:
            self._watched.add(fixturedef)
            # There is no hook for requests of a value that exists, such as by `getfixturevalue` in a test.
            vars(fixturedef)["execute"] = partial(self._execute, fixturedef, fixturedef.execute)

    def close(self) -> None:
        """Restore the environment, and watch no fixture any longer."""
        self.restore_environment()
        for fixturedef in tuple(self._watched):
            self._unwatch(fixturedef)

    def _unwatch(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        if fixturedef in self._watched:
            self._watched.remove(fixturedef)
            del vars(fixturedef)["execute"]

    def _execute(self, fixturedef: pytest.FixtureDef[Any], execute: Callable[..., object], request: object) -> object:
        """Return a fixture's value, and lead the test that requests it."""
        value = execute(request=request)
        if fixturedef in self._watched:  # else it was set up again, without the emulator
            self.requests += 1
            if not self._environment.is_led:
                if self._item is not None:
                    self._note_test(self._item)
                self.lead_rest_of(self._item)
        return value

    def _note_test(self, item: pytest.Item) -> None:
        self._log_seen = len(self._emulator.log_text())
        self._emulator.note_test(item.nodeid)

    def _lead_finalizers(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        if not self._environment.is_led:
            self._led_for = fixturedef
            self.lead_clients()

    @pytest.hookimpl
    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """Restore the environment after the finalizers of a fixture in a test that does not use the emulator."""
        if fixturedef is self._led_for:
            self._led_for = None
            self.restore_environment()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Set the environment of a test that uses the emulator."""
        self._item = item
        if _FIXTURE in getattr(item, "fixturenames", ()):
            self._note_test(item)
            self.lead_clients()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:  # noqa: ARG002
        """Restore the environment after the test."""
        self._item = None  # finalizers can no longer be added to it
        try:
            return (yield)
        finally:
            self.restore_environment()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the emulator's log during a failed test to the test's report."""
        report = yield
        if report.failed and (item is self._user or _FIXTURE in getattr(item, "fixturenames", ())):
            text = self._emulator.log_text()[self._log_seen :].strip()
            if text:
                report.sections.append(("SageMaker emulator log", text))
        return report
