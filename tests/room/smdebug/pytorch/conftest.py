"""A hook and a training in this process, beside those in processes of their own."""

from __future__ import annotations

from tests.unit.smdebug.pytorch.conftest import make_hook, training

__all__ = ["make_hook", "training"]
