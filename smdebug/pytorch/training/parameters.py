"""Parameters before the forward pass, and gradients of the backward pass."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, cast
from weakref import ref

import torch
from torch import nn
from torch.nn.parameter import Parameter, is_lazy
from torch.utils.hooks import RemovableHandle

from smdebug.capture.saving_plan import StepPlan
from smdebug.pytorch.call_context import is_in_backward
from smdebug.pytorch.tensors.sharded import find_sharded_parameters, is_sharded
from smdebug.pytorch.training.loss_scales import LossScales


class ParameterCapture:
    """Saves parameters of registered models as `<model class>_<path>`; a shared parameter has its first path."""

    def __init__(
        self,
        save: Callable[[str, torch.Tensor], None],
        report: Callable[[str, Exception], None],
        gradient_prefix: str,
        loss_scales: LossScales,
    ) -> None:
        """Initialize with callbacks that save a tensor by name and report a failure, and with the loss scales."""
        self._save = save
        self._report = report
        self._gradient_prefix = gradient_prefix
        # Weak: a script that trains one model after the other, as in cross validation, drops those that are trained.
        self._models: list[tuple[str, ref[nn.Module]]] = []
        self._loss_scales = loss_scales
        self._handles: list[RemovableHandle] = []
        self._awaited = self._seen = False
        # Parameters of the step in progress, cached because walking a model takes longer than reading its parameters.
        self._current: list[tuple[str, torch.Tensor]] = []
        # Parameters not saved yet in this step, including those that lazy modules create from the first batch; and
        # whether their model is the one whose call is the step.
        self._unmade: list[tuple[str, torch.Tensor, bool]] = []

    def add_model(self, name: str, model: nn.Module) -> None:
        """Add a model's parameters, including those it gets later."""
        self._models.append((name, ref(model)))
        # If a step is in progress, `save_new` saves these.
        self._unmade += [(*named, True) for named in _name_parameters(name, model)]

    @property
    def models(self) -> list[nn.Module]:
        """The registered models."""
        return [model for _, model in self._iterate_models()]

    @property
    def model_names(self) -> list[str]:
        """The names of the registered models, also of those that the script has dropped."""
        return [name for name, _ in self._models]

    def begin_step(self, called: nn.Module | None) -> None:
        """Collect the models' parameters of this step, for `save_new` to save those of the called model."""
        self.deactivate()
        self._unmade = [
            (*named, called is None or model is called)
            for name, model in self._iterate_models()
            for named in _name_parameters(name, model)
        ]

    @property
    def has_unmade(self) -> bool:
        """Whether a lazy module has parameters that its first batch will create."""
        return bool(self._unmade)

    def save_new(self) -> list[tuple[str, torch.Tensor]]:
        """Save the called model's parameters created since the last call, and return those of all models."""
        found = []
        unmade, self._unmade = self._unmade, []
        for name, parameter, is_called in unmade:
            if is_lazy(parameter):
                self._unmade.append((name, parameter, is_called))
                continue
            found.append((name, parameter))
            if is_called:
                self._save(name, parameter)
        self._current += found
        return found

    def activate_gradients(
        self, plan: StepPlan, parameters: Iterable[tuple[str, torch.Tensor]], *, are_expected: bool
    ) -> None:
        """Save each gradient of this step when the backward pass computes it.

        Frozen parameters have no gradient, but a script that trains two models in turn may unfreeze them within a step.

        Args:
            plan: what is saved at this step.
            parameters: parameters with their names.
            are_expected: whether missing gradients count for `lacks_gradients`.
        """
        for name, parameter in parameters:
            gradient_name = f"{self._gradient_prefix}{name}"
            if parameter.requires_grad:
                if plan.select(gradient_name):
                    self._awaited = self._awaited or are_expected
                    self._handles.append(self._register(gradient_name, parameter))
            elif _can_be_thawed(parameter) and any(found.matches(gradient_name) for found in plan.due):
                # torch registers a hook only on a tensor that requires a gradient.
                parameter.requires_grad = True
                try:
                    self._handles.append(self._register(gradient_name, parameter))
                finally:
                    parameter.requires_grad = False
        if self._handles:
            # Includes scaler classes that were defined after the model was registered.
            self._loss_scales.start()
            self._loss_scales.is_watching = True

    def _register(self, name: str, parameter: torch.Tensor) -> RemovableHandle:
        if not is_sharded(parameter):
            hook = partial(self._save_gradient, name)
            return cast("RemovableHandle", parameter.register_hook(hook))  # type: ignore[no-untyped-call]
        # fully_shard() sets a parameter's gradient itself, and calls only hooks of this kind. Ours must run before
        # those of a script whose optimizers step within the backward pass.
        sharded = cast("Any", parameter)
        handle: RemovableHandle = sharded.register_post_accumulate_grad_hook(partial(self._save_accumulated, name))
        sharded._post_accumulate_grad_hooks.move_to_end(handle.id, last=False)  # noqa: SLF001 - there is no other way
        return handle

    def _save_accumulated(self, name: str, parameter: torch.Tensor) -> None:
        """Save the gradient accumulated over the parameter's backward passes."""
        if parameter.grad is not None:
            self._save_gradient(name, parameter.grad)

    def _save_gradient(self, name: str, gradient: torch.Tensor) -> None:
        self._seen = True
        try:
            gradient = self._loss_scales.unscale(gradient)
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self._report(f"tensor {name}", error)
        else:
            self._save(name, gradient)

    @property
    def lacks_gradients(self) -> bool:
        """Whether gradients should be saved, but no backward pass has computed any so far."""
        return self._awaited and not self._seen

    def deactivate(self) -> None:
        """Stop watching gradients, and release the parameters."""
        self._current = []
        self._unmade = []
        self._loss_scales.is_watching = False
        if is_in_backward():
            # A failure has ended the step. fully_shard() is iterating over the hooks, so they cannot be removed now.
            return
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def get_foreign(self, parameter_ids: set[int]) -> set[int]:
        """Return the ids that are not parameters of a registered model."""
        return parameter_ids.difference(id(parameter) for _, parameter in self._iterate())

    def find_outside(self, parameter_ids: set[int]) -> list[torch.Tensor]:
        """Return the parameters of the step in progress that have other ids."""
        return [parameter for _, parameter in self._current if id(parameter) not in parameter_ids]

    def forget(self) -> None:
        """Forget all models."""
        self.deactivate()
        self._models.clear()

    def _iterate(self) -> Iterator[tuple[str, torch.Tensor]]:
        for model_name, model in self._iterate_models():
            yield from _name_parameters(model_name, model)

    def _iterate_models(self) -> Iterator[tuple[str, nn.Module]]:
        for name, each in self._models:
            if (model := each()) is not None:
                yield name, model


def _name_parameters(model_name: str, model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    sharded = find_sharded_parameters(model)
    for path, parameter in model.named_parameters():
        yield f"{model_name}_{path}", sharded.get(id(parameter), parameter)


def _can_be_thawed(parameter: torch.Tensor) -> bool:
    return (
        (parameter.is_floating_point() or parameter.is_complex())
        and type(parameter) is Parameter
        and parameter.is_leaf
        and not parameter.is_inference()
    )
