"""ErrorHandlingAgent: smdebug's name for the error barrier of functions."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from smdebug.barrier import LossReport

__all__ = ["BASE_ERROR_MESSAGE", "ErrorHandlingAgent", "error_handling_agent"]

BASE_ERROR_MESSAGE = "Not saved"

P = ParamSpec("P")
R = TypeVar("R")


class ErrorHandlingAgent:
    """Catches errors of the decorated function and logs what was lost. Later calls are not affected."""

    def __init__(self) -> None:
        self._losses = LossReport()

    def catch_smdebug_errors(
        self, default_return_val: Any = None, *, return_type: Any = None
    ) -> Callable[[Callable[P, R]], Callable[P, R | Any]]:
        """Make a function return a default value instead of raising an error.

        Args:
            default_return_val: the value to return.
            return_type: if given, it is called and its result is returned.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R | Any]:
            @functools.wraps(function)
            def call(*args: P.args, **kwargs: P.kwargs) -> R | Any:
                try:
                    return function(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - that is what it is for
                    self._losses.say(f"what {function.__qualname__} does", error)
                    return return_type() if return_type is not None else default_return_val

            return call

        return decorate


error_handling_agent = ErrorHandlingAgent()
