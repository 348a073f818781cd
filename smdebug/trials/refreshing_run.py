"""A run as far as it is known so far: looking for new steps, and reading records."""

import time
from collections.abc import Sequence

from smdebug.environment import (
    INCOMPLETE_STEP_WAIT_WINDOW_KEY,
    TRAINING_END_DELAY_REFRESH_KEY,
    read_number,
)
from smdebug.format.locations import get_index_path, parse_step, parse_worker, serialize_tf_device
from smdebug.format.tensor_location import TensorLocation
from smdebug.logger import get_logger
from smdebug.reading.index_reader import IndexReader
from smdebug.reading.run_files import RunFiles
from smdebug.reading.run_reader import RunReader
from smdebug.reading.step_table import StepTable
from smdebug.reading.tensor import Tensor
from smdebug.trials.run_collections import RunCollections
from smdebug.trials.run_index import RunIndex

DEFAULT_POLL_INTERVAL_S = 0.05


class RefreshingRun:
    """What a trial knows of its run, and how it comes to know more. Users meet it as `Trial`.

    Every question first looks for new steps, until the job has ended and all its steps are known. Within
    `smdebug.analysis.utils.no_refresh` the answers stay those of one moment.

    Environment: SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW (1000): how many steps may lie above the last one that all
    workers wrote before the older half is no longer waited for. SMDEBUG_TRAINING_END_DELAY_REFRESH (1): after the job
    has ended, the longest time in seconds that files of workers which are still missing are waited for; where none is
    missing there is no wait. SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT (100): how often, one poll interval apart, a
    missing event file of the newest steps is looked for before its tensors count as lost.

    Args:
        files: the files of the run.
        path: where they are, as the user gave it.
        name: the trial's name; the last component of the path by default.
        range_steps: (begin, end), global steps; None is open. Only steps in [begin, end) are read.
        cache: keep values that were read in memory.
        poll_interval_s: seconds between two looks while waiting.

    Raises:
        MissingCollectionFiles: the job has ended without writing the collections files of all its workers. While it
            has not ended they are waited for.
        AssertionError: range_steps is not made of two numbers of at least 0 in rising order.
        SMDebugValueError: one of these variables is no number; where it is looked at later, from what looks at it.

    Attributes:
        dynamic_refresh: whether questions look for new steps.
        logger: where what is lost is said.
        run_index: what was saved at each step.
        reader: reads its records.
    """

    def __init__(
        self,
        files: RunFiles,
        path: str,
        name: str | None = None,
        *,
        range_steps: Sequence[int | None] | None = None,
        cache: bool = False,
        poll_interval_s: float = DEFAULT_POLL_INTERVAL_S,
    ) -> None:
        self._files = files
        self.path = path
        self.name = name if name is not None else path.rpartition("/")[2]
        self.range_steps = _check_range(range_steps)
        self.cache = cache
        self.poll_interval_s = poll_interval_s
        self.dynamic_refresh = True
        self.logger = get_logger()
        self._index_reader = IndexReader(files, self.range_steps)
        self._collections = RunCollections(files, path, poll_interval_s)
        window = int(read_number(INCOMPLETE_STEP_WAIT_WINDOW_KEY, 1000))
        self._table = StepTable(self._collections.num_workers, window)
        self._tensors: dict[str, Tensor] = {}
        self.reader = RunReader(files, self._may_still_come, poll_interval_s)
        self._known_names = 0
        self.run_index = RunIndex(files, self._table)
        self.refresh()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RefreshingRun) and (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.path}>"

    @property
    def num_workers(self) -> int:
        """How many workers write each step."""
        return self._collections.num_workers

    @property
    def last_complete_step(self) -> int:
        """The highest global step that is complete; -1 if there is none."""
        return self._table.last_complete_step

    @property
    def last_index_token(self) -> str | None:
        """Path or key of the newest index file before which none is awaited; None before the first complete step."""
        if self._table.token_step is None or self._table.token_step < 0:
            return None
        return self._files.locate(
            get_index_path(self._table.token_step, serialize_tf_device(self._collections.workers[-1]))
        )

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the job has ended and all that it wrote is known."""
        return self._table.loaded_all_steps

    def refresh(self) -> bool:
        """Look for index files that have become visible; returns whether the job has ended."""
        return self._find_new(self._table.find_awaited_step())

    def _find_new(self, awaited_step: int | None) -> bool:
        with self.run_index.lock:
            new, ended = self._index_reader.find_new(awaited_step)
            if new:
                self.run_index.add(new)
            self._table.settle()
        return ended

    def maybe_refresh(self) -> None:
        """Refresh unless that is off or there can be nothing new; settles the end of the job."""
        if self._table.loaded_all_steps or not self.dynamic_refresh or not self.refresh():
            return
        deadline = time.monotonic() + read_number(TRAINING_END_DELAY_REFRESH_KEY, 1)
        while self._table.find_awaited_step() is not None and time.monotonic() < deadline:
            time.sleep(self.poll_interval_s)
            self.refresh()
        # Also the files of a worker that was given up waiting for, because it was too far behind, are there now.
        self._find_new(self._table.find_incomplete_step())
        self._table.close()
        self._collections.may_have_grown = True

    def _may_still_come(self, location: TensorLocation) -> bool:
        """Whether an event file that is missing may be on its way: the newest of its worker, of a running job."""
        if self.loaded_all_steps or self._files.has_ended():
            return False
        name = location.event_file_name
        try:
            step, worker = parse_step(name), parse_worker(name)
        except ValueError:
            return False
        return self.run_index.newest_steps.get(worker, -1) <= step

    def _find_tensor(self, tname: str) -> Tensor | None:
        """Return the tensor of a name, if a step known so far has it."""
        tensor = self._tensors.get(tname)
        if tensor is None and self.run_index.knows(tname):
            tensor = self._tensors[tname] = Tensor(tname, self, self._table, self.cache)
        return tensor

    def _get_collections(self) -> RunCollections:
        """Return the collections; read again if tensors have come that they may have been written again for."""
        known = len(self.run_index.layouts.names)
        if known != self._known_names:
            self._known_names = known
            self._collections.may_have_grown = True
        return self._collections


def _check_range(range_steps: Sequence[int | None] | None) -> tuple[int | None, int | None] | None:
    if range_steps is None:
        return None
    explained = (
        f"range_steps must be (begin, end), each None or a number of at least 0, begin first; not {range_steps!r}."
    )
    if len(range_steps) != 2 or any(
        part is not None and (not isinstance(part, int) or part < 0) for part in range_steps
    ):
        raise AssertionError(explained)
    begin, end = range_steps
    if begin is not None and end is not None and begin >= end:
        raise AssertionError(explained)
    return begin, end
