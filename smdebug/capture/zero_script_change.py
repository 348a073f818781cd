"""Capture of unmodified scripts: the parts shared by all frameworks."""

import logging
import os
from typing import Generic, TypeVar

from smdebug.barrier import LossReport
from smdebug.capture.hook import BaseHook
from smdebug.capture.singleton import get_current_hook
from smdebug.config.collection import Collection
from smdebug.job_warnings import HOOK_SAVED_NOTHING, warn_user
from smdebug.logger import get_logger

HookT = TypeVar("HookT", bound=BaseHook)


class UnattendedHook(BaseHook):
    """A hook created without script changes: mistakes in the job's configuration are reported and stop no training."""

    def refuse_collection(self, collection: Collection) -> None:
        """Warn that a collection selects nothing."""
        warn_user(
            HOOK_SAVED_NOTHING,
            "Not saved: collection %s of the job's configuration. It has no include_regex, so it selects nothing.",
            collection.name,
            level=logging.ERROR,
        )


class ZeroScriptChange(Generic[HookT]):
    """Gives the training of an unmodified script a hook, created from the job's configuration when training begins.

    Attributes:
        hook: hook that captures the script; None before its training begins and after it ends.
        is_over: whether watching has stopped.
    """

    def __init__(self) -> None:
        self.hook: HookT | None = None
        self.is_over = False
        self._report = LossReport()

    def stop(self) -> None:
        """Stop watching."""
        self.is_over = True

    def report_loss(self, lost: str, error: Exception) -> None:
        """Report a loss once, and stop: an error during creation of the hook would occur again."""
        self._report.say(lost, error)
        self.stop()

    def say_capturing(self, what: str, hook: BaseHook) -> None:
        """Log what is captured of this process, and its destination."""
        get_logger().info("Capturing %s, process %d, to %s", what, os.getpid(), hook.out_dir)

    def get_active_hook(self) -> HookT | None:
        """Return the hook; None if there is none, or if the script's own hook has replaced it."""
        hook = self.hook
        if hook is not None and get_current_hook() is not hook:
            self.leave_to_script()
            return None
        return hook

    def leave_to_script(self) -> None:
        """Stop watching, and end the hook's run unless the script created the hook."""
        hook, self.hook = self.hook, None
        self.stop()
        if isinstance(hook, UnattendedHook):
            hook.close()
