"""UnchangedTensor: tensors that stay as they are from step to step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.parameters import boolean, integer, number
from smdebug.rules.step_values import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from smdebug.rules.step_batch import Selection

_QUANTITY = "steps in a row without a change"


def is_unchanged(
    now: NDArray[Any], before: NDArray[Any], *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether |now - before| <= atol + rtol * |before| for every element; arrays of different shapes are different."""
    if now.shape != before.shape:
        return False
    if now.size and now.dtype.kind == "f":
        # One element that differs settles it: most tensors of a healthy training end here.
        one, other = now.item(0), before.item(0)
        if abs(one - other) > 2 * (atol + rtol * abs(other)):
            return False
    return bool(np.allclose(now, before, rtol=rtol, atol=atol, equal_nan=equal_nan))


class UnchangedTensor(BuiltInRule):
    """Fires where some tensor was the same in its last num_steps steps, on any worker.

    The steps are the latest num_steps of the current step's mode at which the tensor was saved, the current one
    included; with fewer of them nothing is said yet. Same means that for every element, between the current step and
    each of the others, |now - before| <= atol + rtol * |before|, as numpy.allclose has it; NaN is the same as NaN only
    with equal_nan. Of a tensor that was saved as reductions only, a reduction that differs says that the tensor has
    changed; equal ones do not tell.

    Looked at are the tensors of collection_names together with those in whose name tensor_regex is found; one of the
    two is required.

    Source: AWS's documentation of the rule UnchangedTensor (collection_names None, tensor_regex None, num_steps 3,
    rtol 1e-05, atol 1e-08, equal_nan False).
    """

    parameters = (
        *TENSOR_CHOICE,
        integer("num_steps", 3, minimum=2),
        number("rtol", 1e-5, minimum=0.0),
        number("atol", 1e-8, minimum=0.0),
        boolean("equal_nan", default=False),
    )
    inspects: ClassVar[str] = "tensors chosen by collection_names or tensor_regex"
    needs: ClassVar[str] = "its values were not saved, and the reductions saved at those steps are equal or missing"
    frameworks: ClassVar[tuple[str, ...]] = ALL_FRAMEWORKS
    collections: ClassVar[Mapping[str, Mapping[str, str]]] = {"losses": {"save_interval": "50"}}
    example: ClassVar[Mapping[str, str]] = {"collection_names": "losses", "num_steps": "4"}

    def __init__(self, base_trial: Any, other_trials: Any = None, **given: Any) -> None:
        super().__init__(base_trial, other_trials, **given)
        self.require_choice()
        self._closeness = {name: self.values[name] for name in ("rtol", "atol", "equal_nan")}

    def invoke_at_step(self, step: int) -> bool:
        """Whether a tensor has not changed up to this global step; TensorUnavailableForStep if none can be judged."""
        names = self.chosen_names(step)
        selection = self.select(names, step)
        before = self._select_before(names, step) if selection is not None else None
        if selection is not None and before is not None and selection.is_like(before):
            return self._judge_together(selection, before, step)
        places = self.places(names, step)
        self.prefetch(places)
        return self.inspect(places, self._judge)

    def _select_before(self, names: list[str], step: int) -> Selection | None:
        count: int = self.values["num_steps"]
        steps = self.steps_before(step, count)
        return self.select(names, steps[-2]) if len(steps) == count else None

    def _judge_together(self, selection: Selection, before: Selection, step: int) -> bool:
        """Where the first elements differ enough, the tensor has changed since the step before."""
        one, other = selection.measure("first"), before.measure("first")
        rtol, atol = self.values["rtol"], self.values["atol"]
        with np.errstate(invalid="ignore"):
            changed = np.abs(one - other) > 2 * (atol + rtol * np.abs(other))
        runs = np.where(changed, 1.0, np.nan)
        self.watch_nearest(_QUANTITY, step, selection, runs, self.values["num_steps"], "at or above")
        return self.inspect_doubtful(selection, step, ~changed, self._judge)

    def _judge(self, place: Place) -> bool | None:
        count: int = self.values["num_steps"]
        steps = self.earlier_steps(place.name, place.step, count)
        if len(steps) < count:
            return False
        unknown, unchanged = False, 1
        for step in reversed(steps[:-1]):
            same = self._compare(place, step)
            if same is False:
                break
            unknown = unknown or same is None
            unchanged += 1
        self.watch_at(_QUANTITY, place, unchanged, count, "at or above")
        if unchanged < count:
            return False
        if unknown:
            return None
        text = f"it has not changed in its last {count} steps, {steps[0]} to {steps[-1]}; num_steps is {count}"
        return self.find_at(place, count, count, text)

    def _compare(self, place: Place, step: int) -> bool | None:
        """Whether the tensor is the same as at an earlier step; None if that cannot be told."""
        saved = self.saved(place.name, step).get(place.worker)
        if saved is None:
            return None
        earlier = Place(place.name, step, place.worker, saved)
        now, before = self.read(place), self.read(earlier)
        if now is not None and before is not None:
            return is_unchanged(now, before, **self._closeness)
        for name, of_absolute in set(place.saved.reductions) & set(saved.reductions):
            one, other = (self.read_reduction(each, name, of_absolute) for each in (place, earlier))
            if not np.allclose(np.array(one), np.array(other), **self._closeness):
                return False
        return None
