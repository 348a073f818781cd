"""A run that was or is being saved, open for questions: which tensors, at which steps, in which mode, by whom."""

import re
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from smdebug.analysis import plots
from smdebug.analysis.frames import build_frame
from smdebug.analysis.plots import name_run
from smdebug.analysis.utils import read_step_data
from smdebug.config.collection import Collection
from smdebug.exceptions import NoMoreData, SMDebugValueError, StepUnavailable, TensorUnavailable
from smdebug.format.arguments import check_mode
from smdebug.mode_keys import ModeKeys
from smdebug.reading.step_table import StepState
from smdebug.reading.tensor import Tensor
from smdebug.trials.refreshing_run import DEFAULT_POLL_INTERVAL_S, RefreshingRun
from smdebug.trials.step_tensors import StepTensors

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["DEFAULT_POLL_INTERVAL_S", "Trial"]


class Trial(RefreshingRun):
    """The questions that can be asked of a run; `LocalTrial` and `S3Trial` say where its files are.

    `RefreshingRun` says what it is made of, how it looks for new steps, and which environment variables it obeys.
    """

    @cached_property
    def step_tensors(self) -> StepTensors:
        """The tensors of one step after the other, found once for all rules that look at them."""
        return StepTensors(self)

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[str] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Sorted names of the tensors that were saved, narrowed by what is given.

        Args:
            show_prefixed_tensors: also the names under which reductions are stored.
            step: only tensors saved at this step, in the mode's numbers.
            mode: only tensors saved in this mode.
            regex: only names in which one of these is found.
            collection: only tensors of this collection.

        Raises:
            ValueError: both regex and collection are given.
            KeyError: the mode has not been seen, or not this step of it.
            TypeError: collection is neither a name nor a Collection.
            SMDebugValueError: a regex is none, or a mode.
        """
        self.maybe_refresh()
        if regex is not None and collection is not None:
            raise ValueError("tensor_names takes regex or collection, not both: filter the names of the one yourself.")
        names = self._list_names(step, mode)
        if collection is not None:
            found = self._resolve_collection(collection)
            names = [name for name in names if found.matches(name)]
        if regex is not None:
            patterns = [_compile(part) for part in ([regex] if isinstance(regex, str) else regex)]
            names = [name for name in names if any(pattern.search(name) for pattern in patterns)]
        if show_prefixed_tensors:
            names += [stored for name in names for stored in self.run_index.layouts.find_stored_names(name)]
        return sorted(names)

    def tensors(self, **filters: Any) -> list[str]:
        """Return the same as `tensor_names`, under the name that AWS's example of a custom rule uses."""
        return self.tensor_names(**filters)

    def tensor(self, tname: str) -> Tensor:
        """Return the tensor of this name; TensorUnavailable if no step seen so far has it."""
        tensor = self._tensors.get(tname)
        if tensor is not None:
            return tensor
        tensor = self._find_tensor(tname)
        if tensor is None:
            self.maybe_refresh()
            tensor = self._find_tensor(tname)
        if tensor is None:
            raise TensorUnavailable(tname)
        return tensor

    def has_tensor(self, tname: str) -> bool:
        """Whether some step seen so far has this tensor."""
        if self._find_tensor(tname) is None:
            self.maybe_refresh()
        return self._find_tensor(tname) is not None

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Sorted steps of a mode, in its own numbers; GLOBAL gives all steps by their global numbers.

        Args:
            mode: what to count.
            show_incomplete_steps: also steps that not all workers have written yet.
        """
        self.maybe_refresh()
        return self._table.steps(mode, show_incomplete=show_incomplete_steps)

    def modes(self) -> list[ModeKeys]:
        """Modes in which steps were saved; steps saved without a mode add none."""
        self.maybe_refresh()
        return self._table.modes()

    def mode(self, global_step: int) -> ModeKeys | None:
        """Return the mode of a global step; None if the step was not seen."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """Return the number that a global step has in its mode; None if the step was not seen."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Mode and mode step of a global step; (None, None) if the step was not seen."""
        self.maybe_refresh()
        return self._table.place(global_step)

    @property
    def _global_to_mode(self) -> dict[int, tuple[ModeKeys, int]]:
        """Mode and mode step of every global step seen, under the name that tests written for smdebug look into."""
        self.maybe_refresh()
        return self._table.get_places()

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global step of a mode's step; None if it was not seen. GLOBAL's steps are returned as they are."""
        if mode is not ModeKeys.GLOBAL:
            self.maybe_refresh()
        return self._table.global_step(mode, mode_step)

    def workers(self) -> list[str]:
        """Sorted names of the workers that write this run."""
        self.maybe_refresh()
        return list(self._collections.workers)

    def collections(self) -> dict[str, Collection]:
        """Return the collections of the run by name, as the first worker described them."""
        self.maybe_refresh()
        self.run_index.read_all()
        return self._get_collections().get_all()

    def collection(self, coll_name: str) -> Collection:
        """Return a collection by name; an unknown one is created empty."""
        return self._get_collections().get(coll_name)

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Return the values of the collection inputs at a step, in the order of the numbers that their names end in.

        Args:
            step: step, in the mode's numbers.
            mode: what the step counts.

        Raises:
            TensorUnavailableForStep: a value cannot be read. Inputs that the step does not have are left out.
        """
        names = self.tensor_names(collection="inputs") if "inputs" in self.collections() else []
        return read_step_data(self, names, step, mode)

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Return the values of the tensors named labels... at a step; order, arguments and errors as in `inputs`."""
        return read_step_data(self, self.tensor_names(regex="^labels"), step, mode)

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Return the values of the tensors named predictions... at a step; order, arguments and errors as `inputs`."""
        return read_step_data(self, self.tensor_names(regex="^predictions"), step, mode)

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Whether a step, in a mode's numbers, can be read (AVAILABLE), may come, or will never come."""
        self.maybe_refresh()
        return self._table.state(step, mode)

    def wait_for_steps(self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        """Return once all these steps can be read. Refreshing is afterwards on or off as it was before.

        Args:
            required_steps: steps in the mode's numbers.
            mode: what the steps count.

        Raises:
            StepUnavailable: a step was passed over and will not come.
            NoMoreData: the job has ended and the step is not before its last one.
        """
        refreshing = self.dynamic_refresh
        self.dynamic_refresh = True
        try:
            for step in required_steps:
                self._wait_for_step(step, mode)
        finally:
            self.dynamic_refresh = refreshing

    def wait_for_next_step(
        self, step: int, end: int | None = None, *, while_waiting: Callable[[], None] | None = None
    ) -> int | None:
        """Wait for the first complete global step that is not below `step`; absent numbers cost nothing.

        Args:
            step: global step to look from.
            end: give up here: no step at or above it is wanted.
            while_waiting: called before every pause; what it raises ends the wait.

        Returns:
            The step, or None if the job has ended, or has reached `end`, without one.
        """
        refreshing = self.dynamic_refresh
        self.dynamic_refresh = True
        try:
            while True:
                found = self._table.next_step(step)
                if found is not None and self._table.is_complete(found):
                    return found if end is None or found < end else None
                if self.loaded_all_steps:
                    return None
                # What is known already needs no look: a rule that is behind catches up without one.
                if not self._brings_new():
                    if while_waiting is not None:
                        while_waiting()
                    time.sleep(self.poll_interval_s)
        finally:
            self.dynamic_refresh = refreshing

    def to_frame(
        self, regex: str | Iterable[str] | None = None, *, mode: ModeKeys = ModeKeys.GLOBAL, with_values: bool = True
    ) -> "pandas.DataFrame":
        """Return a long table of the scalars and reductions of the run; see `smdebug.analysis.frames.build_frame`."""
        return build_frame(self, regex, mode=mode, with_values=with_values)

    def plot(
        self,
        tensors: str | Iterable[str],
        reduction: str | None = None,
        *,
        mode: ModeKeys = ModeKeys.GLOBAL,
        abs: bool = False,  # noqa: A002 -- the word that reduction_value has for it
        axes: "Axes | None" = None,
    ) -> "Axes":
        """Draw a scalar or a reduction over steps, a line a tensor, mode and worker; see `smdebug.analysis.plots`."""
        return plots.plot(self, tensors, reduction, mode=mode, abs=abs, axes=axes)

    def plot_histogram(
        self,
        tname: str,
        *,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        bins: int = 60,
        axes: "Axes | None" = None,
    ) -> "Axes":
        """How a tensor's values are spread, over steps; see `smdebug.analysis.plots.plot_histogram`."""
        return plots.plot_histogram(self, tname, mode=mode, worker=worker, bins=bins, axes=axes)

    # The shorter name, as `plot` is that of its picture.
    histogram = plot_histogram

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what the run holds, a line each."""
        steps = self.steps(show_incomplete_steps=True)
        span = f", {steps[0]} to {steps[-1]}" if steps else ""
        names = self.tensor_names()
        members = ((name, len(self.tensor_names(collection=name))) for name in sorted(self.collections()))
        rows = [
            ("Steps", f"{len(steps)}{span}"),
            ("Modes", ", ".join(mode.name for mode in self.modes()) or "-"),
            ("Workers", ", ".join(self.workers())),
            ("Tensors", f"{len(names)}"),
            ("Collections", ", ".join(f"{name} ({count})" for name, count in members if count) or "-"),
            ("State", "ended" if self.loaded_all_steps else "still being written, or ended without saying so"),
        ]
        cells = "".join(f"<tr><th>{escape(head)}</th><td>{escape(text)}</td></tr>" for head, text in rows)
        return f"<table><caption>{escape(name_run(self))}</caption>{cells}</table>"

    def _resolve_collection(self, collection: str | Collection) -> Collection:
        if isinstance(collection, str):
            return self.collection(collection)
        if isinstance(collection, Collection):
            return collection
        raise TypeError(f"collection must be a collection or the name of one, not {collection!r}.")

    def _list_names(self, step: int | None, mode: ModeKeys) -> list[str]:
        index, table = self.run_index, self._table
        if step is not None and mode is ModeKeys.GLOBAL:
            return list(index.names(step))
        index.read_all()
        if mode is ModeKeys.GLOBAL:
            return list(index.layouts.names)
        check_mode(mode)
        if mode not in table.modes():
            raise KeyError(f"No step of mode {mode.name} was saved so far; trial.modes() lists those that were.")
        wanted = table.steps(mode, show_incomplete=True) if step is None else [step]
        global_steps = [table.global_step(mode, each) for each in wanted]
        if step is not None and global_steps == [None]:
            raise KeyError(f"Step {step} of mode {mode.name} was not saved; see trial.steps(modes.{mode.name}).")
        return list({name: None for each in global_steps if each is not None for name in index.names(each)})

    def _brings_new(self) -> bool:
        """Look for new steps; whether there was something, the end of the job included."""
        before = self._table.last_step(ModeKeys.GLOBAL), self.last_complete_step
        self.maybe_refresh()
        after = self._table.last_step(ModeKeys.GLOBAL), self.last_complete_step
        return before != after or self.loaded_all_steps

    def _wait_for_step(self, step: int, mode: ModeKeys) -> None:
        while True:
            state = self._table.state(step, mode)
            if state is StepState.NOT_YET_AVAILABLE:
                state = self.has_passed_step(step, mode)
            if state is StepState.AVAILABLE:
                return
            if state is StepState.UNAVAILABLE:
                last = self._table.last_step(mode)
                if self.loaded_all_steps and (last is None or step >= last):
                    raise NoMoreData(step, mode, last)
                raise StepUnavailable(step, mode)
            time.sleep(self.poll_interval_s)


def _compile(regex: str) -> re.Pattern[str]:
    try:
        return re.compile(regex)
    except re.error as error:
        raise SMDebugValueError(f"{regex!r} is no regular expression: {error}.") from error
