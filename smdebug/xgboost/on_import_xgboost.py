"""Capture of unmodified XGBoost scripts.

`xgboost.train` and `xgboost.cv` are given one more callback, wherever a script finds these functions; the estimators of
scikit-learn's interface and those of Dask call them, too. All trainings of a process go into one run, one after the
other. Nothing is written, and no hook is made, before the first of them.

A training that already has a hook among its callbacks is left as it is.
"""

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import xgboost

from smdebug.barrier import guarded
from smdebug.capture.singleton import get_current_hook
from smdebug.capture.zero_script_change import UnattendedHook, ZeroScriptChange
from smdebug.environment import is_switched_on
from smdebug.logger import get_logger
from smdebug.xgboost.hook import Hook

_FUNCTIONS = ("train", "cv")


class UnattendedXgboostHook(UnattendedHook, Hook):
    """A hook that no script's author made."""


class _Call:
    """The arguments of a call, by name wherever they stand.

    Arguments beyond the first three are by keyword; positional ones are deprecated, but scripts have them.
    """

    def __init__(self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._names = list(signature.parameters)
        self.args = args
        self.kwargs = kwargs

    def get(self, name: str) -> Any:
        """Return an argument; None where it is not given."""
        at = self._find(name)
        return self.args[at] if at is not None else self.kwargs.get(name)

    def get_list(self, name: str) -> list[Any]:
        """Return an argument that is a list of things; an iterator, which can be read once only, becomes one."""
        value = self.get(name)
        if value is None:
            return []
        items = list(value)
        if not isinstance(value, (list, tuple)):
            self.set(name, items)
        return items

    def set(self, name: str, value: Any) -> None:
        """Change or add an argument."""
        at = self._find(name)
        if at is None:
            self.kwargs = {**self.kwargs, name: value}
        else:
            self.args = (*self.args[:at], value, *self.args[at + 1 :])

    def _find(self, name: str) -> int | None:
        at = self._names.index(name) if name in self._names else len(self.args)
        return at if at < len(self.args) else None


class XgboostWatch(ZeroScriptChange[Hook]):
    """Gives the trainings of this process a hook."""

    def __init__(self) -> None:
        super().__init__()
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

    def _watch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_over or not self._hook_in_use.acquire(blocking=False):
                return original(*args, **kwargs)
            try:
                call = _Call(signature, args, kwargs)
                with self._lend_hook(call) as hooks:
                    # Before its own callbacks: one that ends training keeps those behind it from being called.
                    if hooks:
                        call.set("callbacks", [*hooks, *call.get_list("callbacks")])
                    return original(*call.args, **call.kwargs)
            finally:
                self._hook_in_use.release()

        return call

    @contextmanager
    def _lend_hook(self, call: _Call) -> Iterator[list[Hook]]:
        """Give a training its hook, or none, and take back what the hook was told of the training's data."""
        hook = self._find_hook(call)
        if hook is None:
            yield []
            return
        own_data = hook.train_data, hook.validation_data
        self._describe_training(hook, call)
        try:
            yield [hook]
        finally:
            # The data may be as large as the job's memory, and belongs to the script.
            hook.train_data, hook.validation_data = own_data

    @guarded("everything")
    def _find_hook(self, call: _Call) -> Hook | None:
        """Return the hook for a training; None where the script has its own."""
        if any(isinstance(callback, Hook) for callback in call.get_list("callbacks")):
            return None
        current = get_current_hook()
        if current is None:
            current = UnattendedXgboostHook.create_from_json_file()
            self.say_capturing("XGBoost", current)
        # A script may have asked for the job's hook, to save a scalar of its own, and left its training to us.
        is_free = isinstance(current, UnattendedXgboostHook) or (isinstance(current, Hook) and current.step < 0)
        if not is_free:
            return None
        assert isinstance(current, Hook)
        if current.step >= 0:
            get_logger().info("Another training of this process: its rounds are steps %d and on.", current.step + 1)
        return current

    @guarded("hyperparameters, predictions and SHAP values")
    def _describe_training(self, hook: Hook, call: _Call) -> None:
        """Tell the hook what it cannot see: what is trained how, and on what; what the script has said itself stays."""
        if hook.hyperparameters is None or isinstance(hook, UnattendedXgboostHook):
            hook.hyperparameters = call.get("params")
        train_data = call.get("dtrain")
        if hook.train_data is None:
            hook.train_data = train_data
        if hook.validation_data is None:
            matrices = [matrix for matrix, _ in call.get_list("evals")]
            others = [matrix for matrix in matrices if matrix is not train_data]
            hook.validation_data = (others or matrices or [None])[-1]


def install() -> None:
    """Begin to watch this process, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        XgboostWatch().start()
