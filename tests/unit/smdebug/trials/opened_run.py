"""Trials that look for new files often, and deeds of another thread."""

import threading
from collections.abc import Callable
from pathlib import Path

from smdebug.trials import Trial, create_trial

POLL_S = 0.002


def open_run(path: Path, **options: object) -> Trial:
    return create_trial(str(path), poll_interval_s=POLL_S, **options)  # type: ignore[call-overload]


def later(*actions: Callable[[], object]) -> threading.Thread:
    """Does these things in another thread, one after the other."""
    thread = threading.Thread(target=lambda: [action() for action in actions])
    thread.start()
    return thread
