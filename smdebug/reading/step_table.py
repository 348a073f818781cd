"""Which steps of a run have been seen, in which mode, from which workers, and which are complete.

No I/O here: index files are entered with `add`, and everything else is answered from memory.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from enum import Enum

from smdebug.format.arguments import check_mode
from smdebug.mode_keys import ModeKeys

# How far back, in steps seen, files of missing workers are still looked for below the last complete step: there they
# come only where they become visible out of their order.
_AWAITED_STEPS = 100


class StepState(Enum):
    """Whether a step can be read: never, now, or perhaps later."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


class StepTable:
    """The steps of one run.

    Args:
        num_workers: how many workers write each step.
        window: when more steps than this lie above the last complete one, the older half of a window is given up
            waiting for and counts as complete.

    Attributes:
        last_complete_step: highest global step that all workers wrote or that was given up waiting for; -1 if none.
            Steps below it count as complete.
        token_step: global step up to which index files need not be asked for again; None before the first one.
        loaded_all_steps: True once the job has ended and all its files are known.
        read_places: called before it must be known which steps of which modes there are (with None), or which one a
            global step is (with that step); who enters steps without their modes sets it to what enters those.
    """

    def __init__(self, num_workers: int, window: int) -> None:
        self._num_workers = num_workers
        self._window = window
        self._workers: dict[int, set[str]] = {}
        self._steps: list[int] = []
        self._places: dict[int, tuple[ModeKeys, int]] = {}
        self._mode_steps: dict[ModeKeys, list[int]] = {}
        self._global_steps: dict[tuple[ModeKeys, int], int] = {}
        self.last_complete_step = -1
        self.token_step: int | None = None
        self.loaded_all_steps = False
        self.read_places: Callable[[int | None], None] = _know_all_places

    def add(self, step: int, worker: str, mode: ModeKeys | None = None, mode_step: int = -1) -> None:
        """Enters that a worker wrote a global step; its place in its mode may be told later, by `enter_place`."""
        workers = self._workers.get(step)
        if workers is None:
            workers = self._workers[step] = set()
            if self._steps and step < self._steps[-1]:
                insort(self._steps, step)
            else:
                self._steps.append(step)
        workers.add(worker)
        if len(workers) == self._num_workers and step > self.last_complete_step:
            self.last_complete_step = step
        if mode is not None:
            self.enter_place(step, mode, mode_step)

    def enter_place(self, step: int, mode: ModeKeys, mode_step: int) -> None:
        """Enters that a global step is step mode_step of a mode."""
        if mode is ModeKeys.GLOBAL:
            self._places.setdefault(step, (mode, step))
            return
        if (mode, mode_step) not in self._global_steps:
            insort(self._mode_steps.setdefault(mode, []), mode_step)
        # Of two global steps that call themselves the same step of a mode the later counts.
        self._global_steps[mode, mode_step] = max(step, self._global_steps.get((mode, mode_step), step))
        self._places[step] = (mode, mode_step)

    def settle(self) -> None:
        """To be called once after a refresh: moves the token, and the window if it is full."""
        if self.last_complete_step >= (self.token_step or 0):
            self.token_step = self.last_complete_step
        above = bisect_right(self._steps, self.last_complete_step)
        if len(self._steps) - above > self._window:
            self.last_complete_step = self.token_step = self._steps[above + max(self._window // 2, 1) - 1]

    def close(self) -> None:
        """Return the job has ended and everything was read: what is there now is all there will be."""
        self.loaded_all_steps = True
        if self._steps:
            self.last_complete_step = self._steps[-1]

    def find_awaited_step(self) -> int | None:
        """Return the lowest step for which a worker's file may still come; None if there is none.

        That is a step above the last complete one, however far a slow worker is behind, or one of the newest.
        """
        above = bisect_right(self._steps, self.last_complete_step)
        return self._find_incomplete(max(min(above, len(self._steps) - _AWAITED_STEPS), 0))

    def find_incomplete_step(self) -> int | None:
        """Return the lowest of all steps that a worker's file is missing from; None if there is none."""
        return self._find_incomplete(0)

    def _find_incomplete(self, first: int) -> int | None:
        if self._num_workers == 1:
            return None
        steps = (self._steps[at] for at in range(first, len(self._steps)))
        return next((step for step in steps if len(self._workers[step]) < self._num_workers), None)

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, *, show_incomplete: bool = False) -> list[int]:
        """Sorted steps of a mode, in that mode's numbers."""
        known = self._known(mode)
        if show_incomplete or self.loaded_all_steps or (known and self._num_workers == 1):
            return list(known)
        return [step for step in known if self.is_complete(self._global(mode, step))]

    def steps_back_from(self, step: int, mode: ModeKeys) -> Iterator[int]:
        """Complete steps of a mode, from the last one that is not after `step` down to the first."""
        known = self._known(mode)
        for at in range(bisect_right(known, step) - 1, -1, -1):
            if self.is_complete(self._global(mode, known[at])):
                yield known[at]

    def steps_on_from(self, step: int, mode: ModeKeys) -> Iterator[int]:
        """Return steps of a mode that come after `step`, complete or not, first to last."""
        known = self._known(mode)
        for at in range(bisect_right(known, step), len(known)):
            yield known[at]

    def is_complete(self, step: int) -> bool:
        """Whether all workers wrote this (seen) global step, or nobody waits for the missing ones any more."""
        return self.loaded_all_steps or step <= self.last_complete_step or len(self._workers[step]) == self._num_workers

    def state(self, step: int, mode: ModeKeys) -> StepState:
        """Whether a step, in a mode's numbers, can be read, may come, or will never come."""
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

    def next_step(self, step: int) -> int | None:
        """Return the lowest global step seen that is not below this one, complete or not; None if there is none yet."""
        at = bisect_left(self._steps, step)
        return self._steps[at] if at < len(self._steps) else None

    def last_step(self, mode: ModeKeys) -> int | None:
        """Return the highest step of a mode, complete or not."""
        known = self._known(mode)
        return known[-1] if known else None

    def modes(self) -> list[ModeKeys]:
        """Modes seen; GLOBAL is not one of them."""
        self.read_places(None)
        return list(self._mode_steps)

    def place(self, step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """(mode, mode step) of a global step; (None, None) if it was not seen."""
        self.read_places(step)
        return self._places.get(step, (None, None))

    def get_places(self) -> dict[int, tuple[ModeKeys, int]]:
        """(mode, mode step) of each global step seen, by that step."""
        self.read_places(None)
        return dict(sorted(self._places.items()))

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global step of a mode's step; None if it was not seen. GLOBAL's steps are returned as they are."""
        if mode is ModeKeys.GLOBAL:
            return mode_step
        check_mode(mode)
        self.read_places(None)
        return self._global_steps.get((mode, mode_step))

    def _known(self, mode: ModeKeys) -> list[int]:
        if mode is ModeKeys.GLOBAL:
            return self._steps
        check_mode(mode)
        self.read_places(None)
        return self._mode_steps.get(mode, [])

    def _global(self, mode: ModeKeys, step: int) -> int:
        return step if mode is ModeKeys.GLOBAL else self._global_steps[mode, step]


def _know_all_places(step: int | None) -> None:
    """Where every step is entered with its mode, nothing is left to be read."""
