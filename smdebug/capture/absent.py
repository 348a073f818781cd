"""What copies of a captured model have in place of its hook.

Frameworks keep their hooks in the model, and scripts copy and pickle models. A hook holds open files and locks, and a
run has one of it.
"""

from __future__ import annotations

from typing import Any


class AbsentHook:
    """Takes every call that a model's callbacks make, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _do_nothing


def _do_nothing(*_args: Any, **_kwargs: Any) -> None:
    pass
