"""Who is calling: a step that Keras makes is Keras' own, whatever is used in it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_KERAS_LOOPS = frozenset({"fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"})


def is_inside_keras_loop() -> bool:
    """Tell whether a loop of Keras is running in this thread, or building its functions."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to see who calls
    while frame is not None:
        if frame.f_code.co_name in _KERAS_LOOPS and frame.f_globals.get("__name__", "").startswith("keras."):
            return True
        frame = frame.f_back
    return False
