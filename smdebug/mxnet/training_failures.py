"""Asynchronous MXNet errors, passed from capture to the training.

MXNet computes in the background, and raises an error once, in the code that waits for the result. If capture waits, the
error nevertheless belongs to the training, which would otherwise continue with numbers that were never computed. So the
error passes every barrier of capture, and is raised from the method that MXNet called.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class TrainingsOwnError(BaseException):
    """Carries an error of the training through code that catches every Exception.

    Attributes:
        error: exception raised by MXNet.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def gives_back_failures(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Decorate a method that the training calls, to raise the training's errors as MXNet raised them."""

    @functools.wraps(method)
    def call(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except TrainingsOwnError as failure:
            raise failure.error from None

    return cast("Callable[Concatenate[S, P], R]", call)
