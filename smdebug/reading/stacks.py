"""Many small tensors of a step as one: read with one call, to be measured with one call of numpy.

A training saves hundreds of tensors of some kilobytes. Looked at one by one, each costs more in calls than in numbers.
Here those of one dtype and size become the rows of a matrix.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from smdebug.format.tfevent.framing import FOOTER_BYTES, HEADER_BYTES
from smdebug.reading.record_form import RecordForm
from smdebug.reading.step_index import Layout

# A layout, names of tensors, and reductions: tensors of which one of these was saved are left out.
StackKey = tuple[Layout, tuple[str, ...], tuple[tuple[str, bool], ...]]
# What was measured of the rows of a matrix, by the measure's name.
Measures = dict[str, "NDArray[np.float64]"]

# A tensor above this gains nothing, and a step above this would take too much of a rule container's memory.
_LARGEST_TENSOR = 256 * 1024
_LARGEST_STACK = 4 * 1024 * 1024
# Where so little of what lies between the records is wanted, they are better read one by one.
_WORTH = 2


class _Row(NamedTuple):
    """Where a record lies, from the stack's first byte, what announces its values, and where these go."""

    payload: slice
    announced: slice
    announcement: bytes
    values: slice
    number: int
    group: int
    place: slice


class StackPlan:
    """How the stacks of all steps of one layout are read.

    Args:
        layout: what the steps hold.
        names: the tensors.
        unless: tensors of which one of these reductions was saved are left out.
        forms: how the tensors' records are built; None for those that must be decoded field by field.

    Attributes:
        names: the tensors in the matrices, group by group.
        others: those that were asked for and are in none.
        bytes: size of the matrices.
        first, last: the bytes of the event file that are read.
        groups: (dtype, elements, rows) of each matrix.
        rows: where each record lies and goes.
        found: group, row and shape by the begin of a record in its event file.
    """

    def __init__(
        self,
        layout: Layout,
        names: Sequence[str],
        unless: Sequence[tuple[str, bool]],
        forms: Mapping[str, RecordForm | None],
    ) -> None:
        self._asked = frozenset(names)
        self._choices: dict[StackKey, RowChoice] = {}
        by_kind: dict[tuple[np.dtype[Any], int], list[str]] = {}
        self.others: list[str] = []
        for name in names:
            form = forms.get(name)
            if form is None or not _fits(layout, name, form, unless):
                self.others.append(name)
            else:
                by_kind.setdefault((form.dtype, form.elements), []).append(name)
        self.names = [name for stacked in by_kind.values() for name in stacked]
        self.groups = [(dtype, elements, len(stacked)) for (dtype, elements), stacked in by_kind.items()]
        self.bytes = sum(dtype.itemsize * elements * rows for dtype, elements, rows in self.groups)
        places = [layout.records[layout.values[name]] for name in self.names]
        self.first = min((start for _, start, _, _ in places), default=0)
        self.last = max((start + length for _, start, length, _ in places), default=0)
        self.found: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        self.rows: list[_Row] = []
        for group, stacked in enumerate(by_kind.values()):
            for row, name in enumerate(stacked):
                form = forms[name]
                assert form is not None
                self._add(layout, layout.values[name], form, group, row)

    def covers(self, names: Sequence[str]) -> bool:
        """Whether all these tensors were asked for when it was made."""
        return self._asked.issuperset(names)

    def is_worth_it(self) -> bool:
        """Whether reading these together gains anything, and takes no more memory than it may."""
        return len(self.names) > 1 and self.bytes <= _LARGEST_STACK and self.last - self.first <= _WORTH * self.bytes

    def choose_rows(self, key: StackKey) -> "RowChoice":
        """Which rows some tensors are; the same object for the same tensors."""
        found = self._choices.get(key)
        if found is None:
            found = self._choices[key] = RowChoice(self, key)
        return found

    def _add(self, layout: Layout, number: int, form: RecordForm, group: int, row: int) -> None:
        _, start, length, _ = layout.records[number]
        begin = start - self.first
        payload = slice(begin + HEADER_BYTES, begin + length - FOOTER_BYTES)
        announced = slice(begin + form.tensor_start, begin + form.content_start)
        values = slice(announced.stop, announced.stop + form.size)
        place = slice(row * form.size, (row + 1) * form.size)
        self.rows.append(_Row(payload, announced, form.tensor, values, number, group, place))
        self.found[start] = group, row, form.shape


