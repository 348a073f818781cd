"""Small tensors of a step as matrices, read and measured together.

A training saves hundreds of tensors of a few kilobytes. Read one by one, each costs more in function calls than in
arithmetic. Here those of the same dtype and size become the rows of one matrix.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from smdebug.format.tensor_location import TensorLocation
from smdebug.format.tfevent.framing import FOOTER_BYTES, HEADER_BYTES
from smdebug.reading.byte_cache import ByteCache
from smdebug.reading.event_cache import EventCache
from smdebug.reading.records.decoder import RecordDecoder
from smdebug.reading.records.template import RecordTemplate
from smdebug.reading.step_index import Layout, StepIndex

# A layout, names of tensors, and reductions: tensors with one of these reductions are excluded.
StackKey = tuple[Layout, tuple[str, ...], tuple[tuple[str, bool], ...]]
# Measurements of the rows of a matrix, by name.
Measures = dict[str, "NDArray[np.float64]"]

# Larger tensors gain nothing, and larger steps would take too much of the memory of a rule container.
_LARGEST_TENSOR = 256 * 1024
_LARGEST_STACK = 4 * 1024 * 1024
# The range that is read may be larger than the wanted values by at most this factor.
_MOST_OVERHEAD = 2
# Rules use a few sets of tensors, and the steps of a run have a few layouts.
_MOST_PLANS = 256


class _Row(NamedTuple):
    """One record of a stack.

    Attributes:
        payload: the bytes that the checksum covers, from the first byte of the range that is read; so are the next two.
        header: the bytes before the values: type, shape and size.
        expected_header: what these must be.
        values: the bytes of the values.
        number: position of the record in its layout.
        matrix: position of the matrix.
        target: the bytes of the matrix that the values go to.
    """

    payload: slice
    header: slice
    expected_header: bytes
    values: slice
    number: int
    matrix: int
    target: slice


class StackPlan:
    """The plan by which the stacks of all steps of one layout are read.

    Args:
        layout: the layout.
        names: the tensors.
        unless: tensors with one of these reductions are excluded.
        templates: the templates of the tensors' records; None for those that must be decoded field by field.

    Attributes:
        names: the tensors in the matrices, matrix by matrix.
        others: the excluded tensors.
        bytes: size of the matrices.
        first, last: the range of the event file that is read.
        matrices: (dtype, elements, rows) of each matrix.
        rows: the records.
        found: matrix, row and shape of each record, by its offset in the event file.
    """

    def __init__(
        self,
        layout: Layout,
        names: Sequence[str],
        unless: Sequence[tuple[str, bool]],
        templates: Mapping[str, RecordTemplate | None],
    ) -> None:
        self._asked = frozenset(names)
        self._choices: dict[StackKey, RowChoice] = {}
        by_kind: dict[tuple[np.dtype[Any], int], list[str]] = {}
        self.others: list[str] = []
        for name in names:
            template = templates.get(name)
            if template is None or not _fits(layout, name, template, unless):
                self.others.append(name)
            else:
                by_kind.setdefault((template.dtype, template.elements), []).append(name)
        self.names = [name for stacked in by_kind.values() for name in stacked]
        self.matrices = [(dtype, elements, len(stacked)) for (dtype, elements), stacked in by_kind.items()]
        self.bytes = sum(dtype.itemsize * elements * rows for dtype, elements, rows in self.matrices)
        records = [layout.records[layout.values[name]] for name in self.names]
        self.first = min((start for _, start, _, _ in records), default=0)
        self.last = max((start + length for _, start, length, _ in records), default=0)
        self.found: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        self.rows: list[_Row] = []
        for matrix, stacked in enumerate(by_kind.values()):
            for row, name in enumerate(stacked):
                template = templates[name]
                assert template is not None
                self._add(layout, layout.values[name], template, matrix, row)

    def covers(self, names: Sequence[str]) -> bool:
        """Return whether the plan was made for all of these tensors."""
        return self._asked.issuperset(names)

    def is_worth_it(self) -> bool:
        """Return whether reading these tensors together is faster and within the memory limit."""
        return (
            len(self.names) > 1
            and self.bytes <= _LARGEST_STACK
            and self.last - self.first <= _MOST_OVERHEAD * self.bytes
        )

    def choose_rows(self, key: StackKey) -> "RowChoice":
        """Return the rows of some tensors; the same object for the same key."""
        found = self._choices.get(key)
        if found is None:
            found = self._choices[key] = RowChoice(self, key)
        return found

    def _add(self, layout: Layout, number: int, template: RecordTemplate, matrix: int, row: int) -> None:
        _, start, length, _ = layout.records[number]
        begin = start - self.first
        payload = slice(begin + HEADER_BYTES, begin + length - FOOTER_BYTES)
        header = slice(begin + template.tensor_start, begin + template.content_start)
        values = slice(header.stop, header.stop + template.size)
        target = slice(row * template.size, (row + 1) * template.size)
        self.rows.append(_Row(payload, header, template.tensor, values, number, matrix, target))
        self.found[start] = matrix, row, template.shape


def _fits(layout: Layout, name: str, template: RecordTemplate, unless: Sequence[tuple[str, bool]]) -> bool:
    *_, true_dtype = layout.records[layout.values[name]]
    reductions = layout.reductions.get(name, ())
    return (
        true_dtype is None
        and template.dtype.name in ("float32", "float64")
        and 0 < template.size <= _LARGEST_TENSOR
        and not any(key in reductions for key in unless)
    )


class Stack:
    """The small tensors of one step, one row each.

    Attributes:
        plan: the plan by which it was read.
        worker: the worker that saved the tensors.
        matrices: the read-only matrices.
    """

    def __init__(self, plan: StackPlan, worker: str, matrices: list[NDArray[Any]]) -> None:
        self.plan = plan
        self.worker = worker
        self.matrices = matrices
        self._measured: dict[str, list[NDArray[np.float64]]] = {}

    def find(self, start: int) -> NDArray[Any] | None:
        """Return the values of the record at an offset of the event file; None if it is not in the stack."""
        found = self.plan.found.get(start)
        if found is None:
            return None
        matrix, row, shape = found
        values: NDArray[Any] = self.matrices[matrix][row].reshape(shape)
        return values

    def measure(self, name: str, compute: Callable[[NDArray[Any]], Measures]) -> list[NDArray[np.float64]]:
        """Return a measurement of every row, matrix by matrix. All that `compute` returns is computed once and kept."""
        found = self._measured.get(name)
        if found is None:
            with np.errstate(all="ignore"):
                every = [compute(matrix) for matrix in self.matrices]
            self._measured |= {each: [measures[each] for measures in every] for each in every[0]}
            found = self._measured[name]
        return found


class StackRows:
    """A selection of the tensors of a stack.

    Attributes:
        stack: the stack.
        names: the selected tensors, in the order of all returned arrays.
        others: the tensors that have to be read one by one.
    """

    def __init__(self, stack: Stack, choice: "RowChoice") -> None:
        self.stack = stack
        self.choice = choice
        self.names = choice.names
        self.others = choice.others

    def measure(self, name: str, compute: Callable[[NDArray[Any]], Measures]) -> NDArray[np.float64]:
        """Return a measurement, one value per tensor; see `Stack.measure`."""
        measured = self.stack.measure(name, compute)
        return np.concatenate([measured[matrix][rows] for matrix, rows in self.choice.rows])

    def pair(self, other: "StackRows") -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return pairs of matrices with the same tensors, for two selections for which `is_like` is true."""
        return [(self.stack.matrices[at][rows], other.stack.matrices[at][rows]) for at, rows in self.choice.rows]

    def is_like(self, other: "StackRows") -> bool:
        """Return whether both have the same tensors in the same rows."""
        return self.stack.plan is other.stack.plan and self.choice is other.choice


