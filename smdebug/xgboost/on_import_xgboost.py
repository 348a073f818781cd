"""Capture of unmodified XGBoost scripts.

`xgboost.train` and `xgboost.cv` get an additional callback in every module of XGBoost that has them; the estimators of
the scikit-learn and Dask interfaces call them too. All trainings of a process are saved in one run, one after the
other. No hook is created and nothing is written before the first training.

A training that already has a hook among its callbacks is not changed.
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
    """A hook created without script changes."""


class _Call:
    """The arguments of a call, by name, whether they are positional or keyword arguments.

    Positional arguments after the first three are deprecated, but scripts still use them.
    """

    def __init__(self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._names = list(signature.parameters)
        self.args = args
        self.kwargs = kwargs

    def get(self, name: str) -> Any:
        """Return an argument; None if it is not given."""
        at = self._find(name)
        return self.args[at] if at is not None else self.kwargs.get(name)

    def get_list(self, name: str) -> list[Any]:
        """Return a list argument; an iterator, which can be read only once, is replaced with a list."""
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
    """Adds a hook to the trainings of this process."""

    def __init__(self) -> None:
        super().__init__()
        # Held while a training uses the hook: a concurrent training in another thread is not captured.
        self._hook_in_use = threading.Lock()

    def start(self) -> None:
        """Wrap the training functions, in every imported module of XGBoost that has them."""
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
                    # Before the script's callbacks: a callback that ends training prevents calls of those after it.
                    if hooks:
                        call.set("callbacks", [*hooks, *call.get_list("callbacks")])
                    return original(*call.args, **call.kwargs)
            finally:
                self._hook_in_use.release()

        return call

    @contextmanager
    def _lend_hook(self, call: _Call) -> Iterator[list[Hook]]:
        """Yield the hook of a training, if any, and remove the training's data from the hook afterwards."""
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
        """Return the hook for a training; None if the script has its own."""
        if any(isinstance(callback, Hook) for callback in call.get_list("callbacks")):
            return None
        current = get_current_hook()
        if current is None:
            current = UnattendedXgboostHook.create_from_json_file()
            self.say_capturing("XGBoost", current)
        # A script may have created the job's hook only to save a scalar, without adding it to the training.
        is_free = isinstance(current, UnattendedXgboostHook) or (isinstance(current, Hook) and current.step < 0)
        if not is_free:
            return None
        assert isinstance(current, Hook)
        if current.step >= 0:
            get_logger().info("Another training of this process: its rounds are steps %d and on.", current.step + 1)
        return current

    @guarded("hyperparameters, predictions and SHAP values")
    def _describe_training(self, hook: Hook, call: _Call) -> None:
        """Set the hook's hyperparameters and data from the call; values set by the script are kept."""
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
    """Start to watch this process, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        XgboostWatch().start()
