"""Call stack inspection: detection of Keras' own loops and of estimators."""

import sys
import threading
from types import FrameType
from typing import Any

from smdebug.mode_keys import ModeKeys

_KERAS_LOOPS = frozenset({"fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"})
_KERAS = ("keras.", "tf_keras.")
# The estimator methods that run sessions, with the mode of each.
_ESTIMATOR_METHODS = {
    "_train_model": ModeKeys.TRAIN,
    "_evaluate_run": ModeKeys.EVAL,
    "predict": ModeKeys.PREDICT,
}
# Module, function and local variable of the code that starts a thread for each replica of a strategy.
_STARTS_REPLICAS = ("tensorflow.python.distribute.mirrored_run", "_call_for_each_replica", "threads")


def is_inside_keras_loop() -> bool:
    """Return whether a Keras loop runs or builds its functions in this thread, or started this replica's thread."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to see who calls
    if _is_in_loop(frame):
        return True
    starter = _find_starter()
    return starter is not None and _is_in_loop(starter)


def find_estimator_mode() -> ModeKeys | None:
    """Return the mode of the calling estimator, which may evaluate during a training; None if no estimator calls."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as above
    while frame is not None:
        mode = _ESTIMATOR_METHODS.get(frame.f_code.co_name)
        if mode is not None and frame.f_globals.get("__name__", "").startswith("tensorflow_estimator."):
            return mode
        frame = frame.f_back
    return None


def put_first_in_session(hook: object) -> None:
    """Move a hook before all other hooks of the session that is calling its `begin`.

    The tensors of a run are then saved before another hook begins an evaluation, such as one that saves checkpoints.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as above
    while frame is not None and frame.f_globals.get("__name__") != "tensorflow.python.training.monitored_session":
        frame = frame.f_back
    session: Any = None if frame is None else frame.f_locals.get("self")
    if hasattr(session, "_hooks"):
        # A new list, because TensorFlow is iterating over the current one.
        session._hooks = sorted(session._hooks, key=lambda found: found is not hook)  # noqa: SLF001 - no public way


def _is_in_loop(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _KERAS_LOOPS and frame.f_globals.get("__name__", "").startswith(_KERAS):
            return True
        frame = frame.f_back
    return False


def _find_starter() -> FrameType | None:
    """Return the frame that started the thread of a replica; None in any other thread."""
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
