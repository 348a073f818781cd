"""Many small tensors of a step as one: read with one call, measured with one call of numpy.

A training saves hundreds of tensors of some kilobytes. Measured one by one, each costs more in calls than in numbers.
Here those of one dtype and size become the rows of a matrix, and what rules ask of a tensor (its mean absolute value,
its zeros, its variance) is computed for all rows at once, once for all rules.

Sums are made in the tensor's own precision, so that what comes out is exact to a thousandth at least. A rule takes it
to see which tensors are far from firing, and looks at the others by themselves, in the precision that it promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from crc32c import crc32c

from smdebug.format.tfevent import FOOTER_BYTES, HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from smdebug.reading.step_index import Layout, StepIndex
    from smdebug.rules.record_reader import RecordReader

# A tensor above this gains nothing, and a step above this would take too much of a rule container's memory.
_LARGEST_TENSOR = 256 * 1024
_LARGEST_BATCH = 4 * 1024 * 1024
# Where so little of what lies between the records is wanted, they are better read one by one.
_WORTH = 2
# A variance is that of the centred values where the mean's square is more than this part of the squares' mean.
_CENTRED_BELOW = 0.5


class _Row(NamedTuple):
    """Where a record lies, from the batch's first byte, what announces its values, and where these go."""

    payload: slice
    announced: slice
    announcement: bytes
    values: slice
    number: int
    group: int
    place: slice


class BatchPlan:
    """How the batches of all steps of one layout are read.

    Attributes:
        names: the tensors in the matrices, group by group.
        others: those that were asked for and are in none.
        first, last: the bytes of the event file that are read.
        groups: (dtype, elements, rows) of each matrix.
        found: group, row and shape by the begin of a record in its event file.
        parts: what rules select of it, once asked for.
    """

    def __init__(self, layout: Layout, names: Sequence[str], unless: Sequence[tuple[str, bool]], known: Known) -> None:
        self._asked = frozenset(names)
        by_kind: dict[tuple[np.dtype[Any], int], list[str]] = {}
        self.others: list[str] = []
        for name in names:
            number = layout.values.get(name)
            reductions = layout.reductions.get(name, ())
            form = None if number is None or any(key in reductions for key in unless) else known[name]
            if form is None or form.dtype.name not in ("float32", "float64") or form.size > _LARGEST_TENSOR:
                self.others.append(name)
            else:
                by_kind.setdefault((form.dtype, form.elements), []).append(name)
        self.names = [name for stacked in by_kind.values() for name in stacked]
        self.groups = [(dtype, elements, len(stacked)) for (dtype, elements), stacked in by_kind.items()]
        self.bytes = sum(dtype.itemsize * elements * rows for dtype, elements, rows in self.groups)
        places = [layout.records[layout.values[name]] for name in self.names]
        self.first = min((start for _, start, _, _ in places), default=0)
        self.last = max((start + length for _, start, length, _ in places), default=0)
        self.parts: dict[tuple[Any, ...], SelectionParts] = {}
        self.found: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        self.rows: list[_Row] = []
        for group, stacked in enumerate(by_kind.values()):
            for row, name in enumerate(stacked):
                self._add(layout, name, group, row, known[name])

    def covers(self, names: Sequence[str]) -> bool:
        """Whether all these tensors were asked for when it was made."""
        return self._asked.issuperset(names)

    def is_worth_it(self) -> bool:
        """Whether reading these together gains anything, and takes no more memory than it may."""
        return len(self.names) > 1 and self.bytes <= _LARGEST_BATCH and self.last - self.first <= _WORTH * self.bytes

    def _add(self, layout: Layout, name: str, group: int, row: int, form: Any) -> None:
        number = layout.values[name]
        _, start, length, _ = layout.records[number]
        begin = start - self.first
        end = begin + length - FOOTER_BYTES
        announced = slice(end - form.size - len(form.announcement), end - form.size)
        place = slice(row * form.size, (row + 1) * form.size)
        payload = slice(begin + HEADER_BYTES, end)
        self.rows.append(_Row(payload, announced, form.announcement, slice(end - form.size, end), number, group, place))
        self.found[start] = group, row, form.shape


class Batch:
    """The small tensors of one step, as matrices with a row for each.

    Attributes:
        plan: which tensors.
        worker: who saved them.
        index: what was saved.
        matrices: one a group, not to be written to.
    """

    def __init__(self, plan: BatchPlan, worker: str, index: StepIndex, matrices: list[NDArray[Any]]) -> None:
        self.plan = plan
        self.worker = worker
        self.index = index
        self.matrices = matrices
        self._measured: dict[str, list[NDArray[np.float64]]] = {}

    def find(self, event_file_name: str, start: int) -> NDArray[Any] | None:
        """The values of a record, if they are here."""
        place = self.plan.found.get(start)
        if place is None or event_file_name != self.index.event_file_name:
            return None
        group, row, shape = place
        values: NDArray[Any] = self.matrices[group][row].reshape(shape)
        return values

    def measure(self, name: str) -> list[NDArray[np.float64]]:
        """One of MEASURES for every row, group by group."""
        found = self._measured.get(name)
        if found is None:
            with np.errstate(all="ignore"):
                every = [MEASURES[name](matrix) for matrix in self.matrices]
            self._measured |= {each: [measures[each] for measures in every] for each in every[0]}
            found = self._measured[name]
        return found


