"""Previews of long runs: a few evenly chosen steps instead of all."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from smdebug.reading.run_files import RunFiles

T = TypeVar("T")

# How many folders of index files are listed. Each has a thousand steps and costs a request on S3.
_MOST_BLOCKS = 12
# With more folders on S3, only the first file of some is requested, and all files of a middle one and the last one.
_WHOLE_BLOCKS = 2


class FewSteps:
    """The files of a run of one worker, with only some of its index files: evenly chosen, with the first and the last.

    Args:
        files: all files of the run. Index files are listed once, by the constructor.
        most: the maximum number of steps.

    Attributes:
        count: the number of steps of the run; an estimate if not all folders of index files were listed.
    """

    def __init__(self, files: RunFiles, most: int) -> None:
        self._files = files
        # Checked before listing, so that the list contains all that the job wrote before it ended.
        self._ended = files.has_ended()
        blocks = files.list_index_blocks()
        if files.request_bytes and len(blocks) > _WHOLE_BLOCKS:
            self.count, names = self._list_starts(blocks)
        else:
            self.count, names = self._list_whole(blocks)
        self._chosen = thin_out(names, most)

    def _list_whole(self, blocks: Sequence[str]) -> tuple[int, list[str]]:
        listed = [self._files.list_index_block(block) for block in thin_out(blocks, _MOST_BLOCKS)]
        inner = [len(names) for names in listed[1:-1]]
        not_listed = len(blocks) - len(listed)
        count = sum(map(len, listed)) + round(not_listed * sum(inner) / (len(inner) or 1))
        return count, [name for names in listed for name in names]

    def _list_starts(self, blocks: Sequence[str]) -> tuple[int, list[str]]:
        """List the first step of some folders and the last of the run: listing a thousand names takes long on S3."""
        with ThreadPoolExecutor(2) as pool:  # one response is parsed while S3 prepares the other
            asked = pool.map(self._files.list_index_block, (blocks[len(blocks) // 2], blocks[-1]))
            starts = self._files.list_first_index_files(thin_out(blocks[:-1], _MOST_BLOCKS))
            inner, last = asked
        return len(inner) * (len(blocks) - 1) + len(last), [*starts, *last[-1:]]

    def list_index_files(self, start_after: str) -> tuple[list[str], bool]:
        return [name for name in self._chosen if name > start_after], self._ended

    def has_ended(self) -> bool:
        return self._ended

    def __getattr__(self, name: str) -> Any:
        """All else is as the files of the whole run have it."""
        return getattr(self._files, name)


def thin_out(steps: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of the given items, evenly chosen, with the first and the last.

    >>> thin_out([0, 1, 2, 3, 4, 5, 6, 7, 8], 3)
    [0, 4, 8]
    """
    if len(steps) <= most:
        return list(steps)
    if most <= 1:
        return list(steps[-1:])
    last = len(steps) - 1
    return [steps[round(at * last / (most - 1))] for at in range(most)]
