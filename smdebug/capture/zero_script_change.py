"""Capture of unmodified scripts: the parts shared by all frameworks."""

import os
from typing import Generic, TypeVar

from smdebug.barrier import LossReport
from smdebug.capture.hook import BaseHook
from smdebug.capture.singleton import get_current_hook
from smdebug.config.collection import Collection
from smdebug.logger import get_logger

HookT = TypeVar("HookT", bound=BaseHook)


class UnattendedHook(BaseHook):
    """A hook that no script's author made: mistakes in the job's configuration are said, and end no training."""

    def refuse_collection(self, collection: Collection) -> None:
        """Say that a collection selects nothing."""
        get_logger().error(
            "Not saved: collection %s of the job's configuration. It has no include_regex, so it selects nothing.",
            collection.name,
        )


class ZeroScriptChange(Generic[HookT]):
    """Gives the training of a script a hook, made of the job's configuration when it begins.

    Attributes:
        hook: the one that is called for the script; None before its training begins, and once that is over.
        is_over: whether nothing is watched any more.
    """

    def __init__(self) -> None:
        self.hook: HookT | None = None
        self.is_over = False
        self._report = LossReport()

    def stop(self) -> None:
        """Watch nothing any more."""
        self.is_over = True

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost, and give up: what failed while the hook was made fails again."""
        self._report.say(lost, error)
        self.stop()

    def say_capturing(self, what: str, hook: BaseHook) -> None:
        """Say what of this process is captured, and where to."""
        get_logger().info("Capturing %s, process %d, to %s", what, os.getpid(), hook.out_dir)

    def get_active_hook(self) -> HookT | None:
        """Return the hook; None where there is none, and once a hook of the script's own has taken its place."""
        hook = self.hook
        if hook is not None and get_current_hook() is not hook:
            self.leave_to_script()
            return None
        return hook

    def leave_to_script(self) -> None:
        """Stop, and end the run of the hook unless the script has made it."""
        hook, self.hook = self.hook, None
        self.stop()
        if isinstance(hook, UnattendedHook):
            hook.close()
