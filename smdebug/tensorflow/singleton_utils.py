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
    """Return the hook of this process, or one made of the job's config; see `smdebug.capture.singleton.find_hook`.

    Args:
        hook_type: keras, session or estimator; None for whichever there is, and for keras where one is made.
        json_config_path: config of the hook to make, None for the job's own.
        create_if_not_exists: make one if there is none.

    Raises:
        SMDebugValueError: a type that does not exist.
        ValueError: the config cannot be read.
    """
    if hook_type is not None and hook_type not in _HOOKS:
        raise SMDebugValueError(f"{hook_type!r} is no type of hook: use one of {', '.join(_HOOKS)}, or None.")
    # Without a hook there is nothing to find, and no reason to import TensorFlow.
    if not is_switched_on() or (get_current_hook() is None and not create_if_not_exists):
        return None
    from smdebug.tensorflow.tensorflow_hook import TensorflowHook

    found = find_hook(TensorflowHook, json_config_path, create_if_not_exists=False)
    if found is None and create_if_not_exists:
        module, name = _HOOKS[hook_type or "keras"]
        found = find_hook(getattr(import_module(module), name), json_config_path, create_if_not_exists=True)
    return found