def _fits(layout: Layout, name: str, form: RecordForm, unless: Sequence[tuple[str, bool]]) -> bool:
    *_, true_dtype = layout.records[layout.values[name]]
    reductions = layout.reductions.get(name, ())
    return (
        true_dtype is None
        and form.dtype.name in ("float32", "float64")
        and 0 < form.size <= _LARGEST_TENSOR
        and not any(key in reductions for key in unless)
    )


class Stack:
    """The small tensors of one step, as matrices with a row for each.

    Attributes:
        plan: which tensors.
        worker: who saved them.
        matrices: one a group, not to be written to.
        nbytes: their size.
    """

    def __init__(self, plan: StackPlan, worker: str, matrices: list[NDArray[Any]]) -> None:
        self.plan = plan
        self.worker = worker
        self.matrices = matrices
        self.nbytes = plan.bytes
        self._measured: dict[str, list[NDArray[np.float64]]] = {}

    def find(self, start: int) -> NDArray[Any] | None:
        """Return the values of the record that begins at a byte of the event file, if they are here."""
        place = self.plan.found.get(start)
        if place is None:
            return None
        group, row, shape = place
        values: NDArray[Any] = self.matrices[group][row].reshape(shape)
        return values

    def measure(self, name: str, compute: Callable[[NDArray[Any]], Measures]) -> list[NDArray[np.float64]]:
        """Return a measure of every row, group by group; computed once, with all measures that come with it."""
        found = self._measured.get(name)
        if found is None:
            with np.errstate(all="ignore"):
                every = [compute(matrix) for matrix in self.matrices]
            self._measured |= {each: [measures[each] for measures in every] for each in every[0]}
            found = self._measured[name]
        return found


class StackRows:
    """Those tensors of a stack that somebody looks at.

    Attributes:
        stack: the stack.
        names: of the tensors, in the order of all arrays here.
        others: the tensors that have to be looked at by themselves.
    """

    def __init__(self, stack: Stack, choice: "RowChoice") -> None:
        self.stack = stack
        self.choice = choice
        self.names = choice.names
        self.others = choice.others

    def measure(self, name: str, compute: Callable[[NDArray[Any]], Measures]) -> NDArray[np.float64]:
        """Return a measure, one value a tensor; see `Stack.measure`."""
        measured = self.stack.measure(name, compute)
        return np.concatenate([measured[group][rows] for group, rows in self.choice.rows])

    def pair(self, other: "StackRows") -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return the matrices of both, which hold the same tensors."""
        return [(self.stack.matrices[at][rows], other.stack.matrices[at][rows]) for at, rows in self.choice.rows]

    def is_like(self, other: "StackRows") -> bool:
        """Whether the rows of both are the same tensors."""
        return self.stack.plan is other.stack.plan and self.choice is other.choice


class RowChoice:
    """Which rows of which matrices some tensors are; the same for all stacks of one plan."""

    def __init__(self, plan: StackPlan, key: StackKey) -> None:
        layout, names, unless = key
        wanted = {name for name in names if not any(each in layout.reductions.get(name, ()) for each in unless)}
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


def build_stack(plan: StackPlan, worker: str, span: memoryview, checksums: Sequence[int | None]) -> Stack | None:
    """Make the stack of a step; None where a record is not what it should be.

    Args:
        plan: which tensors.
        worker: who saved them.
        span: the bytes of the event file from the plan's first to its last.
        checksums: the CRC-32C of each record of the layout.
    """
    matrices = [np.empty((rows, elements), dtype) for dtype, elements, rows in plan.groups]
    targets = [matrix.data.cast("B") for matrix in matrices]
    for payload, announced, announcement, values, number, group, place in plan.rows:
        if span[announced] != announcement or crc32c(span[payload]) != checksums[number]:
            return None
        targets[group][place] = span[values]
    for matrix in matrices:
        matrix.flags.writeable = False
    return Stack(plan, worker, matrices)
