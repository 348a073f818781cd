"""UnchangedTensor: tensors that do not change between steps."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.reading.stacks import StackRows
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.measuring.row_measures import measure
from smdebug.rules.parameters import boolean, integer, number
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor


def is_unchanged(
    now: NDArray[Any], before: NDArray[Any], *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether |now - before| <= atol + rtol * |before| for every element; arrays of different shapes are different.

    >>> is_unchanged(np.array([1.0, 2.0]), np.array([1.0, 2.0])), is_unchanged(np.array([1.0]), np.array([1.1]))
    (True, False)
    """
    if now.shape != before.shape:
        return False
    if now.size and now.dtype.kind == "f" and differs_surely(now.item(0), before.item(0), rtol, atol):
        # One element that differs settles it: most tensors of a healthy training end here.
        return False
    return bool(np.allclose(now, before, rtol=rtol, atol=atol, equal_nan=equal_nan))


def differs_surely(now: Any, before: Any, rtol: float, atol: float) -> Any:
    """Whether a number, or each of many, differs by twice what would be no change; NaN does not.

    >>> differs_surely(1.1, 1.0, 1e-5, 1e-8), bool(differs_surely(np.float64("nan"), 1.0, 1e-5, 1e-8))
    (True, False)
    """
    return abs(now - before) > 2 * (atol + rtol * abs(before))


class UnchangedTensor(BuiltInRule):
    """Fires where a tensor was the same at its last num_steps steps, on any worker.

    These are the latest num_steps steps of the current step's mode at which the tensor was saved, including the current
    one; with fewer steps, the rule does not judge the tensor yet. The current step is compared with each of the others:
    the tensor is the same if |now - before| <= atol + rtol * |before| for every element, as in numpy.allclose. NaN
    equals NaN only with equal_nan. If only reductions of a tensor were saved, a reduction that differs shows that the
    tensor has changed; equal reductions show nothing.

    The rule inspects the tensors of collection_names, and those whose names match tensor_regex; one of the two is
    required.

    Source: AWS's documentation of the rule UnchangedTensor (collection_names None, tensor_regex None, num_steps 3, rtol
    1e-05, atol 1e-08, equal_nan False).
    """

    parameters = (
        *TENSOR_CHOICE,
        integer("num_steps", 3, minimum=2),
        number("rtol", 1e-5, minimum=0.0),
        number("atol", 1e-8, minimum=0.0),
        boolean("equal_nan", default=False),
    )
    inspects = "tensors chosen by collection_names or tensor_regex"
    needs = "its values were not saved, and the reductions saved at those steps are equal or missing"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {"losses": {"save_interval": "50"}}
    example: ClassVar = {"collection_names": "losses", "num_steps": "4"}
    advice = (
        "Weights: check requires_grad or trainable, that the optimizer has them, and that step() is called.",
        "Losses and inputs: check that the data loader advances, and that no result of an earlier step is reused.",
        "Frozen layers do not change: exclude them with tensor_regex. If updates are tiny, lower rtol and atol.",
    )

    def _prepare(self) -> None:
        self.require_choice()
        self._limit = Limit("steps in a row without a change", self.values["num_steps"], "at or above")
        self._closeness = {name: self.values[name] for name in ("rtol", "atol", "equal_nan")}

    def invoke_at_step(self, step: int) -> bool:
        """Whether a tensor has not changed up to this global step; TensorUnavailableForStep if none can be judged."""
        names = self.chosen_names(step)
        rows = self.tensors.stack(names, step)
        before = self._stack_before(names, step) if rows is not None else None
        if rows is None or before is None or not rows.is_like(before):
            return self.inspect(self.tensors.saved(names, step), self._judge)
        # Where the first elements differ enough, the tensor has changed since the step before.
        with np.errstate(invalid="ignore"):
            one, other = measure(rows, "first"), measure(before, "first")
            changed = differs_surely(one, other, self.values["rtol"], self.values["atol"])
        self.watch_nearest(self._limit, step, rows, np.where(changed, 1.0, np.nan))
        return self.inspect_doubtful(rows, step, ~changed, self._judge)

    def shortage(self) -> str:
        """Say that no tensor was saved at enough steps."""
        if self.watched_quantities:
            return ""
        return (
            f"no tensor was saved at num_steps ({self.values['num_steps']}) steps of one mode. Save them more often, "
            "train for longer, or lower num_steps."
        )

    def _stack_before(self, names: list[str], step: int) -> StackRows | None:
        count: int = self.values["num_steps"]
        steps = self.tensors.steps_before(step, count)
        return self.tensors.stack(names, steps[-2]) if len(steps) == count else None

    def _judge(self, place: WorkerTensor) -> bool | None:
        count: int = self.values["num_steps"]
        steps = self.tensors.steps_of(place.name, place.step, count)
        if len(steps) < count:
            return False
        unknown, unchanged = False, 1
        for step in reversed(steps[:-1]):
            same = self._compare(place, step)
            if same is False:
                break
            unknown = unknown or same is None
            unchanged += 1
        if unchanged >= count and unknown:
            self.watch_limit(self._limit, place.step, unchanged, place.name, place.worker)
            return None
        return self.weigh(
            place,
            unchanged,
            [self._limit],
            lambda _: f"it was the same in its last {count} steps, {steps[0]} to {steps[-1]}; num_steps is {count}",
        )

    def _compare(self, place: WorkerTensor, step: int) -> bool | None:
        """Whether the tensor is the same as at an earlier step; None if that cannot be told."""
        saved = self.base_trial.tensor(place.name).saved(step).get(place.worker)
        if saved is None:
            return None
        earlier = WorkerTensor(place.name, step, place.worker, saved)
        now, before = self.tensors.read(place), self.tensors.read(earlier)
        if now is not None and before is not None:
            return is_unchanged(now, before, **self._closeness)
        for name, of_absolute in set(place.saved.reductions) & set(saved.reductions):
            one, other = (self.tensors.read_reduction(each, name, of_absolute) for each in (place, earlier))
            if not np.allclose(np.array(one), np.array(other), **self._closeness):
                return False
        return None
