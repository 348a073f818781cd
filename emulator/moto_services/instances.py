"""Memory leak fix: moto's list of every object it ever made is switched off.

The list is for moto's own dashboard only, and would keep every message in memory.
"""

from contextlib import AbstractContextManager
from typing import Any

from moto.core.common_models import BaseModel

from emulator.moto_services.replacements import replaced


def untracked() -> AbstractContextManager[None]:
    """Let Python free objects of moto that are not used any more. moto's own dashboard is empty inside the block."""

    def make(cls: type[Any], *_: Any, **__: Any) -> Any:
        return object.__new__(cls)

    return replaced(BaseModel, __new__=staticmethod(make))
