"""Asynchronous MXNet errors, passed from capture to the training.

MXNet computes in the background and raises what went wrong there where somebody waits for the result, once. If capture
is the one that waits, the error is the training's all the same: kept from it, the training would go on with numbers
that were never computed. So it crosses every barrier of capture and comes out at the call that MXNet made.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class TrainingsOwnError(BaseException):
    """Carries an error of the training through code that ends every Exception.

    Attributes:
        error: what MXNet raised.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def gives_back_failures(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Make a method that the training calls raise the training's own errors as MXNet raised them."""

    @functools.wraps(method)
    def call(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except TrainingsOwnError as failure:
            raise failure.error from None

    return cast("Callable[Concatenate[S, P], R]", call)
