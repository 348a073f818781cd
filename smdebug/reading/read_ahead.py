"""Noticing that a tensor is read step after step, and having the next steps fetched together before they are asked for.

A loop over `value(step)` on S3 would wait for one answer after the other. From the third step in a row on, the records
of the next ones are asked for at once: as many as were read in a row so far, so that no more than as many are in vain.
"""

from collections.abc import Callable, Iterable, Sequence

from smdebug.format.tensor_location import TensorLocation

_IN_A_ROW = 3
_MOST_STEPS = 64
_MOST_BYTES = 8 * 1024 * 1024


class ReadAhead:
    """What was read of a tensor last, and up to where it was fetched.

    Args:
        list_next: the next steps at which the tensor was saved after a step, at most so many.
        locate: where the value of a step lies; None if it has none.
        prefetch: fetches records together.
    """

    def __init__(
        self,
        list_next: Callable[[int, int], Sequence[int]],
        locate: Callable[[int], TensorLocation | None],
        prefetch: Callable[[Iterable[TensorLocation]], None],
    ) -> None:
        self._list_next = list_next
        self._locate = locate
        self._prefetch = prefetch
        self._expected: int | None = None
        self._in_a_row = 0
        self._fetched: set[int] = set()

    def note(self, step: int) -> None:
        """Tells that a step is about to be read."""
        if step == self._expected:
            self._in_a_row += 1
        else:
            self._in_a_row = 1
        if self._in_a_row >= _IN_A_ROW and step not in self._fetched:
            self._fetch(step)
        following = self._list_next(step, 1)
        self._expected = following[0] if following else None

    def _fetch(self, step: int) -> None:
        steps = [step, *self._list_next(step, min(self._in_a_row, _MOST_STEPS) - 1)]
        locations: list[TensorLocation] = []
        size = 0
        for each in steps:
            location = self._locate(each)
            if location is None:
                self._fetched.add(each)
                continue
            size += location.length
            if size > _MOST_BYTES and locations:
                break
            locations.append(location)
            self._fetched.add(each)
        self._prefetch(locations)
        self._fetched = set(steps) & self._fetched
