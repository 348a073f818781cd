"""The profile of Python before a training's first step and after its hook's close."""

import atexit
import os

from smdebug.barrier import LossReport
from smdebug.tracing.configuration import TracingConfig, find_config_path, read_config
from smdebug.tracing.python_profiles import PythonProfiles, build_profiles

# What is in progress in this process, and the settings that it follows.
_in_progress: tuple[TracingConfig, PythonProfiles] | None = None


def profile_until_first_step() -> None:
    """Start a profile here if the job's configuration has Python profiled, and none is in progress.

    Upstream starts it when its module of the framework is imported, and ends it at the first step.
    """
    if _in_progress is not None or not find_config_path().is_file():
        return
    try:
        config = read_config(find_config_path(), 0)
        if config is not None and config.python is not None:
            _begin(config, build_profiles(config), "start")
    except Exception as error:  # noqa: BLE001 - a script that trains without a profile trains with it
        LossReport().say("the profile of Python before the first step", error)


def profile_until_exit(config: TracingConfig, profiles: PythonProfiles) -> None:
    """Start a profile at a hook's close; it ends when the process exits, or with the first step of another hook."""
    _begin(config, profiles, "end")
    atexit.register(_end_at_exit)


def take_outer_profile(config: TracingConfig) -> PythonProfiles | None:
    """Return the profiles whose last one is in progress; drop it and return None if the settings want another."""
    global _in_progress
    if _in_progress is None:
        return None
    begun, profiles = _in_progress
    wanted = (config.folder, config.python_profiler, config.python_timer)
    if config.python is None or (begun.folder, begun.python_profiler, begun.python_timer) != wanted:
        _drop()
        return None
    _in_progress = None
    return profiles


def _begin(config: TracingConfig, profiles: PythonProfiles, phase: str) -> None:
    global _in_progress
    # Upstream has the same mode at both ends of a training.
    profiles.begin("prestepzero", "*", phase)
    _in_progress = config, profiles


def _end_at_exit() -> None:
    global _in_progress
    if _in_progress is not None:
        _in_progress[1].end("posthookclose", "*", "end")
        _in_progress = None


def _drop() -> None:
    global _in_progress
    if _in_progress is not None:
        _in_progress[1].drop()
        _in_progress = None


if hasattr(os, "register_at_fork"):
    # A process that loads data would run slower for a profile that it never writes.
    os.register_at_fork(after_in_child=_drop)
