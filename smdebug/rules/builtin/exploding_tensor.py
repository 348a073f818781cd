"""ExplodingTensor: tensors with NaN or infinite values."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.format.tensor_location import TensorLocation
from smdebug.reading.step_index import SavedTensor
from smdebug.rules.built_in_rule import TENSOR_CHOICE, BuiltInRule
from smdebug.rules.measuring.row_measures import measure
from smdebug.rules.parameters import boolean
from smdebug.rules.watched_quantity import Limit
from smdebug.rules.wording import count_noun
from smdebug.trials.step_tensors import WorkerTensor

# Reductions that hold NaN or an infinity only if the tensor does. (A sum may overflow, and the deviation of a single
# element is NaN.)
_FAITHFUL = (("min", False), ("max", False), ("min", True), ("max", True))


def count_exploded(values: NDArray[Any], *, only_nan: bool) -> int:
    """How many elements of an array are NaN, or NaN or infinite; 0 for arrays of text, integers or truth values.

    >>> values = np.array([1.0, np.nan, np.inf])
    >>> count_exploded(values, only_nan=True), count_exploded(values, only_nan=False)
    (1, 2)
    """
    if values.dtype.kind not in "fc":
        return 0
    if only_nan:
        return int(np.count_nonzero(np.isnan(values)))
    return values.size - int(np.count_nonzero(np.isfinite(values)))


class ExplodingTensor(BuiltInRule):
    """Fires at a step where a tensor contains NaN or an infinity, on any worker; with only_nan, only for NaN.

    The rule inspects the tensors of collection_names, and those whose names match tensor_regex; all tensors if neither
    is given. If only reductions of a tensor were saved, it inspects its min and max.

    Source: AWS's documentation of the rule ExplodingTensor (collection_names None, tensor_regex None, only_nan False).
    """

    parameters = (*TENSOR_CHOICE, boolean("only_nan", default=False))
    collections: ClassVar = {"gradients": {"save_interval": "100"}}
    example: ClassVar = {"collection_names": "gradients", "only_nan": "True"}
    inspects = "tensors with values, or with min or max"
    advice = (
        "Lower the learning rate, and clip gradients (clip_grad_norm_, clipnorm).",
        "Look for log(0), a division by 0 or a square root of 0 in the loss, and for NaN in the inputs.",
        "With half precision, use a gradient scaler or bfloat16. For masks with -inf, set only_nan to True.",
    )

    def _prepare(self) -> None:
        what = "NaN" if self.values["only_nan"] else "NaN or infinite"
        self._limit = Limit(f"values that are {what}", 0)

    def invoke_at_step(self, step: int) -> bool:
        """Whether a tensor has exploded at this global step."""
        names = self.chosen_names(step)
        rows = self.tensors.stack(names, step)
        if rows is not None:
            # A sum of absolute values is finite only if all of them are.
            odd = ~np.isfinite(measure(rows, "abs_mean"))
            names = sorted(rows.others + [rows.names[at] for at in np.flatnonzero(odd)])
            self.inspected += len(rows.names) - int(np.count_nonzero(odd))
            self.watch_nearest(self._limit, step, rows, np.where(odd, np.nan, 0.0))
        records = [
            (place, location, is_reduction)
            for place in self.tensors.saved(names, step)
            for location, is_reduction in _locate(place.saved)
        ]
        self.base_trial.reader.prefetch(location for _, location, _ in records)
        return any(self._judge(*record) for record in records)

    def _judge(self, place: WorkerTensor, location: TensorLocation, is_reduction: bool) -> bool:
        values = self.tensors.read_record(place, location)
        self.inspected += 1
        exploded = count_exploded(values, only_nan=self.values["only_nan"])

        def describe(_: Limit) -> str:
            what = "NaN" if self.values["only_nan"] else "NaN or infinite"
            if is_reduction:
                return f"its saved reduction {location.tensorname} is {what}"
            are = "is" if exploded == 1 else "are"
            return f"{exploded} of its {count_noun(values.size, 'value')} {are} {what}; the rule allows none"

        return self.weigh(place, exploded, [self._limit], describe)


def _locate(saved: SavedTensor) -> list[tuple[TensorLocation, bool]]:
    """Return the records that tell whether a tensor has exploded, and whether they are reductions."""
    if saved.location is not None:
        return [(saved.location, False)]
    return [(saved.reductions[key], True) for key in _FAITHFUL if key in saved.reductions]
