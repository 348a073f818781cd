"""The hook of a script that trains a graph in a MonitoredSession and knows nothing of smdebug.

No framework is imported here: the classes to watch are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smdebug.barrier import LossReport, guarded
from smdebug.capture.singleton import get_current_hook
from smdebug.logger import get_logger

if TYPE_CHECKING:
    from smdebug.tensorflow.session import SessionHook


class SessionWatch:
    """Gives the first session whose graph has gradients a hook, made of the job's config."""

    def __init__(self) -> None:
        self._report = LossReport()
        self._hook: SessionHook | None = None
        self._is_over = False
        self._shown: list[tuple[Any, list[Any]]] = []

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost, and give up: what failed while the hook was made fails again."""
        self._report.say(lost, error)
        self._is_over = True

    @guarded("gradients")
    def on_gradients(self, optimizer: Any, pairs: Any) -> None:
        """Note what an optimizer of a graph has computed; a graph without is not trained."""
        if not self._is_over:
            self._shown.append((optimizer, [gradient for gradient, _ in pairs]))

    @guarded("everything")
    def add_hook(self, hooks: list[Any]) -> None:
        """Put the hook among those of a session that is made."""
        if self._is_over or not self._shown:
            return
        if self._hook is None:
            if get_current_hook() is not None:
                # The script has a hook of its own.
                self._is_over = True
                return
            from smdebug.tensorflow.unattended_hook import UnattendedSessionHook

            self._hook = UnattendedSessionHook.create_from_json_file()
            get_logger().info("Capturing sessions to %s", self._hook.out_dir)
        for optimizer, gradients in self._shown:
            self._hook.show_optimizer(optimizer, gradients)
        self._shown.clear()
        hooks.append(self._hook)


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
