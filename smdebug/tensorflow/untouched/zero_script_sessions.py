"""The hook of a script that trains a graph in a MonitoredSession and knows nothing of smdebug.

No framework is imported here: the classes to watch are given.
"""

import sys
from typing import TYPE_CHECKING, Any

from smdebug.barrier import guarded
from smdebug.capture.singleton import get_current_hook
from smdebug.capture.zero_script_change import ZeroScriptChange
from smdebug.logger import get_logger

if TYPE_CHECKING:
    from smdebug.tensorflow.session import SessionHook


class SessionWatch(ZeroScriptChange["SessionHook"]):
    """Gives the first session whose graph has gradients a hook, made of the job's config."""

    def __init__(self) -> None:
        super().__init__()
        self.hook: SessionHook | None = None
        self._has_told = False
        self._shown: list[tuple[Any, list[Any]]] = []

    @guarded("gradients")
    def on_gradients(self, optimizer: Any, pairs: Any) -> None:
        """Note what an optimizer of a graph has computed; a graph without is not trained."""
        if not self.is_over:
            self._shown.append((optimizer, [gradient for gradient, _ in pairs]))

    @guarded("everything")
    def add_hook(self, hooks: list[Any]) -> None:
        """Put the hook among those of a session that is made."""
        if self.is_over:
            return
        if not self._shown:
            self._tell_of_estimators()
            return
        if self.hook is None:
            if get_current_hook() is not None:
                # The script has a hook of its own.
                self.stop()
                return
            from smdebug.tensorflow.untouched.unattended_hook import UnattendedSessionHook

            self.hook = UnattendedSessionHook.create_from_json_file()
            self.say_capturing("sessions", self.hook)
        for optimizer, gradients in self._shown:
            self.hook.show_optimizer(optimizer, gradients)
        self._shown.clear()
        hooks.append(self.hook)

    def _tell_of_estimators(self) -> None:
        """Say once that an estimator's session is not captured, if this is one: by default, Keras' optimizers train."""
        is_captured = self.hook is not None or get_current_hook() is not None
        if not is_captured and not self._has_told and "tensorflow_estimator" in sys.modules:
            self._has_told = True
            get_logger().warning(
                "TensorFlow %s: what an estimator trains is not saved, unless its optimizer is one of "
                "tf.compat.v1.train.",
                sys.modules["tensorflow"].__version__,
            )


_watch = SessionWatch()


def watch_sessions(session_class: Any, optimizer_class: Any) -> None:
    """Show the optimizers and sessions of this process to the hook.

    Args:
        session_class: the one that all monitored sessions are derived from.
        optimizer_class: the one that all optimizers of graphs are derived from.
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
