"""Automatic Keras and tape hooks: their creation and calls.

No framework is imported here before the script trains.
"""

import threading
from typing import TYPE_CHECKING, Any

from smdebug.barrier import guarded
from smdebug.capture.singleton import get_current_hook
from smdebug.capture.zero_script_change import ZeroScriptChange

if TYPE_CHECKING:
    from smdebug.tensorflow.keras import KerasHook
    from smdebug.tensorflow.steps.tape import TapeCapture


class KerasWatch(ZeroScriptChange["KerasHook"]):
    """Creates one hook for this process, from the job's config, when the first training begins."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._is_making = False

    def get_hook(self, *, make: bool) -> "KerasHook | None":
        """Return the hook that captures the script's training, if any.

        Args:
            make: whether to create the hook if there is none.
        """
        if self.is_over or self._is_making:
            return None
        current = get_current_hook()
        if current is not self.hook or (current is None and make):
            self._update(current, make=make)
        return self.hook

    @guarded("everything")
    def _update(self, current: Any, *, make: bool) -> None:
        with self._lock:
            self._is_making = True
            try:
                if current is not None:
                    self._meet(current)
                elif self.hook is not None:
                    # The script has called del_hook.
                    self.leave_to_script()
                elif make:
                    self._make()
            finally:
                self._is_making = False

    def _make(self) -> None:
        from smdebug.tensorflow.keras import UnattendedKerasHook

        self.hook = UnattendedKerasHook.create_from_json_file()
        self.say_capturing("Keras", self.hook)

    def _meet(self, current: Any) -> None:
        """Use the hook that the script created if it has no steps yet; otherwise leave the capture to the script."""
        from smdebug.tensorflow.keras import KerasHook

        # A script may have created the job's hook only to save a scalar.
        if self.hook is None and isinstance(current, KerasHook) and not current.is_in_use:
            self.hook = current
        else:
            self.leave_to_script()

    # Called by the framework's classes.

    @guarded("the steps of a Keras loop")
    def add_callback(self, callbacks: Any, *, is_training: bool) -> None:
        """Add the hook to the callbacks of a Keras loop."""
        if any(found is get_current_hook() for found in callbacks):
            self.is_over = self.is_over or self.hook is None
            return
        hook = self.get_hook(make=is_training)
        if hook is not None:
            callbacks.append(hook)

    @property
    def tapes(self) -> "TapeCapture | None":
        """The hook's capture of tapes; None without a hook, or if Keras does not run on TensorFlow."""
        return getattr(self.hook, "tape_capture", None)

    @guarded("a step")
    def on_push(self, *, is_new: bool) -> None:
        """Handle the start of a tape's recording."""
        from smdebug.tensorflow.steps.caller import is_inside_keras_loop

        if not is_inside_keras_loop():
            self.get_hook(make=is_new)
        if self.tapes is not None:
            self.tapes.on_push(is_new=is_new)


_capture = KerasWatch()


def watch_keras(callback_list: Any) -> None:
    """Add the hook to every callback list that Keras creates for one of its loops."""
    original = callback_list.__init__
    if hasattr(original, "smdebug_original"):
        return

    def __init__(  # noqa: N807 - stands in for it
        self: Any, callbacks: Any = None, add_history: bool = False, *args: Any, **kwargs: Any
    ) -> None:
        model = kwargs.get("model") or (args[1] if len(args) > 1 else None)
        if model is None:
            original(self, callbacks, add_history, *args, **kwargs)
            return
        # Flattened as Keras does it. Keras 2 asks the callbacks which calls they need once, when it creates the list.
        given = _flatten(callbacks)
        count = len(given)
        # Only fit requests a history of its epochs.
        _capture.add_callback(given, is_training=add_history)
        original(self, given, add_history, *args, **kwargs)
        for added in given[count:]:
            # If a script creates the list without parameters, Keras does not call set_params, and the hook would not
            # learn how often the model was set.
            added.set_params(added.params)

    __init__.smdebug_original = original  # type: ignore[attr-defined]
    callback_list.__init__ = __init__


def _flatten(callbacks: Any) -> list[Any]:
    if isinstance(callbacks, (list, tuple)):
        return [found for part in callbacks for found in _flatten(part)]
    return [callbacks] if callbacks else []


def watch_tapes(tape_class: Any) -> None:
    """Report every tape of this process to the hook, except those of Keras' own steps."""
    push, pop, gradient = tape_class._push_tape, tape_class._pop_tape, tape_class.gradient  # noqa: SLF001 - see tape.wrap_tape
    if hasattr(push, "smdebug_original"):
        return

    def push_tape(self: Any) -> None:
        is_new = self._tape is None
        push(self)
        _capture.on_push(is_new=is_new)

    def pop_tape(self: Any) -> None:
        pop(self)
        # Asked for once: another thread may end the capture.
        tapes = _capture.tapes
        if tapes is not None:
            tapes.on_pop()

    def compute(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        tapes = _capture.tapes
        if tapes is None:
            return gradient(self, target, sources, *args, **kwargs)
        tapes.on_forward_end()
        result = gradient(self, target, sources, *args, **kwargs)
        tapes.on_backward_end()
        tapes.on_gradient(target, sources, result)
        return result

    push_tape.smdebug_original = push  # type: ignore[attr-defined]
    tape_class._push_tape, tape_class._pop_tape, tape_class.gradient = push_tape, pop_tape, compute  # noqa: SLF001 - as above
