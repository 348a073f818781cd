"""Functions of Keras' loops called once a batch, and their replacement once."""

from collections.abc import Callable
from typing import Any

from smdebug.mode_keys import ModeKeys

# For each mode: the model attribute that Keras calls, and the method that this function runs.
FUNCTIONS = {
    ModeKeys.TRAIN: ("train_function", "train_step"),
    ModeKeys.EVAL: ("test_function", "test_step"),
    ModeKeys.PREDICT: ("predict_function", "predict_step"),
}


def get_function(model: Any, mode: ModeKeys) -> Any:
    """Return Keras' own step function for a mode."""
    found = getattr(model, FUNCTIONS[mode][0])
    # If another callback stopped the training before the step, the attribute still holds the replacement.
    return getattr(found, "smdebug_original", found)


def replace_once(model: Any, mode: ModeKeys, run: Callable[..., Any]) -> None:
    """Make Keras call `run` for the next batch; Keras' own function is restored before `run` is called."""
    attribute, original = FUNCTIONS[mode][0], get_function(model, mode)

    def run_once(*given: Any) -> Any:
        _set(model, attribute, original)
        return run(*given)

    run_once.smdebug_original = original  # type: ignore[attr-defined]
    _set(model, attribute, run_once)


def _set(model: Any, attribute: str, function: Any) -> None:
    # This bypasses Keras' `__setattr__`, which examines each value for objects to track.
    if attribute in vars(model):
        vars(model)[attribute] = function
    else:
        setattr(model, attribute, function)
