"""A long run of which only some steps are known: enough for a first look, and no entry for each of its steps."""

from collections.abc import Sequence
from typing import TypeVar

from smdebug.format.locations import INDEX_DIR
from smdebug.reading.run_files import RunFiles

T = TypeVar("T")


class FewSteps:
    """The files of a run of one worker, of whose index files some are listed, evenly chosen; the ends are among them.

    Args:
        files: all of them; the index files are listed here and never again.
        most: of how many steps.

    Attributes:
        count: how many steps the run has.
    """

    def __init__(self, files: RunFiles, most: int) -> None:
        self._files = files
        names, self._ended = files.list_index_files(f"{INDEX_DIR}/")
        self.count = len(names)
        self._chosen = thin_out(names, most)

    def list_index_files(self, start_after: str) -> tuple[list[str], bool]:
        """See `RunFiles`."""
        return [name for name in self._chosen if name > start_after], self._ended

    def list_collections_files(self) -> list[str]:
        """See `RunFiles`."""
        return self._files.list_collections_files()

    def measure_index_files(self, names: Sequence[str]) -> list[int | None]:
        """See `RunFiles`."""
        return self._files.measure_index_files(names)

    def has_ended(self) -> bool:
        """See `RunFiles`."""
        return self._ended

    def read(self, names: Sequence[str]) -> list[bytes]:
        """See `RunFiles`."""
        return self._files.read(names)

    def read_range(self, name: str, start: int, length: int) -> memoryview:
        """See `RunFiles`."""
        return self._files.read_range(name, start, length)

    def read_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> list[memoryview | None]:
        """See `RunFiles`."""
        return self._files.read_ranges(ranges)

    @property
    def request_bytes(self) -> int:
        """See `RunFiles`."""
        return self._files.request_bytes

    def locate(self, name: str) -> str:
        """See `RunFiles`."""
        return self._files.locate(name)


def thin_out(steps: Sequence[T], most: int) -> list[T]:
    """Return at most so many of some steps, evenly, the first and the last among them.

    >>> thin_out([0, 1, 2, 3, 4, 5, 6, 7, 8], 3)
    [0, 4, 8]
    """
    if len(steps) <= most:
        return list(steps)
    if most <= 1:
        return list(steps[-1:])
    last = len(steps) - 1
    return [steps[round(at * last / (most - 1))] for at in range(most)]