class Selection:
    """The tensors of a batch that one rule looks at.

    Attributes:
        batch: the batch.
        names: of the tensors, in the order of all arrays here.
        others: the tensors that the rule has to look at by themselves.
    """

    def __init__(self, batch: Batch, parts: SelectionParts) -> None:
        self.batch = batch
        self._parts = parts
        self.names = parts.names
        self.others = parts.others

    def measure(self, name: str) -> NDArray[np.float64]:
        """One of MEASURES, one value a tensor."""
        measured = self.batch.measure(name)
        return np.concatenate([measured[group][rows] for group, rows in self._parts.rows])

    def measure_change(self, before: Selection) -> NDArray[np.float64]:
        """mean(|now - before|) of each tensor."""
        found = []
        with np.errstate(all="ignore"):
            for group, rows in self._parts.rows:
                change = self.batch.matrices[group][rows] - before.batch.matrices[group][rows]
                np.abs(change, out=change)
                found.append(_sum(change) / change.shape[1])
        return np.concatenate(found)

    def is_like(self, other: Selection) -> bool:
        """Whether the rows of both are the same tensors."""
        return self.batch.plan is other.batch.plan and self._parts is other._parts


class SelectionParts:
    """Which rows of which matrices some tensors are; the same for all batches of one plan."""

    def __init__(
        self, plan: BatchPlan, names: Sequence[str], layout: Layout, unless: Sequence[tuple[str, bool]]
    ) -> None:
        wanted = {name for name in names if not any(key in layout.reductions.get(name, ()) for key in unless)}
        alone = set(plan.others)
        self.others = [name for name in names if name not in wanted or name in alone]
        self.names: list[str] = []
        self.rows: list[tuple[int, slice | NDArray[np.intp]]] = []
        start = 0
        for group, (_, _, count) in enumerate(plan.groups):
            stacked = plan.names[start : start + count]
            start += count
            rows = [row for row, name in enumerate(stacked) if name in wanted]
            if rows:
                self.names += [stacked[row] for row in rows]
                together = rows[-1] - rows[0] + 1 == len(rows)
                self.rows.append((group, slice(rows[0], rows[-1] + 1) if together else np.array(rows, dtype=np.intp)))


# What was measured of the rows of a matrix, by name.
Measures = dict[str, "NDArray[np.float64]"]
# What is known of the records' layout, by tensor: see `smdebug.rules.record_reader`.
Known = dict[str, Any]


def read_batch(plan: BatchPlan, worker: str, index: StepIndex, reader: RecordReader) -> Batch | None:
    """Reads the batch of a step; None where a record is not what it should be, or is not there (yet)."""
    block = reader.read_span(index.event_file_name, plan.first, plan.last)
    checksums = index.checksums
    if block is None or checksums is None:
        return None
    matrices = [np.empty((rows, elements), dtype) for dtype, elements, rows in plan.groups]
    targets = [matrix.data.cast("B") for matrix in matrices]
    for payload, announced, announcement, values, number, group, place in plan.rows:
        if block[announced] != announcement or crc32c(block[payload]) != checksums[number]:
            return None
        targets[group][place] = block[values]
    for matrix in matrices:
        matrix.flags.writeable = False
    return Batch(plan, worker, index, matrices)


def _sum(matrix: NDArray[Any]) -> NDArray[np.float64]:
    # Three times as quick as add.reduce, and without the threads of a BLAS.
    sums: NDArray[np.float64] = np.einsum("ij->i", matrix).astype(np.float64)
    return sums


def _measure_abs(matrix: NDArray[Any]) -> Measures:
    """mean(|x|), infinite or NaN where some element is, and how many elements are 0, exact."""
    absolute = np.abs(matrix)
    elements = matrix.shape[1]
    zeros = np.zeros(len(matrix))
    # Most tensors have no zero at all, which their smallest absolute value tells; NaN compares as neither.
    for row in np.flatnonzero(~(np.minimum.reduce(absolute, axis=1) > 0)):
        zeros[row] = elements - np.count_nonzero(matrix[row])
    return {"abs_mean": _sum(absolute) / elements, "zeros": zeros}


def _measure_variance(matrix: NDArray[Any]) -> Measures:
    """mean((x - mean(x))^2)."""
    elements = matrix.shape[1]
    means = _sum(matrix) / elements
    squares = np.einsum("ij,ij->i", matrix, matrix).astype(np.float64) / elements
    variances = squares - means * means
    # What is left where the mean is large is inexact: these are centred first, and the mean's rounding is taken out.
    far = np.flatnonzero(~(means * means <= _CENTRED_BELOW * squares))
    if far.size:
        centred = matrix[far] - means[far, None].astype(matrix.dtype)
        left = _sum(centred) / elements
        variances[far] = np.einsum("ij,ij->i", centred, centred).astype(np.float64) / elements - left * left
    return {"variance": variances}


def _measure_shape(matrix: NDArray[Any]) -> Measures:
    """The first element, and how many there are."""
    return {"first": matrix[:, 0].astype(np.float64), "size": np.full(len(matrix), float(matrix.shape[1]))}


MEASURES: dict[str, Callable[[NDArray[Any]], Measures]] = {
    "abs_mean": _measure_abs,
    "zeros": _measure_abs,
    "variance": _measure_variance,
    "first": _measure_shape,
    "size": _measure_shape,
}
