"""Decorator that gives functions an emulator, like moto's ``mock_aws``."""

import atexit
import unittest
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, TypeVar, overload

from sdk_compat.sagemaker_emulator import SageMakerEmulator

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")

# An emulator for each set of options. Starting one takes seconds, so it stays until this process ends, and is emptied.
_emulators: dict[tuple[tuple[str, Any], ...], SageMakerEmulator] = {}
# How many decorated functions are running.
_running: dict[tuple[tuple[str, Any], ...], int] = {}


@overload
def mock_sagemaker(decorated: Decorated) -> Decorated: ...


@overload
def mock_sagemaker(
    *, runtime: str = ..., region: str = ..., allow_internet: bool = ..., warm: str | None = ...
) -> Callable[[Decorated], Decorated]: ...


def mock_sagemaker(decorated: Any = None, **options: Any) -> Any:
    """Run a function with an empty emulator that all AWS clients of this process use.

    A generator has it until it ends, as a pytest fixture that yields does.

        @mock_sagemaker
        def test_training(): ...

        @mock_sagemaker(runtime="process")
        class TestTrainings: ...

    Of a class, each method whose name begins with ``test`` is decorated; of a ``unittest.TestCase``, ``setUp`` and
    ``tearDown`` run with the same emulator as the test.

    Args:
        decorated: the function or class.
        options: those of ``SageMakerEmulator``, but for ``state_dir``.

    Raises:
        TypeError: ``state_dir`` is given.
    """
    if "state_dir" in options:
        raise TypeError(
            "mock_sagemaker takes no state_dir: it deletes all jobs and objects after each call. To keep a folder, use "
            "SageMakerEmulator(state_dir=...) in a with statement."
        )

    def decorate(target: Any) -> Any:
        if not isinstance(target, type):
            return _decorate_function(target, options)
        if issubclass(target, unittest.TestCase):
            _decorate_test_case(target, options)
            return target
        for name, member in list(vars(target).items()):
            if name.startswith("test") and isinstance(member, (staticmethod, classmethod)):
                setattr(target, name, type(member)(_decorate_function(member.__func__, options)))
            elif name.startswith("test") and callable(member):
                setattr(target, name, _decorate_function(member, options))
        return target

    return decorate if decorated is None else decorate(decorated)


def _decorate_function(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """Wrap a function in one of the same kind, by which pytest and others decide how to run it."""
    if isasyncgenfunction(function):
        return _decorate_asynchronous_generator(function, options)

    if isgeneratorfunction(function):

        @wraps(function)
        def generate(*args: Any, **named: Any) -> Generator[Any, Any, Any]:
            with _empty_emulator(options):
                return (yield from function(*args, **named))

        return generate

    if iscoroutinefunction(function):

        @wraps(function)
        async def run_async(*args: Any, **named: Any) -> Any:
            with _empty_emulator(options):
                return await function(*args, **named)

        return run_async

    @wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        with _empty_emulator(options):
            return function(*args, **named)

    return run


def _decorate_asynchronous_generator(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    @wraps(function)
    async def generate(*args: Any, **named: Any) -> AsyncGenerator[Any, Any]:
        with _empty_emulator(options):
            # What `yield from` does in a generator.
            generator = function(*args, **named)
            following = anext(generator)
            while True:
                try:
                    item = await following
                except StopAsyncIteration:
                    return
                try:
                    following = generator.asend((yield item))
                except GeneratorExit:
                    await generator.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is for the function
                    following = generator.athrow(error)

    return generate


def _decorate_test_case(target: type[unittest.TestCase], options: dict[str, Any]) -> None:
    set_up = target.setUp

    @wraps(set_up)
    def run(self: unittest.TestCase) -> None:
        self.enterContext(_empty_emulator(options))
        set_up(self)

    target.setUp = run  # type: ignore[method-assign]


@contextmanager
def _empty_emulator(options: dict[str, Any]) -> Iterator[SageMakerEmulator]:
    """Lead this process to the emulator of these options, and empty it afterwards, unless an outer call still runs."""
    key = tuple(sorted(options.items()))
    if key not in _emulators or not _emulators[key].is_running:
        _emulators[key] = SageMakerEmulator(**options)
        atexit.register(_emulators[key].stop)
    emulator = _emulators[key]
    _running[key] = _running.get(key, 0) + 1
    emulator.lead()
    try:
        yield emulator
    finally:
        _running[key] -= 1
        if not _running[key]:
            try:
                emulator.reset()
            finally:
                emulator.restore()
