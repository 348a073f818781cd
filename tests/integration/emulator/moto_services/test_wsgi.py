"""Tests of how a request finds its service of moto."""

from typing import Any

import pytest
from moto import backends

from emulator.moto_services.wsgi import MotoApplication


def test_the_service_of_a_host_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than the rest of a small request."""
    application = MotoApplication()
    application.preload()
    listed: list[Any] = []

    def list_modules() -> list[str]:
        listed.append(None)
        return []

    monkeypatch.setattr(backends, "list_of_moto_modules", list_modules)
    application.preload()
    assert listed == []
