"""Read-ahead for loops over the steps of a tensor.

A loop over `value(step)` on S3 would wait for one response after the other. From the third consecutive step on, the
records of the next steps are prefetched: as many as were read consecutively so far, so that at most as many are unused.
"""

from collections.abc import Iterator
from itertools import chain, islice

from smdebug.format.tensor_location import TensorLocation

_CONSECUTIVE_READS = 3
_MOST_STEPS = 64
_MOST_BYTES = 8 * 1024 * 1024

_Saved = tuple[int, TensorLocation | None]


class ReadAhead:
    """The read history of one tensor, and which records to prefetch next."""

    def __init__(self) -> None:
        self._expected: int | None = None
        self._consecutive = 0
        self._fetched: set[int] = set()

    def plan(self, step: int, location: TensorLocation, following: Iterator[_Saved]) -> list[TensorLocation]:
        """Note that a step is about to be read; return the records to prefetch before that.

        Args:
            step: the step.
            location: the location of its value.
            following: the next steps of the tensor, each with the location of its value, or None if it has none;
                consumed only as far as needed.
        """
        self._consecutive = self._consecutive + 1 if step == self._expected else 1
        first = list(islice(following, 1))
        self._expected = first[0][0] if first else None
        if self._consecutive < _CONSECUTIVE_READS or step in self._fetched:
            return []
        self._fetched = set()
        locations: list[TensorLocation] = []
        size = 0
        for each, found in islice(chain([(step, location)], first, following), min(self._consecutive, _MOST_STEPS)):
            if found is not None:
                size += found.length
                if size > _MOST_BYTES and locations:
                    break
                locations.append(found)
            self._fetched.add(each)
        return locations
