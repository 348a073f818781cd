from __future__ import annotations

from tests.unit.emulator.small_emulator import emulator, fresh_moto, moto_application

__all__ = ["emulator", "fresh_moto", "moto_application"]