class RowChoice:
    """The rows of some tensors, valid for all stacks of one plan."""

    def __init__(self, plan: StackPlan, key: StackKey) -> None:
        layout, names, unless = key
        wanted = {name for name in names if not any(each in layout.reductions.get(name, ()) for each in unless)}
        alone = set(plan.others)
        self.others = [name for name in names if name not in wanted or name in alone]
        self.names: list[str] = []
        self.rows: list[tuple[int, slice | NDArray[np.intp]]] = []
        start = 0
        for matrix, (_, _, count) in enumerate(plan.matrices):
            stacked = plan.names[start : start + count]
            start += count
            rows = [row for row, name in enumerate(stacked) if name in wanted]
            if rows:
                self.names += [stacked[row] for row in rows]
                together = rows[-1] - rows[0] + 1 == len(rows)
                self.rows.append((matrix, slice(rows[0], rows[-1] + 1) if together else np.array(rows, dtype=np.intp)))


class StackReader:
    """Reads the small tensors of a step with one call.

    Args:
        events: reads parts of event files.
        cache: keeps the stacks.
        decoder: knows the templates of the records that were decoded so far.
    """

    def __init__(self, events: EventCache, cache: ByteCache, decoder: RecordDecoder) -> None:
        self._events = events
        self._cache = cache
        self._decoder = decoder
        self._plans: dict[StackKey, StackPlan | None] = {}

    def find(self, location: TensorLocation) -> NDArray[Any] | None:
        """Return the read-only value of a record that is in a stack; None if it is in none."""
        stacks: Sequence[Stack] = self._cache.get(location[1]) or ()
        return next((found for stack in stacks if (found := stack.find(location[2])) is not None), None)

    def stack(
        self, names: Sequence[str], worker: str, index: StepIndex, unless: tuple[tuple[str, bool], ...]
    ) -> StackRows | None:
        """Return the small ones of some tensors; None if that is not faster, or not possible.

        It is not possible at the first step of a run: the templates are learned when records are read one by one.
        """
        key = index.layout, tuple(names), unless
        stacks: tuple[Stack, ...] = self._cache.get(index.event_file_name) or ()
        for stack in stacks:
            if stack.plan.covers(names):
                # Made for another caller: it may hold none of these tensors as rows.
                choice = stack.plan.choose_rows(key)
                return StackRows(stack, choice) if choice.rows else None
        plan = self._find_plan(key)
        checksums = index.checksums
        if plan is None or checksums is None:
            return None
        span = self._events.read_span(index.event_file_name, plan.first, plan.last - plan.first)
        made = None if span is None else _build_stack(plan, worker, span, checksums)
        if made is None:
            return None
        stacks = (*stacks, made)
        self._cache.put(index.event_file_name, stacks, sum(stack.plan.bytes for stack in stacks))
        return StackRows(made, plan.choose_rows(key))

    def _find_plan(self, key: StackKey) -> StackPlan | None:
        if key in self._plans:
            return self._plans[key]
        layout, names, unless = key
        known = self._decoder.templates
        templates = {}
        for name in names:
            if name in layout.values:
                tag, _, length, _ = layout.records[layout.values[name]]
                if (tag, length) not in known:
                    return None
                templates[name] = known[tag, length]
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        plan = StackPlan(layout, names, unless, templates)
        self._plans[key] = plan if plan.is_worth_it() else None
        return self._plans[key]


def _build_stack(plan: StackPlan, worker: str, span: memoryview, checksums: Sequence[int | None]) -> Stack | None:
    """Return the stack of a step; None if a record is damaged or does not match its template.

    Args:
        plan: the plan.
        worker: the worker that saved the tensors.
        span: the range of the event file that the plan names.
        checksums: the CRC-32C of each record of the layout.
    """
    matrices = [np.empty((rows, elements), dtype) for dtype, elements, rows in plan.matrices]
    targets = [matrix.data.cast("B") for matrix in matrices]
    for payload, header, expected_header, values, number, matrix, target in plan.rows:
        if span[header] != expected_header or crc32c(span[payload]) != checksums[number]:
            return None
        targets[matrix][target] = span[values]
    for each in matrices:
        each.flags.writeable = False
    return Stack(plan, worker, matrices)
