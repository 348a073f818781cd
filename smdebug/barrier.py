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
    """An object with guarded methods."""

    def report_loss(self, lost: str, error: Exception) -> None:
        """Report once what was lost and why."""


S = TypeVar("S", bound=ReportsLoss)


def guarded(
    lost: str,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R | None]]:
    """Decorate a method that a framework calls: errors are reported and not raised, so the training continues.

    `InvalidCollectionConfiguration` is raised nevertheless: the script's author made the unusable collection and
    learns of it at the first step.

    Args:
        lost: what an error in the method loses, for the report.
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
    """Logs each kind of loss once, because the same loss usually recurs at the next step."""

    def __init__(self) -> None:
        self._said: set[tuple[str, type[Exception]]] = set()

    def say(self, lost: str, error: Exception) -> None:
        """Log a loss unless it was logged before."""
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
