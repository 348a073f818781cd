"""Compact index entries: what one worker saved at one step.

A run of 100,000 steps with 100 tensors has ten million records. Names, offsets, lengths and shapes repeat from step to
step, so that they are stored once, as a `Layout`, for all steps that agree in them; only checksums are stored per step.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from smdebug.format.reductions import REDUCTIONS_PREFIX, reverse_reduction_tensor_name
from smdebug.format.tensor_location import TensorLocation, TensorShape
from smdebug.mode_keys import ModeKeys
from smdebug.reading.index_files import IndexFile

# Tag, start offset, length and true dtype of a record.
_Record = tuple[str, int, int, str | None]


@dataclass(eq=False, slots=True)
class SavedTensor:
    """What one worker saved of a tensor at one step.

    Attributes:
        location: the record of the value; None if it was not saved.
        shape: the shape, if it was saved separately.
        reductions: saved reductions by (name, whether of absolute values).
    """

    location: TensorLocation | None
    shape: TensorShape | None
    reductions: dict[tuple[str, bool], TensorLocation]


class Layout:
    """The names, offsets and shapes of the tensors of a step. If a name occurs twice, the later entry counts.

    Attributes:
        records: the records in the order of the index file.
        values: position in `records` of each tensor's value, by tensor.
        reductions: positions in `records` of reductions, by tensor and (name, whether of absolute values).
        shapes: separately saved shapes, by tensor.
        names: the names of all tensors, in the order in which they were written.
    """

    __slots__ = ("names", "records", "reductions", "shapes", "values")

    def __init__(self, records: tuple[_Record, ...], shapes: Sequence[TensorShape]) -> None:
        self.records = records
        self.values: dict[str, int] = {}
        self.reductions: dict[str, dict[tuple[str, bool], int]] = {}
        self.shapes = {shape.name: shape for shape in shapes}
        self.names: dict[str, None] = {}
        for number, (tag, *_) in enumerate(records):
            if REDUCTIONS_PREFIX in tag:
                tname, reduction, of_absolute = reverse_reduction_tensor_name(tag)
                self.reductions.setdefault(tname, {})[reduction, of_absolute] = number
                self.names[tname] = None
            else:
                self.values[tag] = number
                self.names[tag] = None
        self.names.update(dict.fromkeys(self.shapes))


class StepIndex:
    """What one worker saved at one step.

    Attributes:
        layout: the tensors and their offsets.
        mode: mode of the step.
        mode_step: number of the step in that mode.
        event_file_name: path of the event file, relative to the run's folder.
        checksums: the CRC-32C of each record of the layout; None if the index has none.
    """

    __slots__ = ("checksums", "event_file_name", "layout", "mode", "mode_step")

    def __init__(
        self, layout: Layout, mode: ModeKeys, mode_step: int, event_file_name: str, checksums: Sequence[int | None]
    ) -> None:
        self.layout = layout
        self.mode = mode
        self.mode_step = mode_step
        self.event_file_name = event_file_name
        self.checksums = _pack(checksums)

    def locate(self, number: int) -> TensorLocation:
        """Return the location of a record of the layout."""
        tag, start, length, true_dtype = self.layout.records[number]
        checksums = self.checksums
        checksum = None if checksums is None else checksums[number]
        # A third of the time of calling the class; this runs for every value that is read.
        return tuple.__new__(TensorLocation, (tag, self.event_file_name, start, length, checksum, true_dtype))

    def find_record(self, location: TensorLocation) -> TensorLocation:
        """Return the location of the record with the tag of another location; the given one if there is none."""
        tags = [tag for tag, *_ in self.layout.records]
        # If a tag occurs twice, the later one counts.
        return self.locate(len(tags) - 1 - tags[::-1].index(location[0])) if location[0] in tags else location

    def find(self, name: str) -> SavedTensor | None:
        """Return what was saved of a tensor; None if nothing was saved."""
        layout = self.layout
        if name not in layout.names:
            return None
        number = layout.values.get(name)
        reductions = layout.reductions.get(name)
        return SavedTensor(
            None if number is None else self.locate(number),
            layout.shapes.get(name),
            {key: self.locate(at) for key, at in reductions.items()} if reductions else {},
        )


class Layouts:
    """The layouts of a run, each stored once.

    Attributes:
        names: the names of all tensors so far, in the order of their appearance.
    """

    def __init__(self) -> None:
        self._layouts: dict[tuple[tuple[_Record, ...], tuple[TensorShape, ...]], Layout] = {}
        self.names: dict[str, None] = {}

    def pack(self, index: IndexFile) -> StepIndex:
        """Return the compact form of a parsed index file."""
        records = tuple([(each[0], each[2], each[3], each[5]) for each in index.tensors])
        shapes = tuple(index.shapes)
        layout = self._layouts.get((records, shapes))
        if layout is None:
            layout = self._layouts[records, shapes] = Layout(records, shapes)
            self.names.update(layout.names)
        event_file_name = index.tensors[0].event_file_name if index.tensors else ""
        return StepIndex(
            layout, index.mode, index.mode_step, event_file_name, [location.crc32c for location in index.tensors]
        )

    def find_original_name(self, tname: str) -> str | None:
        """Return the framework's name of a tensor; None if no shape of it was saved."""
        found = [layout.shapes[tname].original_name for layout in self._layouts.values() if tname in layout.shapes]
        return found[-1] if found else None


def _pack(checksums: Sequence[int | None]) -> Sequence[int | None] | None:
    """Return an array of four bytes per checksum; a tuple if some are missing, None if all are."""
    known = [each for each in checksums if each is not None]
    if len(known) == len(checksums):
        return array("I", known)
    return tuple(checksums) if known else None
