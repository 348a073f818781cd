"""The PyTorch hook: tensors of each part of a training step."""

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

import torch
from torch import nn
from torch.nn.modules.loss import _Loss
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from smdebug.barrier import guarded
from smdebug.capture.framework import check_version
from smdebug.capture.hook import BaseHook
from smdebug.capture.part_capture import INPUT_SUFFIX, OUTPUT_SUFFIX
from smdebug.capture.saving_plan import StepPlan
from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection import CollectionKeys
from smdebug.exceptions import SMDebugError
from smdebug.job_warnings import HOOK_SAVED_NOTHING, warn_user
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.call_context import is_training_call
from smdebug.pytorch.collection import Collection, CollectionManager
from smdebug.pytorch.modules.compiled_models import CompiledModels, get_written_model
from smdebug.pytorch.modules.module_capture import (
    ModuleCallback,
    ModuleCapture,
    choose_model_name,
    register_forward_hook,
    register_forward_pre_hook,
)
from smdebug.pytorch.tensors.tensor_writer import TorchTensorWriter
from smdebug.pytorch.training.loss_scales import LossScales
from smdebug.pytorch.training.optimizer_state import OPTIMIZER_REGEX, OptimizerCapture
from smdebug.pytorch.training.parameters import ParameterCapture
from smdebug.pytorch.training.step_end import StepEndWatch
from smdebug.pytorch.training.step_watch import StepWatch
from smdebug.pytorch.workers import get_rank, get_worker, is_data_loader_worker
from smdebug.tracing.outer_profile import profile_until_first_step
from smdebug.tracing.step_tracer import StepTracer, may_be_traced
from smdebug.writing.run_writer import Worker

# The oldest version in which the hook's tests pass; 2.1 has no torch.compiler.is_compiling.
_OLDEST = (2, 3)
_MODES_OF_EVALUATION = frozenset({ModeKeys.EVAL, ModeKeys.PREDICT})

profile_until_first_step()


