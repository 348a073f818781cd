"""The current TensorFlow hook of a process."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from smdebug.capture.singleton import del_hook, find_hook, get_current_hook, set_hook
from smdebug.environment import is_switched_on
from smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from smdebug.tensorflow.tensorflow_hook import TensorflowHook

__all__ = ["del_hook", "get_hook", "set_hook"]

_HOOKS = {
    "keras": ("smdebug.tensorflow.keras", "KerasHook"),
    "session": ("smdebug.tensorflow.session", "SessionHook"),
    "estimator": ("smdebug.tensorflow.session", "EstimatorHook"),
}


def get_hook(
    hook_type: str | None = None,
    json_config_path: str | os.PathLike[str] | None = None,
    create_if_not_exists: bool = False,
) -> "TensorflowHook | None":
    """Return the current hook of this process, or create one from the job's config.

    `smdebug.capture.singleton.find_hook` describes the details.

    Args:
        hook_type: `keras`, `session` or `estimator`. With None, the current hook may be of any type, and a new hook is
            a Keras hook. Otherwise, as upstream does, a current TensorFlow hook of another type is forgotten; a
            SessionHook serves as the hook of an estimator.
        json_config_path: config file of a new hook; None for the job's config.
        create_if_not_exists: whether to create a hook if there is none.

    Raises:
        SMDebugValueError: the hook type does not exist.
        ValueError: the config cannot be read.
    """
    if hook_type is not None and hook_type not in _HOOKS:
        raise SMDebugValueError(f"{hook_type!r} is not a type of hook: use one of {', '.join(_HOOKS)}, or None.")
    # If no hook exists and none is to be created, TensorFlow is not imported.
    if not is_switched_on() or (get_current_hook() is None and not create_if_not_exists):
        return None
    from smdebug.tensorflow.tensorflow_hook import TensorflowHook

    # For upstream, EstimatorHook is another name of SessionHook.
    accepted = TensorflowHook if hook_type is None else _get_class("session" if hook_type == "estimator" else hook_type)
    current = get_current_hook()
    if isinstance(current, accepted):
        return current
    if isinstance(current, TensorflowHook):
        del_hook()
    if not create_if_not_exists:
        return None
    return find_hook(_get_class(hook_type or "keras"), json_config_path, create_if_not_exists=True)


def _get_class(hook_type: str) -> "type[TensorflowHook]":
    module, name = _HOOKS[hook_type]
    found: type[TensorflowHook] = getattr(import_module(module), name)
    return found
