"""Fixtures of a hook and a training in this process."""

from tests.unit.smdebug.pytorch.conftest import make_hook, training

__all__ = ["make_hook", "training"]
