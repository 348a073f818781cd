"""End of a training step, when its trainers have used the gradients."""

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from mxnet import gluon

from smdebug.barrier import guarded
from smdebug.mxnet.parameters import ParameterCapture
from smdebug.mxnet.training_failures import gives_back_failures


class StepEndWatch:
    """Detects when one or several trainers have used all gradients of the registered blocks.

    Gluon has no trainer hooks, so `step` and `update` of `gluon.Trainer` are wrapped, for all trainers of the process.
    """

    def __init__(
        self, parameters: ParameterCapture, on_end: Callable[[], None], report: Callable[[str, Exception], None]
    ) -> None:
        """Initialize with the parameters of registered blocks; `on_end` is called at the end of each step."""
        self._parameters = parameters
        self._on_end = on_end
        self.report_loss = report
        self._is_ours: WeakKeyDictionary[gluon.Trainer, bool] = WeakKeyDictionary()
        self._have_kvstore: WeakSet[gluon.Trainer] = WeakSet()
        self._used: set[int] = set()
        self._is_saving = False

    def start(self) -> None:
        """Watch all trainers of this process, including those created later."""
        _wrap_trainer()
        if self not in _watches:
            _watches.append(self)

    def stop(self) -> None:
        """Stop watching trainers."""
        self._parameters.return_marks()
        if self in _watches:
            _watches.remove(self)

    def forget_trainers(self) -> None:
        """Clear the cache of relevant trainers, because another block was registered."""
        self._is_ours.clear()

    def begin_step(self, is_saving: bool) -> None:
        """Forget earlier steps; the first trainer ends a step that saves nothing, because this check is cheaper."""
        self._is_saving = is_saving
        if self._used:
            self._used = set()

    @guarded("gradients of a step")
    def before(self, trainer: gluon.Trainer) -> None:
        """Record which gradients are fresh, before the trainer removes the marks."""
        if self._is_saving and self._owns_part_of(trainer):
            self._parameters.note_fresh_gradients()
        else:
            self._parameters.return_marks()

    @gives_back_failures
    @guarded("the end of a step")
    def after(self, trainer: gluon.Trainer) -> None:
        """End the step if no other trainer has to use gradients."""
        if not self._owns_part_of(trainer):
            return
        if trainer._update_on_kvstore and trainer not in self._have_kvstore:  # noqa: SLF001 - settled by its first step
            self._have_kvstore.add(trainer)
            self._parameters.note_kvstore(_get_parameter_ids(trainer))
        if self._is_saving:
            self._used |= _get_parameter_ids(trainer)
            if self._parameters.have_fresh_gradients_outside(self._used):
                return
        self._on_end()

    def _owns_part_of(self, trainer: gluon.Trainer) -> bool:
        is_ours = self._is_ours.get(trainer)
        if is_ours is None:
            is_ours = self._is_ours[trainer] = self._parameters.owns_any(_get_parameter_ids(trainer))
        return is_ours


_watches: list[StepEndWatch] = []
_WRAPPED = "_smdebug_watches_it"


def _wrap_trainer() -> None:
    for name in ("step", "update"):
        method = getattr(gluon.Trainer, name)
        if not hasattr(method, _WRAPPED):
            setattr(gluon.Trainer, name, _wrap(method))


def _wrap(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(trainer: gluon.Trainer, *args: Any, **kwargs: Any) -> Any:
        watches = tuple(_watches)
        for watch in watches:
            watch.before(trainer)
        result = method(trainer, *args, **kwargs)
        for watch in watches:
            watch.after(trainer)
        return result

    setattr(call, _WRAPPED, True)
    return call


def _get_parameter_ids(trainer: gluon.Trainer) -> set[int]:
    return {id(parameter) for parameter in trainer._params}  # noqa: SLF001 - it shows them in no other way
