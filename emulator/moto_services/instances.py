"""moto's list of all that it ever made: it serves the end of a test, and would hold every message for good."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moto.core.common_models import BaseModel

from emulator.moto_services.replacements import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def untracked() -> Iterator[None]:
    """Let moto forget what nobody holds any more; its own dashboard shows nothing meanwhile."""

    def make(cls: type[Any], *_: Any, **__: Any) -> Any:
        return object.__new__(cls)

    with replaced(BaseModel, "__new__", staticmethod(make)):
        yield