class Hook(BaseHook):
    """Saves parameters, gradients, losses, and inputs and outputs of modules of registered models.

    A step begins when a registered model is called. It is visible when the model's optimizers have used its gradients,
    and ends when the mode changes or the next step begins. In a step that saves nothing, only the callback that counts
    steps is registered. The state of optimizers is saved if include_collections names `optimizer_variables`; see
    `smdebug.pytorch.training.optimizer_state`.
    """

    # As upstream: a hook that the script has made saves the parameters of the model whose call is the step.
    _saves_called_model_alone = True

    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = CollectionManager.default_collections
    always_saved: ClassVar[tuple[str, ...]] = (CollectionKeys.LOSSES,)
    manager_class = CollectionManager
    tensor_writer_class = TorchTensorWriter

    if TYPE_CHECKING:

        def get_collection(self, name: str, create: bool = True) -> Collection:
            """Return a collection to configure, of this framework's class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of BaseHook."""
        super().__init__(*args, **kwargs)
        check_version("PyTorch", torch.__version__, first=_OLDEST, missing="what it does not show")
        self._modules = ModuleCapture(self.recorder.save, self.report_loss)
        self._losses = ModuleCapture(self.recorder.save, self.report_loss)
        self._loss_scales = LossScales(self.report_loss)
        self._parameters = ParameterCapture(
            self.recorder.save, self.report_loss, self.GRADIENT_PREFIX, self._loss_scales
        )
        self._step_end = StepEndWatch(
            self._parameters, self._on_gradients_used, self._save_optimizer, self._on_new_optimizer
        )
        self._optimizers = OptimizerCapture(self.recorder.save)
        self._root_handles: list[RemovableHandle] = []
        self._lazy_handle: RemovableHandle | None = None
        self._compiled = CompiledModels(self.begin_step, lambda: self._modules.is_active)
        self._roots: list[ref[nn.Module]] = []
        self._watch = StepWatch(self._get_roots, self._step_end.is_of_ours, lambda: not self._mode_from_model)
        if may_be_traced():
            self.tracer = self._watch.tracer = StepTracer(self._watch, get_rank)
        # Without script changes, only the model's `training` flag shows the mode.
        self._mode_from_model = False

    def register_module(self, module: nn.Module) -> None:
        """Capture a model: each call of the model begins a step.

        A module that is registered twice, or is part of a registered module, is captured once.

        Raises:
            SMDebugError: `module` is not an nn.Module.
        """
        if not isinstance(module, nn.Module):
            raise SMDebugError(f"register_module takes an nn.Module, not {type(module).__name__}.")
        if module in self._modules:
            get_logger().warning("%s is registered already, or is part of a registered model.", type(module).__name__)
            return
        module = self._compiled.start(module)
        root_name = choose_model_name(module, self._parameters.model_names)
        for path, part in module.named_modules():
            # As upstream names parts: those of two models may share names, but each call of a model is its own step.
            self._modules.add(part, path or root_name)
        self._parameters.add_model(root_name, module)
        if self._has_own_forward_hook:
            for part in module.modules():
                self._call_forward_hook_of(part, self._modules.get_name(part))
        if next(module.parameters(), None) is None:
            get_logger().warning("%s has no parameters: only its inputs and outputs can be saved.", root_name)
        self._root_handles.append(register_forward_pre_hook(module, ModuleCallback(self.begin_step)))
        self._roots.append(ref(module))
        if self.tracer is not None and self.tracer.config is not None:
            self._watch.stop()
            self._watch.start()
        self._step_end.forget_optimizers()
        self._step_end.start()
        self._loss_scales.start()
        self.recorder.collections.forget_plan()

    def _get_roots(self) -> list[nn.Module]:
        """Return the registered models that have not been deleted."""
        return [module for each in self._roots if (module := each()) is not None]

    def _forget_models(self) -> None:
        self._roots.clear()
        self._remove_root_handles()
        self._modules.forget()
        self._parameters.forget()

    # Alias in smdebug.
    register_hook = register_module

    def register_loss(self, loss_module: nn.Module) -> None:
        """Capture a loss module under the name of its class.

        Raises:
            SMDebugError: the class of `loss_module` is neither a loss of torch.nn nor derived from one.
        """
        written = get_written_model(loss_module)
        if not isinstance(written, _Loss):
            raise SMDebugError(
                f"register_loss takes a loss of torch.nn or a class derived from one, not {type(written).__name__}. "
                "Save the result of any other loss by record_tensor_value."
            )
        if loss_module in self._losses:
            get_logger().warning("The loss %s is registered already.", type(loss_module).__name__)
            return
        self._losses.add(loss_module, type(written).__name__)
        if self._has_own_forward_hook:
            self._call_forward_hook_of(loss_module, type(written).__name__)

    @property
    def has_registered_module(self) -> bool:
        """Return whether a model is registered."""
        return bool(self._root_handles)

    def knows_any_part(self, module: nn.Module) -> bool:
        """Return whether a module, or a part of it, belongs to a registered model."""
        return module in self._modules or any(part in self._modules for part in module.modules())

    @property
    def has_registered_loss_module(self) -> bool:
        """Return whether a loss module is registered."""
        return bool(self._losses.names)

    def knows_loss(self, loss: nn.Module) -> bool:
        """Return whether a loss module is registered."""
        return loss in self._losses

    @guarded("a value given to record_tensor_value")
    def record_tensor_value(self, tensor_name: str, tensor_value: torch.Tensor) -> None:
        """Save a value as `<tensor_name>_output_<i>`, like a module's output, if the current step selects that name.

        A functional loss belongs to the collection `losses` if its name ends in `loss`.
        """
        if self.recorder.plan is not None:
            self._losses.save_numbered(f"{tensor_name}{OUTPUT_SUFFIX}", tensor_value)

    def record_loss(self, name: str, inputs: object, result: object) -> None:
        """Save the inputs and the result of a loss, like those of a registered loss module with that class name."""
        if self.recorder.plan is not None:
            self._losses.save_call(name, inputs, result)

    # Members that classes in scripts override or call, as AWS's examples do. A class with a `forward_hook` of its own
    # saves the inputs and outputs of modules itself.

    @property
    def _has_own_forward_hook(self) -> bool:
        return type(self).forward_hook is not Hook.forward_hook

    @property
    def module_maps(self) -> Mapping[nn.Module, str]:
        """The names of registered modules and losses, which overriding methods read in scripts for older versions."""
        return ChainMap(self._modules.names, self._losses.names)

    def _call_forward_hook_of(self, module: nn.Module, name: str | None) -> None:
        # The name that overriding methods read.
        module.__dict__["_module_name"] = name
        self._root_handles.append(register_forward_hook(module, ModuleCallback(self._call_forward_hook)))

    def _call_forward_hook(self, module: nn.Module, inputs: Any, outputs: Any) -> None:
        """Call the class's own `forward_hook`, unless a copy of the module was called."""
        if (module in self._modules or module in self._losses) and is_training_call():
            self.forward_hook(module, inputs, outputs)

    def forward_hook(self, module: nn.Module, inputs: Any, outputs: Any) -> None:
        """Save the inputs and outputs of a registered module's call, if they are due."""
        name = self._modules.get_name(module) or self._losses.get_name(module)
        if name is not None:
            self._write_inputs(name, inputs)
            self._write_outputs(name, outputs)

    def backward_hook(self, tname: str) -> Callable[[torch.Tensor], None]:
        """Return a callback for `Tensor.register_hook` that saves a gradient as `gradient/<tname>`."""

        def save_gradient(gradient: torch.Tensor) -> None:
            self._save_for_tensor(f"{self.GRADIENT_PREFIX}{tname}", gradient)

        return save_gradient

    @guarded("inputs of a module")
    def _write_inputs(self, name: str, inputs: Any) -> None:
        """Save each tensor as `<name>_input_<i>`, if it is due."""
        if self.recorder.plan is not None:
            self._modules.save_numbered(f"{name}{INPUT_SUFFIX}", inputs)

    @guarded("outputs of a module")
    def _write_outputs(self, name: str, outputs: Any) -> None:
        """Save each tensor as `<name>_output_<i>`, if it is due."""
        if self.recorder.plan is not None:
            self._modules.save_numbered(f"{name}{OUTPUT_SUFFIX}", outputs)

    # Called by torch.

    @guarded("a step")
    def begin_step(self, module: nn.Module, inputs: Any) -> None:  # noqa: ARG002 - torch's signature
        """Begin a step; the pre-forward hook of a registered model."""
        # A copy of a registered model has the same hooks, but is not the model being trained.
        if module not in self._modules or not is_training_call() or module is self._compiled.running:
            return
        if self._mode_from_model:
            mode = ModeKeys.TRAIN if module.training else ModeKeys.EVAL
            if mode is not self.recorder.mode:
                self.recorder.change_mode(mode)
        plan = self.recorder.begin()
        if self.tracer is not None:
            self.trace_step()
        if plan is None:
            self._step_end.is_saving = False
            return
        self._step_end.begin_saved_step()
        self._parameters.begin_step(module if self._saves_called_model_alone else None)
        self._save_parameters(plan)
        if self._parameters.has_unmade:
            self._lazy_handle = register_forward_hook(module, ModuleCallback(self._on_first_batch_seen))
        if not self._has_own_forward_hook:
            self._modules.activate(plan)
            self._losses.activate(plan)
        self._compiled.run_as_written(self._modules.names)

    def _save_parameters(self, plan: StepPlan) -> None:
        found = self._parameters.save_new()
        if torch.is_grad_enabled():
            self._parameters.activate_gradients(plan, found, are_expected=self.mode not in _MODES_OF_EVALUATION)

    @guarded("parameters of lazy modules")
    def _on_first_batch_seen(self, *arguments: object) -> None:  # noqa: ARG002 - torch's signature
        if self.recorder.plan is not None:
            self._save_parameters(self.recorder.plan)

    @guarded("a model that is new in a step")
    def _join_step(self) -> None:
        """Add a model that was registered during the step in progress to that step."""
        if self.recorder.plan is not None:
            self._save_parameters(self.recorder.plan)
            if not self._has_own_forward_hook:
                self._modules.activate(self.recorder.plan)

    @guarded("the state of an optimizer")
    def _save_optimizer(self, optimizer: Optimizer) -> None:
        if self.recorder.plan is not None and self.recorder.plan.has_collection(CollectionKeys.OPTIMIZER_VARIABLES):
            self._optimizers.save_state(optimizer)

    def _on_new_optimizer(self, *, is_known: bool) -> None:
        """Handle an optimizer's first step; a known optimizer trains only registered models."""

    @guarded("the end of a step")
    def _on_gradients_used(self, *, more_may_come: bool = False) -> None:
        recorder = self.recorder
        if recorder.saves_late or more_may_come or (recorder.plan is None and not recorder.is_open):
            recorder.in_step = False
        elif recorder.in_step or recorder.plan is not None:
            self._leave_training()
            # As with upstream, a loss or a part of the model that is called before the next step belongs to this one.
            recorder.show()
            if recorder.plan is None:
                self.give_up_step()

    # Implementation of Framework.

    def leave_step(self) -> None:
        """Remove the callbacks of the step that ends."""
        if self.recorder.plan is not None:
            self.give_up_step()

    def give_up_step(self) -> None:
        """Remove the callbacks of a step."""
        self._leave_training()
        self._modules.deactivate()
        self._losses.deactivate()

    def _leave_training(self) -> None:
        """Remove the callbacks of gradients, and run compiled models compiled again."""
        self._parameters.deactivate()
        self._compiled.run_compiled()
        if self._lazy_handle is not None:
            self._lazy_handle.remove()
            self._lazy_handle = None

    def detach(self) -> None:
        """Remove every callback from models and optimizers."""
        if self._root_handles and self.step < 0 and not self.recorder.collections.refused:
            warn_user(
                HOOK_SAVED_NOTHING,
                "Nothing was saved: no registered model was called. The hook does not see a model that is called only "
                "in a function given to torch.compile (compile the model instead), or only while a CUDA graph is "
                "recorded (call it once before).",
            )
        if self._parameters.lacks_gradients:
            warn_user(
                HOOK_SAVED_NOTHING,
                "No gradient was saved: backward() was not called in any step that saves gradients, or computed none "
                "for the model's own parameters.",
            )
        self._step_end.stop()
        self._compiled.stop()
        self._loss_scales.stop()
        self._remove_root_handles()

    def _remove_root_handles(self) -> None:
        for handle in self._root_handles:
            handle.remove()
        self._root_handles.clear()

    def get_worker(self) -> Worker:
        """Return which worker of the training this process is."""
        return get_worker()

    def is_main_process(self) -> bool:
        """Return whether this process is not a data loader worker."""
        return not is_data_loader_worker()

    def prepare_collection(self, collection: BaseCollection) -> None:
        """Convert the modules of a collection to regexes for their tensors' names."""
        if not isinstance(collection, Collection):
            return
        if collection.name == CollectionKeys.OPTIMIZER_VARIABLES and collection.selects_nothing():
            # Upstream has no such collection for PyTorch, so only a run that names it has one.
            collection.include(OPTIMIZER_REGEX)
        for module, wanted in collection.modules.items():
            # Known once the module's model is registered.
            name = self._modules.get_name(get_written_model(module))
            for suffix, is_wanted in zip((INPUT_SUFFIX, OUTPUT_SUFFIX), wanted, strict=True):
                if name is not None and is_wanted and f"{name}{suffix}" not in collection.include_regex:
                    collection.include(f"{name}{suffix}")
