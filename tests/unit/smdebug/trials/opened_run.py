"""Trials that look often for new files, and actions during their pauses."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from smdebug.trials import Trial, create_trial

POLL_S = 0.002


def open_run(path: Path, **options: object) -> Trial:
    return create_trial(str(path), poll_interval_s=POLL_S, **options)  # type: ignore[call-overload]


def later(*actions: Callable[[], object]) -> threading.Thread:
    """Does these things in another thread, one after the other."""
    thread = threading.Thread(target=lambda: [action() for action in actions])
    thread.start()
    return thread


def do_in_first_pause(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Does this when the code under test pauses for the first time; what never pauses never sees it done."""
    sleep, waiting = time.sleep, [action]

    def pause(seconds: float) -> None:
        if waiting:
            waiting.pop()()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
