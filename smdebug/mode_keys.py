"""Modes: the phases of a job in which steps are counted."""

from enum import Enum


class ModeKeys(Enum):
    """Phase of a job; GLOBAL counts every step in any phase. Event records store these values."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4

    # Every step looks up counters by mode several times, and Enum's hash is a slow Python function.
    __hash__ = object.__hash__


ALLOWED_MODES = tuple(ModeKeys)
ALLOWED_MODE_NAMES = tuple(mode.name for mode in ModeKeys)
MODE_PLUGIN_NAME = "mode"
MODE_STEP_PLUGIN_NAME = "mode_step"


def str_to_mode_keys(mode_str: str) -> ModeKeys:
    """Return the mode with a lower-case name; raises ValueError for other text."""
    if mode_str not in {name.lower() for name in ALLOWED_MODE_NAMES}:
        raise ValueError(f"Unknown mode {mode_str!r}: use train, eval, predict or global.")
    return ModeKeys[mode_str.upper()]
