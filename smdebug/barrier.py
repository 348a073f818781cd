"""Error barrier: failures of capture never reach the training."""

import functools
import logging
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

from smdebug.exceptions import InvalidCollectionConfiguration
from smdebug.job_warnings import TENSORS_DROPPED, warn_user
from smdebug.logger import get_logger

P = ParamSpec("P")
R = TypeVar("R")


class ReportsLoss(Protocol):
    """What a guarded method's object is able to do."""

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say, once, what was lost and why."""


S = TypeVar("S", bound=ReportsLoss)


def guarded(
    lost: str,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R | None]]:
    """Make a method that a framework calls end every error here: training goes on, and the log says what it lost.

    An unusable collection is the exception: the script's author made it, and hears of it at the first step.
    """

    def decorate(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R | None]:
        @functools.wraps(method)
        def call(self: S, *args: P.args, **kwargs: P.kwargs) -> R | None:
            try:
                return method(self, *args, **kwargs)
            except InvalidCollectionConfiguration:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the training must not see it
                self.report_loss(lost, error)
                return None

        return cast("Callable[Concatenate[S, P], R | None]", call)

    return decorate


class LossReport:
    """Says each kind of loss once: the next step brings the same one again."""

    def __init__(self) -> None:
        self._said: set[tuple[str, type[Exception]]] = set()

    def say(self, lost: str, error: Exception) -> None:
        """Log a loss unless it was said before."""
        key = (lost, type(error))
        if key in self._said:
            return
        self._said.add(key)
        warn_user(
            TENSORS_DROPPED,
            "Not saved: %s (%s: %s). Training goes on; the same failure is not reported again.",
            lost,
            type(error).__name__,
            error,
            level=logging.ERROR,
            exc_info=get_logger().isEnabledFor(logging.DEBUG),
        )
