"""The Keras hook for Keras on torch, JAX and other backends.

It does not require TensorFlow.
"""

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from smdebug.barrier import guarded
from smdebug.capture.saving_plan import StepPlan
from smdebug.capture.tensor_writer import TensorWriter
from smdebug.job_warnings import TENSORS_DROPPED, warn_user
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.batch_hook import BatchHook
from smdebug.tensorflow.keras_in_use import keras
from smdebug.tensorflow.steps.loop_functions import get_function, replace_once
from smdebug.tensorflow.steps.model_names import ModelNames
from smdebug.writing.run_writer import Worker

__all__ = ["KerasHook"]


class ArrayWriter(TensorWriter):
    """Writes tensors of the backend, Keras variables and arrays as numpy arrays, named as on TensorFlow."""

    keeps_index = True

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Convert a tensor, a variable or any other value to an array; raises the errors of TensorWriter."""
        if keras.ops.is_tensor(value) or isinstance(value, keras.Variable):
            array = np.asarray(keras.ops.convert_to_numpy(value))
            return array.reshape(1) if array.ndim == 0 else array
        return super().to_array(value)


class KerasHook(BatchHook):
    """Saves weights, optimizer variables, losses and metrics of a model that `fit` trains; on torch, gradients too.

    A step is a batch of `fit`, `evaluate` or `predict`, which determine the mode. Weights are saved after the step has
    updated them.
    """

    tensor_writer_class = ArrayWriter

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of BaseHook."""
        super().__init__(*args, **kwargs)
        self._back_end: str = keras.backend.backend()
        self._names: ModelNames | None = None
        _say_what_is_saved(self._back_end)

    def get_worker(self) -> Worker:
        """Return the worker that this process is in the training."""
        torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
        if self._back_end == "torch" and torch is not None and torch.distributed.is_available():
            if torch.distributed.is_initialized():
                return Worker.of_rank(torch.distributed.get_rank(), torch.distributed.get_world_size())
        elif self._back_end == "jax" and jax is not None:
            return Worker.of_rank(jax.process_index(), jax.process_count())
        return super().get_worker()

    # Methods that only have an effect on TensorFlow.

    def wrap_tape(self, tape: Any) -> Any:
        """Return the tape unchanged, and warn that nothing is saved from it."""
        self._say_nothing_is_saved("a tape")
        return tape

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Return the optimizer unchanged: the optimizer of a model that `fit` trains is saved automatically."""
        return optimizer

    def register_model(self, model: Any) -> None:  # noqa: ARG002 - as on TensorFlow
        """Warn that nothing is saved from a custom training loop."""
        self._say_nothing_is_saved("a loop of the script's own")

    def _say_nothing_is_saved(self, of: str) -> None:
        warn_user(
            TENSORS_DROPPED,
            "Not saved: the steps of %s. When Keras runs on %s, only the steps of fit are saved.",
            of,
            self._back_end,
        )

    # A step that is due.

    def prepare_step(self, mode: ModeKeys, batch: int, plan: StepPlan | None) -> None:
        """Replace Keras' step function for one call with a function that saves the step, if something is due."""
        if plan is None:
            return
        model = self.model
        original = get_function(model, mode)

        def run(*given: Any) -> Any:
            if self.recorder.plan is None:
                return original(*given)
            scale = self._get_scale(model, mode)
            returned = original(*given)
            self._show_step(model, mode, batch, returned, scale)
            return returned

        replace_once(model, mode, run)

    @guarded("the scale of the loss")
    def _get_scale(self, model: Any, mode: ModeKeys) -> float:
        """Return the scale factor of the step's loss, read before the step, because the step may change it."""
        optimizer = getattr(model, "optimizer", None)
        scale = getattr(optimizer, "dynamic_scale", None)
        if scale is None:
            scale = getattr(optimizer, "loss_scale_factor", None)
        if scale is None or mode != ModeKeys.TRAIN or self._back_end != "torch":
            return 1.0
        return float(keras.ops.convert_to_numpy(scale))

    @guarded("a step")
    def _show_step(self, model: Any, mode: ModeKeys, batch: int, returned: Any, scale: float | None) -> None:
        if self._names is None or self._names.model is not model or self._names.is_outdated:
            self._names = ModelNames(model)
        names = self._names
        if self._back_end == "jax":
            logs, state = returned
            self.save_step(names, mode, batch, logs, {}, dict(_read_state(model, mode, state)))
            return
        values = {}
        if mode == ModeKeys.TRAIN and self._back_end == "torch" and scale is not None:
            values = dict(_read_gradients(names, scale))
        self.save_step(names, mode, batch, returned, values)


@cache
def _say_what_is_saved(back_end: str) -> None:
    gradients = "gradients, "
    saved, left_out = (gradients, "") if back_end == "torch" else ("", gradients)
    get_logger().warning(
        "Keras runs on %s: losses, metrics, %sweights and optimizer variables of fit are saved, %slayers and inputs "
        "are not.",
        back_end,
        saved,
        left_out,
    )


def _read_state(model: Any, mode: ModeKeys, state: Any) -> Iterator[tuple[int, Any]]:
    """Return the values of a model's variables by their ids: while JAX trains a model, its variables are empty."""
    variables = [model.trainable_variables, model.non_trainable_variables]
    if mode == ModeKeys.TRAIN:
        variables.append(model.optimizer.variables)
    for group, values in zip(variables, state, strict=False):
        yield from zip(map(id, group), values, strict=True)


def _read_gradients(names: ModelNames, scale: float) -> Iterator[tuple[str, Any]]:
    """Return, by name, the gradients that a step has left in the torch parameters."""
    names.refresh()
    for variable in names.weights.values():
        name = names.gradients.get(id(variable))
        gradient = getattr(variable.value, "grad", None)
        if name is not None and gradient is not None:
            yield name, gradient if scale == 1 else gradient / scale
