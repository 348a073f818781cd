"""Capture of XGBoost scripts that know nothing of smdebug.

`xgboost.train` and `xgboost.cv` are given one more callback, wherever a script finds these functions; the estimators of
scikit-learn's interface and those of Dask call them, too. All trainings of a process go into one run, one after the
other. Nothing is written, and no hook is made, before the first of them.

A training that already has a hook among its callbacks is left as it is.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import xgboost

from smdebug.core.barrier import LossReport, guarded
from smdebug.core.logger import get_logger
from smdebug.core.singleton import get_current_hook, is_switched_on
from smdebug.xgboost.hook import Hook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smdebug.core.collection import Collection

_FUNCTIONS = ("train", "cv")


class UnattendedHook(Hook):
    """A hook that no script's author made: it never raises."""

    def _refuse_collection(self, collection: Collection) -> None:
        get_logger().error(
            "Not saved: collection %s of the job's configuration. It has no include_regex, so it selects nothing.",
            collection.name,
        )


class ZeroScriptChange:
    """Gives the trainings of this process a hook."""

    def __init__(self) -> None:
        self._report = LossReport()
        self._given_up = False
        # Held while a training has the hook: one that runs beside it in another thread goes without.
        self._hook_in_use = threading.Lock()

    def start(self) -> None:
        """Put the functions that train under watch, in every module of XGBoost that has them already."""
        for name in _FUNCTIONS:
            original = getattr(xgboost.training, name)
            watched = self._watch(original)
            for module_name, module in list(sys.modules.items()):
                is_of_xgboost = module_name.partition(".")[0] == "xgboost"
                if is_of_xgboost and getattr(module, name, None) is original:
                    setattr(module, name, watched)

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost, and give up: what failed while the hook was made fails again."""
        self._report.say(lost, error)
        self._given_up = True

    def _watch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(original).parameters)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._given_up or not self._hook_in_use.acquire(blocking=False):
                return original(*args, **kwargs)
            try:
                # Positional arguments beyond the first three are deprecated, but scripts have them.
                with self._lend_hook(dict(zip(names, args, strict=False)) | kwargs) as hooks:
                    args, kwargs = _add_callbacks(hooks, names, args, kwargs)
                    return original(*args, **kwargs)
            finally:
                self._hook_in_use.release()

        return call

    @contextmanager
    def _lend_hook(self, arguments: Mapping[str, Any]) -> Iterator[list[Hook]]:
        """Give a training its hook, or none, and take back what the hook was told of the training's data."""
        hook = self._find_hook(arguments)
        if hook is None:
            yield []
            return
        own_data = hook.train_data, hook.validation_data
        self._describe_training(hook, arguments)
        try:
            yield [hook]
        finally:
            # The data may be as large as the job's memory, and belongs to the script.
            hook.train_data, hook.validation_data = own_data

    @guarded("everything")
    def _find_hook(self, arguments: Mapping[str, Any]) -> Hook | None:
        """Return the hook for a training with these arguments; None where the script has its own."""
        if any(isinstance(callback, Hook) for callback in arguments.get("callbacks") or ()):
            return None
        current = get_current_hook()
        if current is None:
            current = UnattendedHook.create_from_json_file()
            get_logger().info("Capturing XGBoost, process %d, to %s", os.getpid(), current.out_dir)
        # A script may have asked for the job's hook, to save a scalar of its own, and left its training to us.
        is_free = isinstance(current, UnattendedHook) or (isinstance(current, Hook) and current.step < 0)
        if not is_free:
            return None
        assert isinstance(current, Hook)
        if current.step >= 0:
            get_logger().info("Another training of this process: its rounds are steps %d and on.", current.step + 1)
        return current

    @guarded("hyperparameters, predictions and SHAP values")
    def _describe_training(self, hook: Hook, arguments: Mapping[str, Any]) -> None:
        """Tell the hook what it cannot see: what is trained how, and on what; what the script has said itself stays."""
        if hook.hyperparameters is None or isinstance(hook, UnattendedHook):
            hook.hyperparameters = arguments.get("params")
        train_data = arguments.get("dtrain")
        if hook.train_data is None:
            hook.train_data = train_data
        if hook.validation_data is None:
            matrices = [matrix for matrix, _ in arguments.get("evals") or ()]
            others = [matrix for matrix in matrices if matrix is not train_data]
            hook.validation_data = (others or matrices or [None])[-1]


def install() -> None:
    """Begin to watch this process, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        ZeroScriptChange().start()


def _add_callbacks(
    hooks: list[Hook], names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put hooks before a call's own callbacks: one that ends training keeps those behind it from being called."""
    if not hooks:
        return args, kwargs
    at = names.index("callbacks")
    if at < len(args):
        return (*args[:at], [*hooks, *(args[at] or ())], *args[at + 1 :]), kwargs
    return args, {**kwargs, "callbacks": [*hooks, *(kwargs.get("callbacks") or ())]}
