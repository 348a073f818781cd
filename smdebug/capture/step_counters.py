"""Step counters of a job, in total and by mode."""

from typing import Any

from smdebug.capture.state_store import (
    LATEST_GLOBAL_STEP_SAVED,
    LATEST_GLOBAL_STEP_SEEN,
    LATEST_MODE_STEP,
    TRAINING_RUN,
    StateStore,
)
from smdebug.mode_keys import ModeKeys

# A module global, because every step reads it.
_GLOBAL = ModeKeys.GLOBAL


class StepCounters:
    """The global step and the step of each mode, starting at -1; a restarted job continues from its last state.

    Attributes:
        keeps_states: whether a step may have to write the counters beside the job's checkpoints.
    """

    def __init__(self) -> None:
        self._store = StateStore()
        self.keeps_states = self._store.is_in_use
        state = self._store.get_last_saved_state()
        self.init_step = int(state[LATEST_GLOBAL_STEP_SEEN]) if state else -1
        self.training_run = int(state[TRAINING_RUN]) + 1 if state else 0
        saved = state[LATEST_GLOBAL_STEP_SAVED] if state else None
        self.last_saved_step: int | None = None if saved is None else int(saved)
        self.step = self.init_step
        self._mode_of_step: ModeKeys | None = None
        self.mode_steps: dict[ModeKeys, int] = {ModeKeys.GLOBAL: self.init_step}
        for name, step in (state[LATEST_MODE_STEP] if state else {}).items():
            self.mode_steps[ModeKeys[name]] = int(step)

    @property
    def has_begun(self) -> bool:
        """Whether this process has begun a step."""
        return self.step != self.init_step

    @property
    def step_to_write(self) -> int:
        """The global step that values saved now belong to; before the first step of this process, that first step.

        A restarted job does not write to the step it continues from, because the files of that step exist already.
        """
        return self.step if self.has_begun else self.init_step + 1

    def get_mode_step_to_write(self, mode: ModeKeys) -> int:
        """Return the step of a mode that corresponds to `step_to_write`."""
        newest = self.mode_steps.get(mode, self.init_step)
        return max(newest, 0) if self.has_begun else newest + 1

    def get_place_to_write(self, mode: ModeKeys) -> tuple[int, ModeKeys, int]:
        """Return `step_to_write`, its mode, and its number in that mode; before the first step, `mode` is its mode."""
        mode = self._mode_of_step or mode
        return self.step_to_write, mode, self.get_mode_step_to_write(mode)

    def increment(self, mode: ModeKeys) -> int:
        """Begin the next step in `mode` and return the step of that mode."""
        if self.keeps_states and self._store.is_checkpoint_updated():
            self._store.update_state(self._to_state())
        self.step = step = self.step + 1
        self._mode_of_step = mode
        steps = self.mode_steps
        steps[_GLOBAL] = step
        if mode is not _GLOBAL:
            steps[mode] = step = steps.get(mode, self.init_step) + 1
        return step

    def _to_state(self) -> dict[str, Any]:
        return {
            TRAINING_RUN: self.training_run,
            LATEST_GLOBAL_STEP_SAVED: self.last_saved_step,
            LATEST_GLOBAL_STEP_SEEN: self.step,
            LATEST_MODE_STEP: {mode.name: step for mode, step in self.mode_steps.items()},
        }
