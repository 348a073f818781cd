"""Who is calling: a step that Keras makes is Keras' own, whatever is used in it."""

import sys
import threading
from types import FrameType

_KERAS_LOOPS = frozenset({"fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"})
# What starts a thread for each replica of a strategy, and waits for them.
_STARTS_REPLICAS = ("tensorflow.python.distribute.mirrored_run", "_call_for_each_replica", "threads")


def is_inside_keras_loop() -> bool:
    """Tell whether a loop of Keras is running in this thread, or building its functions; a replica's thread is its."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to see who calls
    if _is_in_loop(frame):
        return True
    starter = _find_starter()
    return starter is not None and _is_in_loop(starter)


def _is_in_loop(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _KERAS_LOOPS and frame.f_globals.get("__name__", "").startswith("keras."):
            return True
        frame = frame.f_back
    return False


def _find_starter() -> FrameType | None:
    """Return where the thread of a replica was started; None in any other thread."""
    thread = threading.current_thread()
    module, function, local = _STARTS_REPLICAS
    if type(thread).__module__ != module:
        return None
    for frame in sys._current_frames().values():  # noqa: SLF001 - as above
        found: FrameType | None = frame
        while found is not None:
            is_starter = found.f_code.co_name == function and found.f_globals.get("__name__") == module
            if is_starter and any(started is thread for started in found.f_locals.get(local, ())):
                return found
            found = found.f_back
    return None
