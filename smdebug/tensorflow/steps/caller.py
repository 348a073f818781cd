"""Call stack inspection: detection of Keras' own loops and of estimators."""

import sys
import threading
from types import FrameType
from typing import Any

from smdebug.mode_keys import ModeKeys

_KERAS_LOOPS = frozenset({"fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"})
_KERAS = ("keras.", "tf_keras.")
# The methods of an estimator that run sessions, by what these do.
_ESTIMATOR_METHODS = {
    "_train_model": ModeKeys.TRAIN,
    "_evaluate_run": ModeKeys.EVAL,
    "predict": ModeKeys.PREDICT,
}
# What starts a thread for each replica of a strategy, and waits for them.
_STARTS_REPLICAS = ("tensorflow.python.distribute.mirrored_run", "_call_for_each_replica", "threads")


def is_inside_keras_loop() -> bool:
    """Return whether a Keras loop runs in this thread or builds its functions, or started this replica's thread."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to see who calls
    if _is_in_loop(frame):
        return True
    starter = _find_starter()
    return starter is not None and _is_in_loop(starter)


def find_estimator_mode() -> ModeKeys | None:
    """Return what the estimator that calls is doing; None where none does. One that trains may evaluate meanwhile."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as above
    while frame is not None:
        mode = _ESTIMATOR_METHODS.get(frame.f_code.co_name)
        if mode is not None and frame.f_globals.get("__name__", "").startswith("tensorflow_estimator."):
            return mode
        frame = frame.f_back
    return None


def put_first_in_session(hook: object) -> None:
    """Put a hook before all others of the session that is calling its `begin`.

    What a run has shown is then saved before another hook, one that saves checkpoints, begins an evaluation.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as above
    while frame is not None and frame.f_globals.get("__name__") != "tensorflow.python.training.monitored_session":
        frame = frame.f_back
    session: Any = None if frame is None else frame.f_locals.get("self")
    if hasattr(session, "_hooks"):
        # Another list: TensorFlow is going through the one that there is.
        session._hooks = sorted(session._hooks, key=lambda found: found is not hook)  # noqa: SLF001 - no public way


def _is_in_loop(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _KERAS_LOOPS and frame.f_globals.get("__name__", "").startswith(
            ("keras.", "tf_keras.")
        ):
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
