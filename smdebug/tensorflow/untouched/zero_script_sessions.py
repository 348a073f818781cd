"""Automatic hooks of unmodified scripts that train in a MonitoredSession.

This module does not import the framework: the caller passes the classes to watch.
"""

import sys
from typing import TYPE_CHECKING, Any

from smdebug.barrier import guarded
from smdebug.capture.singleton import get_current_hook
from smdebug.capture.zero_script_change import ZeroScriptChange
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.tensorflow.session import SessionHook


class SessionWatch(ZeroScriptChange["SessionHook"]):
    """Creates a hook from the job's config for the first session whose graph has gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.hook: SessionHook | None = None
        self._shown: list[tuple[Any, list[Any]]] = []

    @guarded("gradients")
    def on_gradients(self, optimizer: Any, pairs: Any) -> None:
        """Record the gradients that an optimizer adds to a graph; a graph without gradients is not trained."""
        # TensorFlow is loaded: its optimizer calls this. An eager training has no graph, and its gradients are values.
        if not self.is_over and not sys.modules["tensorflow"].executing_eagerly():
            self._shown.append((optimizer, [gradient for gradient, _ in pairs]))

    @guarded("everything")
    def add_hook(self, hooks: list[Any]) -> None:
        """Add the hook to the hooks of a new session."""
        if self.is_over:
            return
        # TensorFlow is already loaded whenever a session is created.
        from smdebug.tensorflow.steps.caller import find_estimator_mode

        mode = find_estimator_mode()
        trains = self._shown or mode is ModeKeys.TRAIN
        if not trains and (self.hook is None or mode is None):
            return
        if self.hook is None:
            if get_current_hook() is not None:
                # The script has its own hook.
                self.stop()
                return
            from smdebug.tensorflow.session import UnattendedSessionHook

            self.hook = UnattendedSessionHook.create_from_json_file()
            self.say_capturing("sessions", self.hook)
        for optimizer, gradients in self._shown:
            self.hook.show_optimizer(optimizer, gradients)
        self._shown.clear()
        hooks.append(self.hook)


_watch = SessionWatch()


def watch_sessions(session_class: Any, optimizer_class: Any) -> None:
    """Report the optimizers and sessions of this process to the hook.

    Args:
        session_class: base class of all monitored sessions.
        optimizer_class: base class of all graph optimizers.
    """
    make_session, compute = session_class.__init__, optimizer_class.compute_gradients
    if hasattr(make_session, "smdebug_original"):
        return

    def __init__(self: Any, session_creator: Any, hooks: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - stands in for it
        hooks = list(hooks or ())
        _watch.add_hook(hooks)
        make_session(self, session_creator, hooks, *args, **kwargs)

    def compute_gradients(self: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = compute(self, *args, **kwargs)
        _watch.on_gradients(self, pairs)
        return pairs

    __init__.smdebug_original = make_session  # type: ignore[attr-defined]
    session_class.__init__, optimizer_class.compute_gradients = __init__, compute_gradients
