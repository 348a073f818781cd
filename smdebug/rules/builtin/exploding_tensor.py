"""ExplodingTensor: values that are no numbers any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from smdebug.rules.built_in_rule import TENSOR_CHOICE, BuiltInRule
from smdebug.rules.parameters import boolean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from smdebug.format.tensor_location import TensorLocation
    from smdebug.reading.step_index import SavedTensor

# Reductions that hold NaN or an infinity only if the tensor does. (A sum may overflow, and the deviation of a single
# element is NaN.)
_FAITHFUL = (("min", False), ("max", False), ("min", True), ("max", True))


def count_exploded(values: NDArray[Any], *, only_nan: bool) -> int:
    """How many elements of an array are NaN, or NaN or infinite; 0 for arrays of text, integers or truth values."""
    if values.dtype.kind not in "fc":
        return 0
    if only_nan:
        return int(np.count_nonzero(np.isnan(values)))
    return values.size - int(np.count_nonzero(np.isfinite(values)))


class ExplodingTensor(BuiltInRule):
    """Fires at a step where some tensor holds NaN, or, unless only_nan, an infinity of either sign, on any worker.

    Looked at are the tensors of collection_names together with those in whose name tensor_regex is found; all
    tensors where neither is given. Of a tensor that was saved as reductions only, its min and max are looked at.

    Source: AWS's documentation of the rule ExplodingTensor (collection_names None, tensor_regex None, only_nan False).
    """

    parameters = (*TENSOR_CHOICE, boolean("only_nan", default=False))
    collections: ClassVar[Mapping[str, Mapping[str, str]]] = {"gradients": {"save_interval": "100"}}
    example: ClassVar[Mapping[str, str]] = {"collection_names": "gradients", "only_nan": "True"}
    inspects: ClassVar[str] = "tensors with values, or with min or max"

    def invoke_at_step(self, step: int) -> bool:
        """Whether a tensor has exploded at this global step."""
        names = self.chosen_names(step)
        selection = self.select(names, step)
        if selection is not None:
            # A sum of absolute values is finite only if all of them are.
            odd = ~np.isfinite(selection.measure("abs_mean"))
            names = sorted(selection.others + [selection.names[at] for at in np.flatnonzero(odd)])
            self.inspected += len(selection.names) - int(np.count_nonzero(odd))
            self.watch_nearest(self._quantity, step, selection, np.where(odd, np.nan, 0.0), 0)
        return self._inspect(names, step)

    @property
    def _quantity(self) -> str:
        return "values that are NaN" if self.values["only_nan"] else "values that are NaN or infinite"

    def _inspect(self, names: list[str], step: int) -> bool:
        only_nan: bool = self.values["only_nan"]
        places = [
            (name, worker, location, is_reduction)
            for name in names
            for worker, saved in sorted(self.saved(name, step).items())
            for location, is_reduction in _locate(saved)
        ]
        self.prefetch_locations(location for _, _, location, _ in places)
        for name, worker, location, is_reduction in places:
            values = self.read_shared(name, location, step)
            self.inspected += 1
            exploded = count_exploded(values, only_nan=only_nan)
            what = "NaN" if only_nan else "NaN or infinite"
            self.watch(self._quantity, step, exploded, 0, tensor=name, worker=worker)
            if exploded:
                text = f"{exploded} of {values.size} values are {what}, and 0 may be"
                if is_reduction:
                    text = f"its saved reduction {location.tensorname} is {what}"
                return self.find(name, step, exploded, 0, text, worker)
        return False


def _locate(saved: SavedTensor) -> list[tuple[TensorLocation, bool]]:
    """The records that tell whether a tensor has exploded, and whether they are reductions."""
    if saved.location is not None:
        return [(saved.location, False)]
    return [(saved.reductions[key], True) for key in _FAITHFUL if key in saved.reductions]
