"""Functions of Keras' loops called once a batch, and their replacement once."""

from collections.abc import Callable
from typing import Any

from smdebug.mode_keys import ModeKeys

# By mode: the attribute that Keras calls, and the method that it is made of.
FUNCTIONS = {
    ModeKeys.TRAIN: ("train_function", "train_step"),
    ModeKeys.EVAL: ("test_function", "test_step"),
    ModeKeys.PREDICT: ("predict_function", "predict_step"),
}


def get_function(model: Any, mode: ModeKeys) -> Any:
    """Return Keras' own function of a mode."""
    found = getattr(model, FUNCTIONS[mode][0])
    # Where another callback has ended a training before its step, ours is still there.
    return getattr(found, "smdebug_original", found)


def replace_once(model: Any, mode: ModeKeys, run: Callable[..., Any]) -> None:
    """Have the next batch run by `run`; Keras' own function is back in its place before that is called."""
    attribute, original = FUNCTIONS[mode][0], get_function(model, mode)

    def run_once(*given: Any) -> Any:
        _set(model, attribute, original)
        return run(*given)

    run_once.smdebug_original = original  # type: ignore[attr-defined]
    _set(model, attribute, run_once)


def _set(model: Any, attribute: str, function: Any) -> None:
    # Past Keras' own setting of attributes, which looks at each value for what it has to keep track of.
    if attribute in vars(model):
        vars(model)[attribute] = function
    else:
        setattr(model, attribute, function)
