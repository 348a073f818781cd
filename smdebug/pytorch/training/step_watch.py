"""Tracing of a PyTorch training: passes, data loading and torch's profiler."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import dataloader
from torch.utils.hooks import RemovableHandle

from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.call_context import is_training_call
from smdebug.pytorch.modules.module_capture import ModuleCallback, register_forward_hook
from smdebug.tracing.step_tracer import StepTracer


class StepWatch:
    """PyTorch's implementation of `smdebug.tracing.step_tracer.Watch`."""

    name = "pytorch"
    is_profiled_at_exit = False

    def __init__(
        self,
        get_models: Callable[[], Iterable[nn.Module]],
        is_ours: Callable[[Optimizer], bool],
        sets_modes: Callable[[], bool],
    ) -> None:
        """Initialize with functions.

        Args:
            get_models: returns the registered models.
            is_ours: whether an optimizer trains them.
            sets_modes: whether the modes of steps are those that the script sets.
        """
        self.tracer: StepTracer | None = None
        self._get_models = get_models
        self._is_ours = is_ours
        self._sets_modes = sets_modes
        self._handles: list[RemovableHandle] = []
        self._unwatch: list[Callable[[], None]] = []
        # The beginning of each running loading process, and both ends of those that have ended.
        self._workers: dict[int, float] = {}
        self._ended_workers: list[tuple[int, float, float]] = []
        self._profile: Any = None
        self._profile_began = 0.0

    def name_step(self, mode: ModeKeys, mode_step: int, number: int) -> tuple[str, int]:  # noqa: ARG002 - of `Watch`
        """See `Watch`: the global step, under the mode that the script has set."""
        return (mode.name.lower() if self._sets_modes() else "global"), number

    def start(self) -> None:
        for model in self._get_models():
            self._handles.append(register_forward_hook(model, ModuleCallback(self._on_forward, type(model).__name__)))
        self._handles += [
            register_optimizer_step_pre_hook(self._on_update),
            register_optimizer_step_post_hook(self._on_updated),
        ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _on_forward(self, name: str, module: nn.Module, inputs: Any, outputs: Any) -> None:  # noqa: ARG002 - torch's signature
        if self.tracer is not None and is_training_call():
            self.tracer.end_forward(name)

    def _on_update(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:  # noqa: ARG002 - torch's signature
        if self.tracer is not None and not torch.compiler.is_compiling() and self._is_ours(optimizer):
            self.tracer.end_backward(next((type(model).__name__ for model in self._get_models()), "model"))

    def _on_updated(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:  # noqa: ARG002 - torch's signature
        if self.tracer is not None and not torch.compiler.is_compiling() and self._is_ours(optimizer):
            self.tracer.end_update()

    def start_loading(self) -> None:
        self._workers.clear()
        self._ended_workers.clear()
        iterator = dataloader._BaseDataLoaderIter  # noqa: SLF001 - there is no other way to see a batch being waited for
        for owner, name, phase, event in (
            (iterator, "__next__", "DataLoaderIter", "DataLoaderIter::GetNext"),
            (dataloader.DataLoader, "_get_iterator", "DataLoaderIterInitialize", "DataLoaderIter::Initialize"),
        ):
            written = getattr(owner, name)
            setattr(owner, name, self._time(written, phase, event))
            self._unwatch.append(partial(setattr, owner, name, written))
        loading = dataloader._MultiProcessingDataLoaderIter  # noqa: SLF001 - nor to see its processes end
        shut_down = loading._shutdown_workers  # noqa: SLF001
        setattr(loading, "_shutdown_workers", self._see_end(shut_down))  # noqa: B010 - a method cannot be assigned
        self._unwatch.append(partial(setattr, loading, "_shutdown_workers", shut_down))

    def _see_end(self, shut_down: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the function that ends an iterator's processes to note when it has done so.

        An iterator may be collected anywhere, also while the timeline is locked: so nothing is recorded here.
        """

        def end(iterator: Any) -> None:
            try:
                shut_down(iterator)
            finally:
                for worker in getattr(iterator, "_workers", ()):
                    began = self._workers.pop(worker.pid, None)
                    if began is not None:
                        self._ended_workers.append((worker.pid, began, time.time()))

        return end

    def _time(self, written: Callable[..., Any], phase: str, event: str) -> Callable[..., Any]:
        """Wrap a function to record its duration."""

        def timed(loader: Any) -> Any:
            began = time.time()
            iterator = loader
            # Waiting for the end of an epoch ends its processes, so they are noted before.
            self._note_workers(loader, began)
            try:
                result = written(loader)
                if phase == "DataLoaderIterInitialize":
                    iterator = result
                    self._note_workers(iterator, began)
                return result
            finally:
                self._record_loading(phase, event, iterator, began)

        return timed

    def _note_workers(self, iterator: Any, began: float) -> None:
        workers = () if getattr(iterator, "_shutdown", False) else getattr(iterator, "_workers", ())
        for worker in workers:
            self._workers.setdefault(worker.pid, began)

    def _record_loading(self, phase: str, event: str, iterator: Any, began: float) -> None:
        workers = getattr(iterator, "_workers", ())
        if self.tracer is not None and self.tracer.wants_loading(event):
            self.tracer.record(phase, event, began, time.time() - began, {"num_workers": len(workers)})

    def stop_loading(self) -> None:
        for undo in self._unwatch:
            undo()
        self._unwatch.clear()
        now = time.time()
        running = [(pid, began, now) for pid, began in list(self._workers.items())]
        for pid, began, ended in (*self._ended_workers, *running):
            if self.tracer is not None:
                self.tracer.record("DataLoaderWorker", "DataLoaderWorker", began, ended - began, {"worker_pid": pid})
        self._workers.clear()
        self._ended_workers.clear()

    def start_detailed(self, step: int) -> None:  # noqa: ARG002 - of `Watch`
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profile = torch.profiler.profile(activities=activities)
        self._profile.start()
        self._profile_began = time.time()

    def stop_detailed(self, step: int) -> None:
        profile, self._profile = self._profile, None
        profile.stop()
        if self.tracer is None:
            return
        args = {"step_num": str(step)}
        for event in profile.events():
            is_cpu = event.device_type.name == "CPU"
            phase = "cpu_functions" if is_cpu else f"gpu_functions-dev:{event.device_index}"
            start, duration = event.time_range.start / 1e6, event.time_range.elapsed_us() / 1e6
            self.tracer.record(phase, event.name, self._profile_began + start, duration, args)
