"""The steps of a run: which ones are complete, and polling for new ones."""

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from enum import Enum

from smdebug.environment import TRAINING_END_DELAY_REFRESH_KEY, read_number
from smdebug.exceptions import NoMoreData, StepUnavailable
from smdebug.format.arguments import check_step
from smdebug.mode_keys import ModeKeys
from smdebug.reading.run_index import RunIndex

DEFAULT_POLL_INTERVAL_S = 0.05
# How many of the newest steps are searched for missing files below the last complete step. Files are found missing
# there only if they became visible out of order.
_NEWEST_STEPS = 100


class StepState(Enum):
    """Whether a step can be read: never, now, or possibly later."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


class RunSteps:
    """The known steps of a run. A refresh adds those whose index files have appeared.

    Args:
        index: the index of the run.
        num_workers: how many workers write each step.
        window: if more steps than this follow the last complete one, half a window of them counts as complete without
            waiting for the missing workers.
        poll_interval_s: seconds between two refreshes while waiting.

    Attributes:
        index, num_workers, poll_interval_s: see above.
        dynamic_refresh: whether `maybe_refresh` looks for new steps.
        workers: which workers have written each known global step.
        last_complete_step: the highest global step that all workers wrote, or that is no longer waited for; -1 if
            there is none. All steps below it count as complete.
        token_step: the global step up to which index files need not be listed again; None before the first refresh.
        loaded_all_steps: whether the job has ended and all its index files are known.
    """

    def __init__(
        self, index: RunIndex, num_workers: int, window: int, poll_interval_s: float = DEFAULT_POLL_INTERVAL_S
    ) -> None:
        self.index = index
        self.num_workers = num_workers
        self._window = window
        self.poll_interval_s = poll_interval_s
        self.dynamic_refresh = True
        self.workers: dict[int, set[str]] = {}
        self._steps: list[int] = []
        self.last_complete_step = -1
        self.token_step: int | None = None
        self.loaded_all_steps = False

    def refresh(self) -> bool:
        """Look for new index files; return whether the job has ended."""
        return self._find_new(self.find_awaited_step())

    def maybe_refresh(self) -> None:
        """Refresh, unless `dynamic_refresh` is off or everything is known. Waits for late files when the job ends."""
        if self.loaded_all_steps or not self.dynamic_refresh or not self.refresh():
            return
        deadline = time.monotonic() + read_number(TRAINING_END_DELAY_REFRESH_KEY, 1)
        while self.find_awaited_step() is not None and time.monotonic() < deadline:
            time.sleep(self.poll_interval_s)
            self.refresh()
        # The files of a worker that fell too far behind to be waited for exist by now.
        self._find_new(self._find_incomplete(0))
        self.close()

    def _find_new(self, awaited_step: int | None) -> bool:
        with self.index.lock:
            new, ended = self.index.find_new(awaited_step)
            for _, step, worker in new:
                self.add(step, worker)
            self.settle()
        return ended

    def add(self, step: int, worker: str) -> None:
        """Note that a worker wrote a global step."""
        workers = self.workers.get(step)
        if workers is None:
            workers = self.workers[step] = set()
            if self._steps and step < self._steps[-1]:
                insort(self._steps, step)
            else:
                self._steps.append(step)
        workers.add(worker)
        if len(workers) == self.num_workers and step > self.last_complete_step:
            self.last_complete_step = step

    def settle(self) -> None:
        """Advance the token, and the last complete step if the window is full; called once after each refresh."""
        if self.last_complete_step >= (self.token_step or 0):
            self.token_step = self.last_complete_step
        above = bisect_right(self._steps, self.last_complete_step)
        if len(self._steps) - above > self._window:
            self.last_complete_step = self.token_step = self._steps[above + max(self._window // 2, 1) - 1]

    def close(self) -> None:
        """Note that the job has ended and all its steps are known."""
        self.loaded_all_steps = True
        if self._steps:
            self.last_complete_step = self._steps[-1]

    def find_awaited_step(self) -> int | None:
        """Return the lowest step for which the file of some worker may still come; None if there is none.

        That is a step above the last complete one, or one of the newest steps.
        """
        above = bisect_right(self._steps, self.last_complete_step)
        return self._find_incomplete(max(min(above, len(self._steps) - _NEWEST_STEPS), 0))

    def _find_incomplete(self, first: int) -> int | None:
        if self.num_workers == 1:
            return None
        steps = (self._steps[at] for at in range(first, len(self._steps)))
        return next((step for step in steps if len(self.workers[step]) < self.num_workers), None)

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, *, show_incomplete: bool = False) -> list[int]:
        """Return the sorted steps of a mode, in the numbers of that mode."""
        known = self._known(mode)
        if show_incomplete or self.loaded_all_steps or (known and self.num_workers == 1):
            return list(known)
        return [step for step in known if self.is_complete(self._global(mode, step))]

    def steps_back_from(self, step: int, mode: ModeKeys) -> Iterator[int]:
        """Yield the complete steps of a mode in descending order, from `step` on."""
        check_step(step)
        known = self._known(mode)
        for at in range(bisect_right(known, step) - 1, -1, -1):
            if self.is_complete(self._global(mode, known[at])):
                yield known[at]

    def steps_on_from(self, step: int, mode: ModeKeys) -> Iterator[int]:
        """Yield the steps of a mode after `step` in ascending order, incomplete ones included."""
        known = self._known(mode)
        for at in range(bisect_right(known, step), len(known)):
            yield known[at]

    def is_complete(self, step: int) -> bool:
        """Return whether all workers wrote this known global step, or the missing ones are no longer waited for."""
        return self.loaded_all_steps or step <= self.last_complete_step or len(self.workers[step]) == self.num_workers

    def state(self, step: int, mode: ModeKeys) -> StepState:
        """Return whether a step, in the numbers of a mode, can be read."""
        check_step(step)
        known = self._known(mode)
        at = bisect_left(known, step)
        if at < len(known) and known[at] == step:
            complete = self.is_complete(self._global(mode, step))
            return StepState.AVAILABLE if complete else StepState.NOT_YET_AVAILABLE
        if self.loaded_all_steps:
            return StepState.UNAVAILABLE
        if at < len(known) and self._global(mode, known[at]) <= self.last_complete_step:
            return StepState.UNAVAILABLE
        return StepState.NOT_YET_AVAILABLE

    def wait_for_step(self, step: int, mode: ModeKeys) -> None:
        """Return when a step can be read.

        Raises:
            StepUnavailable: the step was skipped and will not come.
            NoMoreData: the job has ended before the step.
        """
        while True:
            state = self.state(step, mode)
            if state is StepState.NOT_YET_AVAILABLE:
                self.maybe_refresh()
                state = self.state(step, mode)
            if state is StepState.AVAILABLE:
                return
            if state is StepState.UNAVAILABLE:
                known = self._known(mode)
                if self.loaded_all_steps and (not known or step >= known[-1]):
                    raise NoMoreData(step, mode, known[-1] if known else -1)
                raise StepUnavailable(step, mode)
            time.sleep(self.poll_interval_s)

    def wait_for_next_step(
        self, step: int, end: int | None = None, while_waiting: Callable[[], None] | None = None
    ) -> int | None:
        """Wait for the first complete global step at or above `step`.

        Args:
            step: the lowest step that is wanted.
            end: steps at or above it are not wanted.
            while_waiting: called before every pause; what it raises ends the wait.

        Returns:
            The step; None if the job has ended, or has reached `end`, without one.
        """
        while True:
            at = bisect_left(self._steps, step)
            if at < len(self._steps) and self.is_complete(self._steps[at]):
                return self._steps[at] if end is None or self._steps[at] < end else None
            if self.loaded_all_steps:
                return None
            # After a refresh that found something the next pause is skipped, so that a late reader catches up.
            before = self._steps[-1:], self.last_complete_step
            self.maybe_refresh()
            if before == (self._steps[-1:], self.last_complete_step) and not self.loaded_all_steps:
                if while_waiting is not None:
                    while_waiting()
                time.sleep(self.poll_interval_s)

    def _known(self, mode: ModeKeys) -> list[int]:
        return self._steps if mode is ModeKeys.GLOBAL else self.index.mode_steps(mode)

    def _global(self, mode: ModeKeys, step: int) -> int:
        found = self.index.global_step(mode, step)
        assert found is not None
        return found
